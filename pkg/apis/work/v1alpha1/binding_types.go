package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories={karmada-io}
// +kubebuilder:subresource:status

// A ResourceBinding is the first version of the binding of a namespaced
// resource: see work/v1alpha2.
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what goes where.
	Spec ResourceBindingSpec `json:"spec"`

	// Status says what has become of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ResourceBindingList is a list of ResourceBindings.
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ResourceBinding `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcebindings,scope=Cluster,shortName=crb,categories={karmada-io}
// +kubebuilder:subresource:status

// A ClusterResourceBinding is the first version of the binding of a
// cluster-scoped resource: see work/v1alpha2.
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what goes where.
	Spec ResourceBindingSpec `json:"spec"`

	// Status says what has become of it.
	// +optional
	Status ResourceBindingStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ClusterResourceBindingList is a list of ClusterResourceBindings.
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec says what goes where.
type ResourceBindingSpec struct {
	// Resource is the template, with its replicas.
	Resource ObjectReference `json:"resource"`

	// Clusters are the clusters the template is scheduled to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// An ObjectReference points to a resource template and says what it needs.
type ObjectReference struct {
	// APIVersion is the template's group and version.
	APIVersion string `json:"apiVersion"`

	// Kind is the template's kind.
	Kind string `json:"kind"`

	// Namespace is the template's namespace. Empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the template's name.
	Name string `json:"name"`

	// ResourceVersion is the version of the template that the binding was last
	// brought up to date with.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// ReplicaResourceRequirements are what one replica requests, by resource.
	// +optional
	ReplicaResourceRequirements corev1.ResourceList `json:"resourcePerReplicas,omitempty"`

	// Replicas is how many replicas the template wants in all clusters together.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// A TargetCluster is a cluster that a template is scheduled to.
type TargetCluster struct {
	// Name is the cluster.
	Name string `json:"name"`

	// Replicas is the cluster's share.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// ResourceBindingStatus says what has become of a binding.
type ResourceBindingStatus struct {
	// Conditions are those of work/v1alpha2.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is how the template fares in each cluster.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// An AggregatedStatusItem is how a template fares in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`

	// Status is what is kept of the object's status there.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied says whether the cluster holds the template.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage says why it does not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`
}
