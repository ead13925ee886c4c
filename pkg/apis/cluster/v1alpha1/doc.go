// +kubebuilder:object:generate=true
// +groupName=cluster.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group cluster.karmada.io:
// the member clusters.
//
// An aggregated API server serves this group. It validates in code, so the types
// carry no schema validation and no CustomResourceDefinition of them is installed.
package v1alpha1
