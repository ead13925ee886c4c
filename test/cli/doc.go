// Package cli tests that every example that help and README show works as it stands, in a shell, against a control
// plane with three members, one of which pulls.
//
// What an example takes for granted (a deployment called web, a file manifest.yaml) is made before: testdata/world has
// it, world_test.go says what is put right before each one. An example that is new is run without further ado. One that
// cannot be run here is listed with the reason.
package cli
