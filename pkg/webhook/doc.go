// Package webhook fills in, while the API server takes a request, what users
// leave out of policies, bindings, Works, autoscalers and services (spec: behaviour/08 8.2).
//
// Defaults are what is filled in: functions of an object, and of the one that it
// takes the place of, that need no server. Hooks returns the admission handlers
// around them, with the names and paths under which an API server knows them.
// Who is asked for which requests is the configuration of the control plane,
// which package bootstrap has.
package webhook
