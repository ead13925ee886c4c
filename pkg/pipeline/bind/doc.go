// Package bind is stage two of the pipeline: it has the policy that wins claim a
// template, and writes the binding, which says to the stages after it what goes
// where (spec: behaviour/03).
//
// Templates of all kinds go through one queue, and each is brought up to date by
// itself: who claims it, does the claim stand, is there a change to be bound. At
// most one request writes the claim and one the binding, and none does when
// nothing differs. Policies have queues of their own; they send templates through
// the first, and clean up behind policies that are deleted.
//
// A claim, once made, stays until its policy goes, selects the template no longer,
// or has it taken away by one with preemption. A binding outlives its claim: what
// runs somewhere runs there until another policy says otherwise.
package bind
