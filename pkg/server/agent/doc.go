// Package agent is the role karmada-agent: it runs beside a member cluster that
// the control plane does not reach, enters it there, and carries to it what its
// Works say (spec: behaviour/11 11.1, cli/components.md 5).
//
// It has the rights of one cluster and asks for nothing else: it reads its own
// Cluster, never the list, and of Works those in its own execution namespace.
//
// Flags are what was typed; Complete makes a Completed of them, or reports
// everything that is wrong at once; a Completed is what can be run.
//
// controllers.go is the table of the controllers; to add one is to fill in its
// setup there.
package agent
