// Package localagent is an agent as a process of this host: the directory that
// holds everything of it, how that directory comes to be, and how the process is
// started, looked at and stopped.
//
// A Config is what cannot be derived; it is the first file of a directory and the
// last that is removed, and marks it as ours. Everything else (kubeconfigs, the
// command line, the certificate) follows from it, from what the control plane
// answers, and from the member's kubeconfig.
package localagent
