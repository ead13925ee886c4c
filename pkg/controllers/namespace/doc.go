// Package namespace makes every member have the namespaces of the control plane, so
// that what is propagated finds its place: a Work for each Namespace and cluster,
// overridden by ClusterOverridePolicies, which is deleted with the Namespace
// (spec: behaviour/02 2.7).
//
// A policy can propagate a Namespace as well. Then there still is one Work in a
// cluster: that of the binding, which says what is in it. Here it only gets the
// Namespace as its owner. By that the stage that renders bindings knows to let go of
// it, instead of deleting a namespace with all that is in it; then the Work is one of
// ours again.
package namespace
