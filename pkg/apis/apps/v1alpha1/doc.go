// +kubebuilder:object:generate=true
// +groupName=apps.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group apps.karmada.io:
// requests that act on workloads that are already scheduled.
package v1alpha1
