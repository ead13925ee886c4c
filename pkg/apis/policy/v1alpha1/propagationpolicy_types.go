package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultSchedulerName is the scheduler that places a resource whose policy
// names none.
const DefaultSchedulerName = "default-scheduler"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=propagationpolicies,scope=Namespaced,shortName=pp,categories={karmada-io}
// +kubebuilder:printcolumn:name="CONFLICT-RESOLUTION",type="string",JSONPath=".spec.conflictResolution"
// +kubebuilder:printcolumn:name="PRIORITY",type="string",JSONPath=".spec.priority"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A PropagationPolicy sends resources of its own namespace to member clusters.
// For a namespaced resource it always wins over a ClusterPropagationPolicy,
// whatever their priorities.
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources go where.
	Spec PropagationSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A PropagationPolicyList is a list of PropagationPolicies.
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []PropagationPolicy `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpropagationpolicies,scope=Cluster,shortName=cpp,categories={karmada-io}
// +kubebuilder:printcolumn:name="CONFLICT-RESOLUTION",type="string",JSONPath=".spec.conflictResolution"
// +kubebuilder:printcolumn:name="PRIORITY",type="string",JSONPath=".spec.priority"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A ClusterPropagationPolicy sends resources of any namespace, and
// cluster-scoped ones, to member clusters.
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources go where.
	Spec PropagationSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A ClusterPropagationPolicyList is a list of ClusterPropagationPolicies.
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec says which resources go to which clusters, and how. Both
// scopes of propagation policy share it.
type PropagationSpec struct {
	// ResourceSelectors choose the resources; one that matches is enough. In a
	// PropagationPolicy they can only mean the policy's own namespace.
	// +kubebuilder:validation:MinItems=1
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is not used any more and has no effect: see PropagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps also sends what a resource refers to, such as the ConfigMaps,
	// Secrets and claims of a Deployment, wherever the resource goes. Nothing has
	// to select these dependencies. Default: false.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement says which clusters are eligible, and how replicas are divided
	// among them. Without it every cluster is.
	// +optional
	Placement Placement `json:"placement,omitzero"`

	// Priority decides between policies that select the same resource: the higher
	// one wins. Among equals the closer match wins (name, then labels, then kind
	// alone), then the name that sorts first. May be negative. Default: 0.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Preemption says whether this policy takes over resources that a policy of
	// lower priority has claimed. Default: Never.
	// +kubebuilder:default="Never"
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides name override policies that must exist before a resource
	// is sent anywhere: OverridePolicies of the same namespace for a
	// PropagationPolicy, ClusterOverridePolicies for a ClusterPropagationPolicy.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName is the scheduler that chooses the clusters. It cannot be
	// changed later. Default: default-scheduler.
	// +kubebuilder:default="default-scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover says when and how workloads leave a cluster they do not work in.
	// Without it they stay.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution says what happens when a cluster already holds an object
	// of that name which the control plane does not manage. Default: Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference says when a change of this policy reaches resources it
	// has already claimed. Empty: at once.
	// +kubebuilder:validation:Enum=Lazy
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension holds parts of the propagation back.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the member clusters when
	// the resource is deleted here; only the marks of the control plane are taken
	// off. Default: false, they are deleted too.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority orders the resource in the scheduler's queue. It does not
	// take clusters away from anything that is already scheduled.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// A ResourceSelector matches resources of one kind.
type ResourceSelector struct {
	// APIVersion is the group and version of the kind, such as apps/v1.
	APIVersion string `json:"apiVersion"`

	// Kind is the kind, such as Deployment.
	Kind string `json:"kind"`

	// Namespace restricts the match to one namespace. Empty: the policy's own
	// namespace, or for a cluster-scoped policy any.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the resource's name. With it LabelSelector is ignored.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector matches the resource's labels. With neither Name nor
	// LabelSelector every resource of the kind matches.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// A PreemptionBehavior says whether a policy takes resources from others.
type PreemptionBehavior string

// How a policy treats resources that others have claimed.
const (
	// PreemptAlways takes over resources of policies with a lower priority. Every
	// selector of the policy must then have a name.
	PreemptAlways PreemptionBehavior = "Always"
	// PreemptNever leaves claimed resources to whoever claimed them.
	PreemptNever PreemptionBehavior = "Never"
)

// A ConflictResolution says what happens to an object that is already there.
type ConflictResolution string

// What happens to an object of the same name that is not managed.
const (
	// ConflictAbort leaves the object alone and reports the conflict.
	ConflictAbort ConflictResolution = "Abort"
	// ConflictOverwrite takes the object over.
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// An ActivationPreference says when a change of policy takes effect.
type ActivationPreference string

// LazyActivation delays a change of the policy, for each resource, until a user
// changes that resource.
const LazyActivation ActivationPreference = "Lazy"

// Suspension holds propagation back without undoing any of it: what is in a
// cluster stays there as it is.
type Suspension struct {
	// Dispatching holds back every cluster. It excludes DispatchingOnClusters.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters holds back some clusters.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters are clusters that are held back.
type SuspendClusters struct {
	// ClusterNames are their names.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// A SchedulePriority says where the scheduling priority comes from.
type SchedulePriority struct {
	// PriorityClassSource is where the class is looked up.
	// +kubebuilder:validation:Enum=KubePriorityClass
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the class. Its value is the priority, and
	// higher is earlier. The class must exist.
	PriorityClassName string `json:"priorityClassName"`
}

// A PriorityClassSource is a kind of priority class.
type PriorityClassSource string

// KubePriorityClass is a PriorityClass of scheduling.k8s.io/v1 in the control
// plane.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"
