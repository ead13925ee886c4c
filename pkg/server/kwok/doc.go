// Package kwok gives a local member cluster its simulated nodes, by using
// sigs.k8s.io/kwok as a library.
//
// kwok plays the life of nodes and pods: which stages there are is written in
// stages/*.yaml, in kwok's own Stage API, and nothing is installed in the
// member for it. Beside that stands one HTTPS endpoint on a loopback address
// that answers as the kubelet of every node: logs, exec, attach, port-forward
// and resource metrics, and metrics.k8s.io for "kubectl top" and autoscalers.
//
// That endpoint is not kwok's own server, for three reasons: kwok's runs the
// command of an exec on the host, asks nobody for a client certificate, and
// answers plain HTTP on the same port. Here no request ever starts a process,
// opens a file or dials an address of the host: a container's shell is
// simulated (shell.go), its log is derived from its pod (container.go), and
// every request but the health checks needs a certificate of the API server.
package kwok
