// +kubebuilder:object:generate=true
// +groupName=remedy.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group remedy.karmada.io: what
// to do about a member cluster that reports a fault.
package v1alpha1
