// Package fleetrig starts a fleet of real processes for the tests of a package, a control plane with its members, and
// looks at it as its administrator would: through the API, with objects as they are written in manifests.
//
// Package rig, on which it stands, runs the commands.
package fleetrig
