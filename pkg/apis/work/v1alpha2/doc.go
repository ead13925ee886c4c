// +kubebuilder:object:generate=true
// +groupName=work.karmada.io

// Package v1alpha2 is version v1alpha2 of the API group work.karmada.io: the
// bindings, each of which says for one resource template which clusters it goes
// to, with how many replicas, and how it fares there.
package v1alpha2
