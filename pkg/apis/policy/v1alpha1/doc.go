// +kubebuilder:object:generate=true
// +groupName=policy.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group policy.karmada.io: what a
// user says about where resources go, how they differ from cluster to cluster,
// how much of them there may be, and which clusters are tainted.
package v1alpha1
