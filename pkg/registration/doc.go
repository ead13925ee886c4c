// Package registration is how a cluster becomes a member of a control plane, and how it leaves: the work behind the
// commands of that group and behind the agent. Commands turn flags into requests; what a request means is here.
//
// A bootstrap token is the first credential of a cluster that has none: token.go says what one is, token_groups.go what
// it may do and for which cluster, tokens.go keeps them in a control plane. discovery.go says how the holder of a token
// finds the control plane and recognises it.
package registration
