// Package e2e runs the project as a user does: the real binaries as processes, on loopback, in directories of the
// tests. Nothing is mocked. `make build` has to come first.
package e2e
