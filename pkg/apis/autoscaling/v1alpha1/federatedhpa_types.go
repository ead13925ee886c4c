package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="REFERENCE-KIND",type="string",JSONPath=".spec.scaleTargetRef.kind"
// +kubebuilder:printcolumn:name="REFERENCE-NAME",type="string",JSONPath=".spec.scaleTargetRef.name"
// +kubebuilder:printcolumn:name="MINPODS",type="integer",JSONPath=".spec.minReplicas"
// +kubebuilder:printcolumn:name="MAXPODS",type="integer",JSONPath=".spec.maxReplicas"
// +kubebuilder:printcolumn:name="REPLICAS",type="integer",JSONPath=".status.currentReplicas"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A FederatedHPA scales a resource template by what is measured of its pods in
// all clusters together. It is a HorizontalPodAutoscaler of autoscaling/v2 in
// every other way.
type FederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is scaled, by what and how far.
	Spec FederatedHPASpec `json:"spec"`

	// Status is that of a HorizontalPodAutoscaler.
	// +optional
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A FederatedHPAList is a list of FederatedHPAs.
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the autoscalers.
	Items []FederatedHPA `json:"items"`
}

// FederatedHPASpec says what is scaled, by what and how far.
type FederatedHPASpec struct {
	// ScaleTargetRef is the resource template, which must have a scale
	// sub-resource.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the least number of replicas in all clusters together.
	// Default: 1.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the largest number of replicas in all clusters together. It
	// is not less than MinReplicas.
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics are what is measured; the one that asks for most replicas wins.
	// Default: 80 percent of the requested cpu.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior says how fast to scale up and down. Default: that of a
	// HorizontalPodAutoscaler.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// Reasons of the conditions of a FederatedHPA that a HorizontalPodAutoscaler
// does not have. The types of its conditions are those of autoscaling/v2.
const (
	// ReasonFailedGetScaleTargetRef says that the template was not found.
	ReasonFailedGetScaleTargetRef = "FailedGetScaleTargetRef"
	// ReasonFailedGetBinding says that the template's binding was not found.
	ReasonFailedGetBinding = "FailedGetBinding"
	// ReasonFailedGetTargetClusters says that the template is in no ready cluster.
	ReasonFailedGetTargetClusters = "FailedGetTargetClusters"
)
