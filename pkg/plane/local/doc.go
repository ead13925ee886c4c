// Package local runs a plane.Plane on this host.
//
// Run holds every component in one process, in the order of their dependencies, and is what `karmada plane` and
// `karmada member` do. Supervise is the small parent process that starts that process again when it fails. Installer
// is what `karmadactl init`, `start`, `stop`, `status` and `deinit` do: it prepares a data directory, starts and ends
// the processes, and can be interrupted and repeated at any point.
//
// Processes and commands meet in files only: a lock that names its holder, a state that the plane and the supervisor
// report, a log.
package local
