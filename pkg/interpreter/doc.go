// Package interpreter says what objects mean: how many replicas they have and
// what those need, what they refer to, what of a member's object is the member's
// own, whether it is healthy, and how many statuses make one.
//
// An Interpreter asks layers in order, and the first that knows a question about
// a kind answers it (spec: behaviour/06 6.2). The last layer is native: the kinds
// of Kubernetes itself, in small files, each kind a value in the table of
// native.go. Layers that users configure stand before it.
package interpreter
