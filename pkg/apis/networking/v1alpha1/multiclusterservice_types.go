package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=multiclusterservices,scope=Namespaced,shortName=mcs,categories={karmada-io}
// +kubebuilder:subresource:status

// A MultiClusterService exposes the Service of its name and namespace beyond the
// clusters that the Service's pods run in.
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how and where.
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status says what has become of it.
	// +optional
	Status corev1.ServiceStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A MultiClusterServiceList is a list of MultiClusterServices.
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the services.
	Items []MultiClusterService `json:"items"`
}

// MultiClusterServiceSpec says how a Service is exposed, and where.
type MultiClusterServiceSpec struct {
	// Types say how: CrossCluster or LoadBalancer. Only one of them is accepted,
	// and it cannot be changed later.
	Types []ExposureType `json:"types"`

	// Ports are the ports that are exposed. Empty: all.
	// +optional
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range says from which clusters the Service is taken, for LoadBalancer.
	// +optional
	Range ExposureRange `json:"range,omitzero"`

	// ServiceProvisionClusters is deprecated: use ProviderClusters.
	// +optional
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is deprecated: use ConsumerClusters.
	// +optional
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters whose pods serve. Empty: all.
	// +optional
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters that can reach them. Empty: all.
	// +optional
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// An ExposureType says how a Service is exposed.
type ExposureType string

// How a Service is exposed.
const (
	// ExposureTypeCrossCluster is to the pods of other clusters.
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	// ExposureTypeLoadBalancer is to the world, by a load balancer outside.
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// An ExposurePort is a port that is exposed.
type ExposurePort struct {
	// Name is the name of the Service's port.
	// +optional
	Name string `json:"name,omitempty"`

	// Port is the number of the Service's port.
	Port int32 `json:"port"`
}

// An ExposureRange says from which clusters a Service is taken.
type ExposureRange struct {
	// ClusterNames are the clusters. Empty: all.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// A ClusterSelector matches clusters.
type ClusterSelector struct {
	// Name is the cluster.
	Name string `json:"name"`
}

// Types of conditions of a MultiClusterService.
const (
	// ConditionServiceApplied says whether the Service is on its way to the
	// clusters.
	ConditionServiceApplied = "ServiceApplied"
	// ConditionEndpointSliceDispatched says whether the endpoints are.
	ConditionEndpointSliceDispatched = "EndpointSliceDispatched"
)

// Reasons of the condition ServiceApplied.
const (
	// ReasonServiceAppliedSucceed is the reason when it is True.
	ReasonServiceAppliedSucceed = "ServiceAppliedSucceed"
	// ReasonServiceAppliedFailed is the reason when it is False.
	ReasonServiceAppliedFailed = "ServiceAppliedFailed"
)

// Reasons of the condition EndpointSliceDispatched.
const (
	// ReasonEndpointSliceDispatchedSucceed is the reason when it is True.
	ReasonEndpointSliceDispatchedSucceed = "EndpointSliceDispatchedSucceed"
	// ReasonEndpointSliceDispatchedFailed is the reason when it is False.
	ReasonEndpointSliceDispatchedFailed = "EndpointSliceDispatchedFailed"
)
