// Package registration is how a cluster becomes a member of a control plane, and how it leaves: the work behind the
// commands of that group and behind the agent. Commands turn flags into requests; what a request means is here.
//
// A bootstrap token is the first credential of a cluster that has none: token.go says what one is, token_groups.go what
// it may do and for which cluster, tokens.go keeps them in a control plane. discovery.go says how the holder of a token
// finds the control plane and recognises it.
//
// Both modes make the same objects: member_access.go in the member, control_plane.go in the control plane, each by a Writer
// (writer.go), which makes things what they should be, keeps book, and can undo. identity.go says whose a name is. push.go
// joins a cluster with them, ready.go waits until it can be used, leave.go takes it out again.
//
// The files that begin with pull are the agent's side, with certificate.go, which asks for its certificate. csr.go recognises
// what was asked, and those that begin with agent say what an agent is called and may do. Agents that are processes of a
// host are in package localagent.
package registration
