// Package pending keeps two bindings from taking the same room: it knows what was
// placed in clusters and does not show in their numbers yet
// (spec: behaviour/04 4.16).
//
// A cluster's numbers come every few seconds, and have no time of their own. So a
// Ledger counts what a binding is given from the moment of the decision on, until
// a summary that was made after its replicas were seen to exist, or until nobody
// can say any more what they wait for:
//
//	decided   by Place; counts until the cache shows the write, or Withdraw
//	written   by what Observe sees to change; survives a restart, because it can
//	          be told from the binding: who was scheduled a moment ago
//	existing  the cluster reports as many replicas as it was given, or that the
//	          object is healthy; its next summary has them
//	settled   that summary came, or none did for so long that nothing can have changed
//
// An entry that never gets that far ends five minutes after it was made. For a
// cluster that is not ready the clock stands still: nothing is learnt of it.
package pending
