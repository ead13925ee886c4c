// +kubebuilder:object:generate=true
// +groupName=work.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group work.karmada.io: Work,
// which is what one member cluster is told to hold, and the first version of the
// bindings.
//
// The bindings of this version are served for old clients only. They are stored
// as v1alpha2, which holds more; nothing in the control plane writes them.
package v1alpha1
