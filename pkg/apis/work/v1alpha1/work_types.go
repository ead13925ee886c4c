package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=works,scope=Namespaced,shortName=wk,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="WORKLOAD-KIND",type="string",JSONPath=".spec.workload.manifests[*].kind"
// +kubebuilder:printcolumn:name="APPLIED",type="string",JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A Work is what one member cluster is told to hold. Its namespace says which
// cluster: karmada-es-<cluster>.
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the cluster shall hold.
	Spec WorkSpec `json:"spec"`

	// Status is how that went, and how it is.
	// +optional
	Status WorkStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A WorkList is a list of Works.
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Works.
	Items []Work `json:"items"`
}

// WorkSpec is what a cluster shall hold.
type WorkSpec struct {
	// Workload holds the manifests.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitzero"`

	// SuspendDispatching holds the Work back: nothing is created, changed or
	// repaired in the cluster. Deleting the Work still removes its objects.
	// Default: false.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the cluster when the Work
	// is deleted; only the marks of the control plane are taken off. Default:
	// false.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// A WorkloadTemplate holds the manifests of a Work.
type WorkloadTemplate struct {
	// Manifests are the objects, complete as they shall stand in the cluster. The
	// control plane itself puts exactly one into each Work.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// +kubebuilder:pruning:PreserveUnknownFields

// A Manifest is an object of any kind.
type Manifest struct {
	runtime.RawExtension `json:",inline"`
}

// Types of conditions of a Work.
const (
	// ConditionApplied says whether the cluster holds every manifest.
	ConditionApplied = "Applied"
	// ConditionDispatching says whether the manifests are being sent to the
	// cluster, rather than held back.
	ConditionDispatching = "Dispatching"
)

// Reasons of the condition Applied.
const (
	// ReasonAppliedSuccessful is the reason when it is True.
	ReasonAppliedSuccessful = "AppliedSuccessful"
	// ReasonAppliedFailed is the reason when it is False.
	ReasonAppliedFailed = "AppliedFailed"
)

// Reasons of the condition Dispatching.
const (
	// ReasonDispatching is the reason when it is True.
	ReasonDispatching = "Dispatching"
	// ReasonSuspendDispatching is the reason when it is False.
	ReasonSuspendDispatching = "SuspendDispatching"
)

// WorkStatus is how a Work fares in its cluster.
type WorkStatus struct {
	// Conditions are Applied and Dispatching.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses are the states of the objects.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// A ManifestStatus is the state of one object in the cluster.
type ManifestStatus struct {
	// Identifier says which object.
	Identifier ResourceIdentifier `json:"identifier"`

	// Status is what is kept of the object's status.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health is the object's health.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// A ResourceIdentifier says which manifest of a Work is meant.
type ResourceIdentifier struct {
	// Ordinal is the manifest's index in the Work, from 0. It tells apart manifests
	// that have everything else in common.
	Ordinal int `json:"ordinal"`

	// Group is the object's group. Empty: the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// Version is the object's version.
	Version string `json:"version"`

	// Kind is the object's kind.
	Kind string `json:"kind"`

	// Resource is the kind's resource, in the plural. It may be empty.
	Resource string `json:"resource"`

	// Namespace is the object's namespace. Empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the object's name.
	Name string `json:"name"`
}

// A ResourceHealth is the health of an object in a cluster.
type ResourceHealth string

// The health of an object.
const (
	// ResourceHealthy works, or is of a kind whose health nobody can judge.
	ResourceHealthy ResourceHealth = "Healthy"
	// ResourceUnhealthy does not work.
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	// ResourceUnknown has not been looked at, or could not be judged.
	ResourceUnknown ResourceHealth = "Unknown"
)
