// Package scheduling tests over real processes where workloads go: a control plane, two members that it reaches and
// one that reaches it. What a policy says about clusters must be so in the binding and on the members, and stay so
// whatever happens to clusters, to their room and to the control plane.
//
// It needs the binaries: `make build` first, or name their directory in KARMADA_BIN.
package scheduling
