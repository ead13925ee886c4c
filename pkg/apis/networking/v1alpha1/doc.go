// +kubebuilder:object:generate=true
// +groupName=networking.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group networking.karmada.io:
// services and ingresses that span clusters.
package v1alpha1
