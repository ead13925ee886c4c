package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Placement says which clusters a resource may go to and how its replicas are
// divided among those chosen.
type Placement struct {
	// ClusterAffinity restricts the clusters. It excludes ClusterAffinities.
	// Without either every cluster is eligible.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are groups of clusters in order of preference: the next
	// one is tried only when the one before cannot take the resource. Scheduling
	// never goes back to an earlier group by itself.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations let the resource go to clusters with matching taints, and
	// stay in them. The operators Lt and Gt are not supported. A toleration's
	// seconds count from the time the taint was added.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints say over how many clusters or regions the resource is
	// spread. Replicas divided by static weights go to every eligible cluster and
	// ignore them.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling says how replicas are divided. Without it every chosen
	// cluster gets all of them. It has no meaning for resources without replicas.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity puts workloads of one namespace together or apart.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// A ClusterAffinity matches clusters: those that meet every part that is set.
// The empty one matches all.
type ClusterAffinity struct {
	// LabelSelector matches the cluster's labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector matches the cluster's provider, region and zones.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames are the only clusters that match. Empty: any name does.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters never match, whatever the other parts say.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// A FieldSelector matches clusters by fields of their spec.
type FieldSelector struct {
	// MatchExpressions must all hold. Keys are provider, region and zone; the
	// operators are In and NotIn. A cluster has one provider and one region and
	// may have several zones: In holds when any zone is listed, NotIn when none is.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// A ClusterAffinityTerm is one group of clusters, with groups that take what
// does not fit in it.
type ClusterAffinityTerm struct {
	// AffinityName names the group. It is unique within the policy and is what the
	// binding's status reports as the group in use.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	// ClusterAffinity says which clusters the group has.
	ClusterAffinity `json:",inline"`

	// OverflowAffinities take, in this order, the replicas that the group itself
	// has no room for. They need replicas to be divided by aggregation or by
	// dynamic weight, and a ClusterAffinity that is not empty.
	// +optional
	OverflowAffinities []OverflowAffinityTerm `json:"overflowAffinities,omitempty"`
}

// An OverflowAffinityTerm is a group of clusters that takes what another one has
// no room for.
type OverflowAffinityTerm struct {
	// AffinityName names the group. It differs from the name of every other group
	// of the same term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	AffinityName string `json:"affinityName"`

	// ClusterAffinity says which clusters the group has.
	ClusterAffinity `json:",inline"`
}

// A SpreadConstraint bounds the number of groups that clusters are chosen from.
// A constraint by any field needs another one by cluster beside it.
type SpreadConstraint struct {
	// SpreadByField groups clusters by a field of their spec. It excludes
	// SpreadByLabel. Default, when neither is set: cluster.
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of this label.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups. 0: any number.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups; with fewer nothing is scheduled.
	// Default: 1.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// A SpreadFieldValue is a field that clusters are grouped by.
type SpreadFieldValue string

// Fields that clusters are grouped by.
const (
	// SpreadByFieldCluster makes every cluster a group of its own.
	SpreadByFieldCluster SpreadFieldValue = "cluster"
	// SpreadByFieldRegion groups by region.
	SpreadByFieldRegion SpreadFieldValue = "region"
	// SpreadByFieldZone groups by zone.
	SpreadByFieldZone SpreadFieldValue = "zone"
	// SpreadByFieldProvider groups by provider.
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// A ReplicaSchedulingStrategy says how replicas are divided among clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType says whether clusters share the replicas or get all of
	// them each. Default: Divided.
	// +kubebuilder:default="Divided"
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference says how they are shared. It is used with Divided
	// only. Default: Weighted.
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference gives the weights for Weighted. Without it all clusters
	// weigh the same.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// A ReplicaSchedulingType says whether replicas are shared.
type ReplicaSchedulingType string

// Whether clusters share the replicas.
const (
	// ReplicaSchedulingTypeDuplicated gives every cluster all the replicas.
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicaSchedulingTypeDivided shares the replicas among the clusters.
	ReplicaSchedulingTypeDivided ReplicaSchedulingType = "Divided"
)

// A ReplicaDivisionPreference says how shared replicas are divided.
type ReplicaDivisionPreference string

// How shared replicas are divided.
const (
	// ReplicaDivisionPreferenceAggregated uses as few clusters as have the room.
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	// ReplicaDivisionPreferenceWeighted divides in proportion to weights.
	ReplicaDivisionPreferenceWeighted ReplicaDivisionPreference = "Weighted"
)

// ClusterPreferences weigh clusters against each other.
type ClusterPreferences struct {
	// StaticWeightList gives fixed weights. A cluster has the largest weight of
	// all entries that match it, and gets nothing when none does; if no cluster
	// matches, all weigh the same. Ignored when DynamicWeight is set.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight derives the weights from the state of the clusters.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// A StaticClusterWeight gives clusters a fixed weight.
type StaticClusterWeight struct {
	// TargetCluster matches the clusters.
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight is their weight relative to the others, at least 1.
	// +kubebuilder:validation:Minimum=1
	Weight int64 `json:"weight"`
}

// A DynamicWeightFactor is what a weight is derived from.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs a cluster by how many more replicas it
// has room for.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// A WorkloadAffinity relates workloads of one namespace to each other. It only
// bears on clusters that a workload does not run in yet.
type WorkloadAffinity struct {
	// Affinity keeps the workloads of a group in the same clusters.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity keeps the workloads of a group in different clusters.
	// +optional
	AntiAffinity *WorkloadAntiAffinityTerm `json:"antiAffinity,omitempty"`
}

// A WorkloadAffinityTerm says which workloads belong together.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is a label of the resource; those with the same value are a
	// group. A resource without the label belongs to none.
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// A WorkloadAntiAffinityTerm says which workloads keep apart.
type WorkloadAntiAffinityTerm struct {
	// GroupByLabelKey is a label of the resource; those with the same value are a
	// group. A resource without the label belongs to none. It differs from the
	// key of the affinity.
	GroupByLabelKey string `json:"groupByLabelKey"`
}
