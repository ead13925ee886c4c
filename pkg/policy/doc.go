// Package policy says what policies select: which objects, how closely, and
// which clusters. Propagation and override policies, of both scopes, select by
// the same rules, so there is one place for these (spec: behaviour/03 3.4,
// behaviour/07 7.1, behaviour/04 4.6).
package policy
