// Package admission tests through a real API server what the control plane makes of what users write: what it fills in,
// refuses, warns about, protects from being deleted and converts, and what goes on while nobody answers.
//
// It needs the binaries: `make build` first, or name their directory in KARMADA_BIN.
package admission
