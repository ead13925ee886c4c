// +kubebuilder:object:generate=true
// +groupName=autoscaling.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group autoscaling.karmada.io:
// autoscalers that see a workload across all the clusters it runs in.
package v1alpha1
