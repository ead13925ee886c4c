package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=serviceexports,scope=Namespaced,shortName=svcex
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"

// A ServiceExport makes the Service of its name and namespace, in every cluster
// it is propagated to, available to other clusters.
type ServiceExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status says what has become of it.
	// +optional
	Status ServiceExportStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ServiceExportList is a list of ServiceExports.
type ServiceExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the exports.
	Items []ServiceExport `json:"items"`
}

// Types of conditions of a ServiceExport.
const (
	// ConditionValid says whether the Service can be exported.
	ConditionValid = "Valid"
	// ConditionConflict says whether exports of it contradict each other.
	ConditionConflict = "Conflict"
)

// ServiceExportStatus says what has become of an export.
type ServiceExportStatus struct {
	// Conditions are Valid and Conflict.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
