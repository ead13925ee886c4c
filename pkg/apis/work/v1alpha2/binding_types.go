package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SCHEDULED",type="string",JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="FULLYAPPLIED",type="string",JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A ResourceBinding says for one namespaced resource template which clusters it
// goes to, and how it fares there. It is named <name>-<kind> after the template,
// in the template's namespace.
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
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SCHEDULED",type="string",JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="FULLYAPPLIED",type="string",JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A ClusterResourceBinding says for one cluster-scoped resource template which
// clusters it goes to, and how it fares there. It is named <name>-<kind> after
// the template.
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

// ResourceBindingSpec says what goes where. Both scopes of binding share it.
// Most of it is copied from the template and from the policy that claimed it;
// Clusters is the scheduler's answer.
type ResourceBindingSpec struct {
	// Resource is the template.
	Resource ObjectReference `json:"resource"`

	// PropagateDeps also sends what the template refers to. From the policy.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements are what one replica asks of a cluster. Absent for a
	// template without replicas, or one that asks for nothing.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is how many replicas the template wants in all clusters together.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the parts of a template that has several kinds of pod, such
	// as a job manager and its task managers. Replicas and ReplicaRequirements are
	// then empty.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters are the clusters the template is scheduled to, sorted by name.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// GracefulEvictionTasks are clusters the template is leaving. The scheduler
	// chooses none of them again while its task is there.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy are the bindings whose templates refer to this one, with the
	// clusters they are scheduled to. This template goes there too.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is the scheduler that fills in Clusters. From the policy.
	// Empty: default-scheduler.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Placement says which clusters are eligible. From the policy. A binding that
	// exists for the sake of RequiredBy alone has none and is not scheduled.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// WorkloadAffinityGroups are the groups that the template's labels put it in.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`

	// RescheduleTriggeredAt is when somebody last asked for the replicas to be
	// divided anew. It has an effect while it is later than the status's
	// LastScheduledTime.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Failover says when the template leaves a cluster. From the policy.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution says what happens to an object that is already there.
	// From the policy. Default: Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// Suspension holds parts of the propagation back.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the clusters when the
	// template is deleted. From the policy. Default: false.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders the binding in the scheduler's queue.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// An ObjectReference points to a resource template.
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

	// UID is the template's UID. It also decides ties when replicas are divided.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion is the version of the template that the binding was last
	// brought up to date with.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// ReplicaRequirements are what one replica asks of a cluster.
type ReplicaRequirements struct {
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what the replica requests, by resource.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace is the namespace the replica runs in; quotas there count.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName is the pods' priority class; quotas scoped to it count.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// A NodeClaim restricts the nodes that a replica can run on.
type NodeClaim struct {
	// HardNodeAffinity is what the node must be like.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector are labels the node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are the taints the node may have.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// A Component is one of several kinds of pod of a template.
type Component struct {
	// Name names the component. It is unique within the template.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Replicas is how many replicas it wants.
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements are what one of its replicas asks of a cluster.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements are what one replica of a component asks of a
// cluster.
type ComponentReplicaRequirements struct {
	// NodeClaim restricts the nodes.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is what the replica requests, by resource.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName is the pods' priority class; quotas scoped to it count.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// A TargetCluster is a cluster that a template is scheduled to.
type TargetCluster struct {
	// Name is the cluster.
	Name string `json:"name"`

	// Replicas is the cluster's share. 0 for a template without replicas, or with
	// components.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the cluster's share of each component.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// A TargetComponent is a cluster's share of one component.
type TargetComponent struct {
	// Name is the component.
	Name string `json:"name"`

	// Replicas is the share.
	Replicas int32 `json:"replicas"`
}

// A BindingSnapshot says where a binding that refers to this one is scheduled.
type BindingSnapshot struct {
	// Namespace is the binding's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the binding's name.
	Name string `json:"name"`

	// Clusters are the clusters it is scheduled to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// WorkloadAffinityGroups are the groups of workloads that a template is in. Each
// is written "<label key>=<label value>".
type WorkloadAffinityGroups struct {
	// AffinityGroup keeps together. Empty: no such group.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup keeps apart. Empty: no such group.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// Suspension holds parts of the propagation back.
type Suspension struct {
	// Suspension is what the policy holds back.
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling keeps the scheduler away from the binding, which stays in the
	// clusters it has. It does not come from the policy and outlives changes of it.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// A SchedulePriority orders a binding in the scheduler's queue.
type SchedulePriority struct {
	// Priority is the value of the priority class; higher is earlier. Default: 0.
	// +kubebuilder:default=0
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// Types of conditions of a binding.
const (
	// ConditionScheduled says whether the scheduler has placed the binding as it
	// stands.
	ConditionScheduled = "Scheduled"
	// ConditionFullyApplied says whether every cluster holds the template.
	ConditionFullyApplied = "FullyApplied"
)

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled is the reason when it is True.
	ReasonScheduled = "Success"
	// ReasonUnschedulable says that the eligible clusters lack room. It is tried
	// again later, and the clusters stay as they are.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNoClusterFit says that no cluster is eligible. The clusters are empty,
	// and nothing is tried until the binding or a cluster changes.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonSchedulerError is any other failure. It is tried again soon.
	ReasonSchedulerError = "SchedulerError"
	// ReasonQuotaExceeded says that a FederatedResourceQuota forbids the result.
	ReasonQuotaExceeded = "QuotaExceeded"
)

// Reasons of the condition FullyApplied.
const (
	// ReasonFullyAppliedSuccess is the reason when it is True.
	ReasonFullyAppliedSuccess = "FullyAppliedSuccess"
	// ReasonFullyAppliedFailed is the reason when it is False.
	ReasonFullyAppliedFailed = "FullyAppliedFailed"
)

// ResourceBindingStatus says what has become of a binding. Both scopes share it.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation of the binding that the
	// scheduler last dealt with.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the term of the placement's
	// ClusterAffinities that is in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is when the scheduler last placed the binding.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions are Scheduled and FullyApplied.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is how the template fares in each cluster, sorted by name.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// An AggregatedStatusItem is how a template fares in one cluster.
type AggregatedStatusItem struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`

	// Status is what is kept of the object's status there. Absent: not collected.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied says whether the cluster holds the template.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage says why it does not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health is the object's health there.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
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
