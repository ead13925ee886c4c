// Package load generates load on API servers, and tells what came of it: how
// fast objects got where they should be, and what was written meanwhile.
//
// It speaks to any Kubernetes-shaped API server with a dynamic client and plain
// YAML, and knows nothing of this project: what it measures here it can measure
// of any control plane that takes the same manifests.
package load
