package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=serviceimports,scope=Namespaced,shortName=svcim
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="IP",type="string",JSONPath=".spec.ips"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"

// A ServiceImport brings the Service that other clusters export under its name
// and namespace into the clusters it is propagated to, where it is reached as
// the Service derived-<name>.
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is imported.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitzero"`

	// Status says where from.
	// +optional
	Status ServiceImportStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ServiceImportList is a list of ServiceImports.
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the imports.
	Items []ServiceImport `json:"items"`
}

// A ServiceImportType says how an imported Service is reached.
type ServiceImportType string

// How an imported Service is reached.
const (
	// ClusterSetIP is by a virtual IP. Only these imports have a derived Service.
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	// Headless is by the addresses of the pods.
	Headless ServiceImportType = "Headless"
)

// ServiceImportSpec says what is imported.
type ServiceImportSpec struct {
	// Ports are the ports of the Service.
	// +listType=atomic
	Ports []ServicePort `json:"ports"`

	// IPs hold the virtual IP. At most one.
	// +kubebuilder:validation:MaxItems=1
	// +optional
	IPs []string `json:"ips,omitempty"`

	// Type says how the Service is reached.
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	Type ServiceImportType `json:"type"`

	// SessionAffinity says whether one client is always sent to the same pod: None
	// or ClientIP.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig refines SessionAffinity.
	// +optional
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
}

// A ServicePort is a port of an imported Service.
type ServicePort struct {
	// Name is the port's name. It may be empty if there is only one.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol is TCP, UDP or SCTP. Empty: TCP.
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol is the protocol on top of it, such as kubernetes.io/h2c.
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port is the port's number.
	Port int32 `json:"port"`
}

// ServiceImportStatus says where a Service is imported from.
type ServiceImportStatus struct {
	// Clusters are the clusters that export it.
	// +listType=map
	// +listMapKey=cluster
	// +optional
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// A ClusterStatus is one cluster that exports a Service.
type ClusterStatus struct {
	// Cluster is the cluster's name.
	Cluster string `json:"cluster"`
}
