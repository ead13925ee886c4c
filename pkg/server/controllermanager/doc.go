// Package controllermanager is the role karmada-controller-manager: one
// controller-runtime manager that runs the controllers of the control plane.
//
// Flags are what was typed; Complete makes a Completed of them, or reports
// everything that is wrong at once; a Completed is what can be run. New is the
// command. Run takes the same flags inside a process that somebody else has set
// up, and Setup adds the controllers alone to a manager that others share.
//
// controllers.go is the table of the controllers; to add one is to fill in its
// setup there.
package controllermanager
