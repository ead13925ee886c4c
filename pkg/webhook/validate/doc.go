// Package validate says, while the API server takes a request, what is wrong
// with an object of ours, so that the mistake is found by who makes it and not
// by the controller that trips over it later (spec: behaviour/08 8.3).
//
// Hooks returns the admission handlers, with the names and paths under which an
// API server knows them. Each is the rules of one kind around one handler:
// everything that is wrong is told at once, with the field, its value and what is
// allowed. An object that is being deleted, or of which nothing changes that is
// looked at, is never refused: what was accepted by the rules of its time can
// always lose its finalizers.
//
// The rules of a kind are a file: functions of an object that need no server,
// but for those of customizations, which must not contradict each other.
package validate
