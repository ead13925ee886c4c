// Package names holds the names that make up the wire contract: namespaces,
// labels, annotations, finalizers, event reasons, components, and the
// functions that derive one object's name from another's.
//
// Existing manifests, scripts and clients rely on every one of them, so that a
// change here is a change of the contract (spec: behaviour/01). The package
// imports nothing of this module.
package names
