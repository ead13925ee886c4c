package v1alpha1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=multiclusteringresses,scope=Namespaced,shortName=mci,categories={karmada-io}
// +kubebuilder:subresource:status

// A MultiClusterIngress is an Ingress whose backends are in several clusters.
// The control plane stores and validates it; a provider outside acts on it.
type MultiClusterIngress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is that of an Ingress.
	// +optional
	Spec networkingv1.IngressSpec `json:"spec,omitzero"`

	// Status is what the provider reports.
	// +optional
	Status MultiClusterIngressStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A MultiClusterIngressList is a list of MultiClusterIngresses.
type MultiClusterIngressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ingresses.
	Items []MultiClusterIngress `json:"items"`
}

// MultiClusterIngressStatus is what the provider of an ingress reports.
type MultiClusterIngressStatus struct {
	// IngressStatus is that of an Ingress.
	networkingv1.IngressStatus `json:",inline"`

	// TrafficBlockClusters are clusters that get no traffic.
	// +optional
	TrafficBlockClusters []string `json:"trafficBlockClusters,omitempty"`

	// ServiceLocations say in which clusters the backends are.
	// +optional
	ServiceLocations []ServiceLocation `json:"serviceLocations,omitempty"`
}

// A ServiceLocation says in which clusters a Service is.
type ServiceLocation struct {
	// Name is the Service.
	Name string `json:"name"`

	// Clusters are the clusters.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
}
