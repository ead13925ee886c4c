// Package certrotation renews the certificate of an agent while it runs
// (spec: behaviour/11 11.8).
//
// A Store is where the certificate and its key are: a file that the agent's
// kubeconfig names, or a Secret in its cluster. The two are replaced as one:
// whatever happens in between, there is one certificate with its key.
package certrotation
