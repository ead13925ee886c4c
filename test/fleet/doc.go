// Package fleet tests how clusters become members of a control plane, stay members, and leave, over real processes: one
// control plane and a few local member clusters, driven with karmadactl.
//
// It needs the binaries: `make build` first, or name their directory in KARMADA_BIN.
package fleet
