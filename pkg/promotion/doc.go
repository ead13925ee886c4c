// Package promotion makes an object that a member cluster has a template of the
// control plane, with a policy that places it where it is, so that from then on
// the control plane manages what runs there already (spec: cli/commands.md 8.1).
//
// It is done in three steps, of which the first two change nothing: Read looks
// at the member, Check at the control plane, and Make makes what is missing. A
// promotion that was interrupted goes on when it is repeated.
package promotion
