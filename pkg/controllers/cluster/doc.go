// Package cluster looks after Clusters as such: each has an execution namespace
// for its Works, a finalizer, and taints that follow its readiness; one that is
// deleted goes only when nothing of it is left. It also notices when the agent
// of a pull mode cluster falls silent (spec: behaviour/02 2.1).
//
// What a Cluster says about its member, its status, is the concern of the
// package clusterstatus.
package cluster
