// Package kube holds what the karmada binary takes from upstream: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler. It is the only package that imports k8s.io/kubernetes and etcd's server, so that every other
// package compiles and tests without them.
//
// Each component comes in two forms. The New…Command functions return the unmodified upstream command, all its flags
// included; only one of them may be built in a process, because the constructors install signal handlers. The Run…
// functions take the same flags but neither handle signals nor configure logging, so that several components share
// one process; a component still cannot be started twice in one process.
package kube
