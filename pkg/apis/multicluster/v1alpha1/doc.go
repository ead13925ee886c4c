// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io

// Package v1alpha1 is version v1alpha1 of the API group multicluster.x-k8s.io:
// the two kinds of the Kubernetes multi-cluster services API, with the fields
// that this control plane understands.
package v1alpha1
