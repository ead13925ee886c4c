// Package clusterstatus keeps the status of Clusters: whether a member is ready,
// what version it has, what APIs it serves, and what resources it has and uses.
// For push mode clusters it runs in the controller manager; for a pull mode
// cluster in its agent, with a lease as a sign of life. The two differ in Options
// alone (spec: behaviour/02 2.2).
//
// Each cluster is looked at by a goroutine of its own, so that a member that
// does not answer delays no other. What could not be found out is never written
// as if there were none: the status keeps what was known last.
package clusterstatus
