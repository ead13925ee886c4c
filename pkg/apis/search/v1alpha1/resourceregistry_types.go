package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceregistries,scope=Cluster
// +kubebuilder:subresource:status

// A ResourceRegistry says which resources of which clusters are cached in the
// control plane, to be searched and to be reached by proxy.
type ResourceRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is cached.
	// +optional
	Spec ResourceRegistrySpec `json:"spec,omitzero"`

	// Status says what has become of it.
	// +optional
	Status ResourceRegistryStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ResourceRegistryList is a list of ResourceRegistries.
type ResourceRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the registries.
	Items []ResourceRegistry `json:"items"`
}

// ResourceRegistrySpec says what is cached.
type ResourceRegistrySpec struct {
	// TargetCluster matches the clusters. The empty one matches all.
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors are the resources.
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore is where they are also written to. Absent: nowhere.
	// +optional
	BackendStore *BackendStoreConfig `json:"backendStore,omitempty"`
}

// A ResourceSelector matches the resources of one kind.
type ResourceSelector struct {
	// APIVersion is the group and version of the kind, such as apps/v1.
	APIVersion string `json:"apiVersion"`

	// Kind is the kind.
	Kind string `json:"kind"`

	// Namespace restricts what the proxy serves to one namespace. Empty: any.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// A BackendStoreConfig is a store outside.
type BackendStoreConfig struct {
	// OpenSearch is an OpenSearch server.
	// +optional
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// An OpenSearchConfig says how to reach an OpenSearch server.
type OpenSearchConfig struct {
	// Addresses are the URLs of its nodes.
	Addresses []string `json:"addresses"`

	// SecretRef is the Secret with the credentials.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// A LocalSecretReference names a Secret of the control plane.
type LocalSecretReference struct {
	// Namespace is the Secret's namespace.
	Namespace string `json:"namespace"`

	// Name is the Secret's name.
	Name string `json:"name"`
}

// ResourceRegistryStatus says what has become of a registry.
type ResourceRegistryStatus struct {
	// Conditions are what there is to say.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
