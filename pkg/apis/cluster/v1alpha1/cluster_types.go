package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,scope=Cluster
// +kubebuilder:subresource:status

// A Cluster is a member cluster. Its name is at most 48 characters long, and a
// DNS label.
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how to reach the cluster and what it is like.
	Spec ClusterSpec `json:"spec"`

	// Status is what was last seen of it.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the clusters.
	Items []Cluster `json:"items"`
}

// ClusterSpec says how to reach a cluster and what it is like.
type ClusterSpec struct {
	// ID is the UID of the cluster's kube-system namespace. Two Clusters never
	// have the same.
	// +optional
	ID string `json:"id,omitempty"`

	// SyncMode says who carries things to the cluster.
	SyncMode ClusterSyncMode `json:"syncMode"`

	// APIEndpoint is the URL of the cluster's API server. It is required to reach
	// the cluster from here.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`

	// SecretRef is the Secret with the credentials for the cluster, under the keys
	// token and caBundle. It is required to push to the cluster.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ImpersonatorSecretRef is the Secret with the token, under the key token, that
	// may act as other users in the cluster. It is required to proxy users to the
	// cluster.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`

	// InsecureSkipTLSVerification accepts any certificate of the API server.
	// Default: false.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`

	// ProxyURL is a proxy to reach the API server through, with the scheme http,
	// https or socks5. Empty: none.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`

	// ProxyHeader are headers sent to the proxy when a connection is opened.
	// Several values of one header are separated by commas.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`

	// Provider is who runs the cluster. Workloads can be spread by it.
	// +optional
	Provider string `json:"provider,omitempty"`

	// Region is where the cluster is. Workloads can be spread by it.
	// +optional
	Region string `json:"region,omitempty"`

	// Zone is deprecated: use Zones. What is written here is moved there.
	// +optional
	Zone string `json:"zone,omitempty"`

	// Zones are the zones the cluster spans. Workloads can be spread by them.
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Taints keep workloads that do not tolerate them out of the cluster. A
	// NoExecute taint without a time gets the current one.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// ResourceModels are classes of nodes, by size. The status counts how many
	// nodes of each class have room. Default, given when the Cluster is created:
	// nine classes by cpu and memory.
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// A ClusterSyncMode says who carries things to a cluster.
type ClusterSyncMode string

// Who carries things to a cluster.
const (
	// Push is the control plane, which reaches the cluster's API server.
	Push ClusterSyncMode = "Push"
	// Pull is an agent in the cluster, which reaches the control plane.
	Pull ClusterSyncMode = "Pull"
)

// A LocalSecretReference names a Secret of the control plane.
type LocalSecretReference struct {
	// Namespace is the Secret's namespace.
	Namespace string `json:"namespace"`

	// Name is the Secret's name.
	Name string `json:"name"`
}

// A ResourceModel is a class of nodes.
type ResourceModel struct {
	// Grade identifies the class; a higher one has larger nodes. No two classes of
	// a cluster have the same.
	Grade int32 `json:"grade"`

	// Ranges are the sizes of the class, one for each resource. All classes of a
	// cluster have the same resources in the same order.
	Ranges []ResourceModelRange `json:"ranges"`
}

// A ResourceModelRange is what a class of nodes has of one resource. The ranges
// of consecutive classes have no gaps between them.
type ResourceModelRange struct {
	// Name is the resource.
	Name corev1.ResourceName `json:"name"`

	// Min is the least, itself included. 0 in the lowest class.
	Min resource.Quantity `json:"min"`

	// Max is the most, itself not included. The largest 64 bit number in the
	// highest class.
	Max resource.Quantity `json:"max"`
}

// Types of conditions of a Cluster. Other controllers may add conditions of
// their own, with an empty reason too; they are kept.
const (
	// ConditionReady says whether the cluster is healthy and accepts workloads.
	ConditionReady = "Ready"
	// ConditionCompleteAPIEnablements says whether the status knows everything the
	// cluster's API server serves.
	ConditionCompleteAPIEnablements = "CompleteAPIEnablements"
)

// Reasons of the condition Ready.
const (
	// ReasonClusterReady is the reason when it is True.
	ReasonClusterReady = "ClusterReady"
	// ReasonClusterNotReady says that the API server answers but is not healthy.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonClusterNotReachable says that the API server does not answer.
	ReasonClusterNotReachable = "ClusterNotReachable"
	// ReasonStatusCollectionFailed says that no client could be made.
	ReasonStatusCollectionFailed = "StatusCollectionFailed"
	// ReasonClusterStatusNeverUpdated says that the agent has never reported.
	ReasonClusterStatusNeverUpdated = "ClusterStatusNeverUpdated"
	// ReasonClusterStatusUnknown says that the agent has stopped reporting.
	ReasonClusterStatusUnknown = "ClusterStatusUnknown"
)

// Reasons of the condition CompleteAPIEnablements.
const (
	// ReasonCompleteAPIEnablements is the reason when it is True.
	ReasonCompleteAPIEnablements = "Complete"
	// ReasonPartialAPIEnablements says that discovery failed in part.
	ReasonPartialAPIEnablements = "Partial"
	// ReasonEmptyAPIEnablements says that discovery found nothing.
	ReasonEmptyAPIEnablements = "Empty"
)

// Keys of taints that the control plane sets by itself, with the effect
// NoSchedule.
const (
	// TaintNotReady marks a cluster that is not ready, or has never said.
	TaintNotReady = "cluster.karmada.io/not-ready"
	// TaintUnreachable marks a cluster whose readiness is unknown.
	TaintUnreachable = "cluster.karmada.io/unreachable"
	// TaintUnschedulable marks a cluster that an administrator has cordoned.
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
)

// ClusterStatus is what was last seen of a cluster.
type ClusterStatus struct {
	// KubernetesVersion is the version of the API server, such as v1.37.2.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// APIEnablements is what the API server serves, sorted by group and version.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`

	// Conditions are Ready, CompleteAPIEnablements and those of others.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// NodeSummary counts the nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`

	// ResourceSummary is what the nodes have and what is in use. Absent: not known.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`

	// RemedyActions is what the Remedies that apply ask to be done about the
	// cluster, sorted.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// An APIEnablement is what an API server serves of one group and version.
type APIEnablement struct {
	// GroupVersion is the group and version, such as apps/v1.
	GroupVersion string `json:"groupVersion"`

	// Resources are the resources, sorted by name, without sub-resources.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// An APIResource is one resource of an API server.
type APIResource struct {
	// Name is the resource in the plural, such as deployments.
	Name string `json:"name"`

	// Kind is the kind, such as Deployment.
	Kind string `json:"kind"`
}

// A NodeSummary counts the nodes of a cluster.
type NodeSummary struct {
	// TotalNum is how many there are.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`

	// ReadyNum is how many of them are ready.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// A ResourceSummary is what the nodes of a cluster have and what is in use. The
// resource pods stands for places for pods.
type ResourceSummary struct {
	// Allocatable is what all nodes together offer to pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Allocating is what pods request that have no node yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`

	// Allocated is what pods request that have a node and have not ended.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatableModelings counts the nodes by what they have left: one entry for
	// each of the spec's ResourceModels.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
}

// An AllocatableModeling counts the nodes of one class.
type AllocatableModeling struct {
	// Grade is the class.
	Grade int32 `json:"grade"`

	// Count is how many nodes have that much left.
	Count int32 `json:"count"`
}
