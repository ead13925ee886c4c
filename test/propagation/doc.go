// Package propagation tests the pipeline over real processes: a control plane, two members that it reaches and one that
// reaches it. What a user creates and says in policies must be on the members, whatever happens there and here.
//
// It needs the binaries: `make build` first, or name their directory in KARMADA_BIN.
package propagation
