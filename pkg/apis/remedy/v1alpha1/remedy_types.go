package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remedies,scope=Cluster,categories={karmada-io}

// A Remedy says what to do about clusters whose conditions show a fault. What
// applies to a cluster stands in its status; whoever carries traffic acts on it.
type Remedy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to do, where and when.
	Spec RemedySpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A RemedyList is a list of Remedies.
type RemedyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the remedies.
	Items []Remedy `json:"items"`
}

// RemedySpec says what to do about which clusters, and when.
type RemedySpec struct {
	// ClusterAffinity restricts the clusters. Absent: all.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches say when; one that holds is enough. Empty: always.
	// +optional
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions say what to do. The one action there is is TrafficControl.
	// +optional
	Actions []RemedyAction `json:"actions,omitempty"`
}

// A ClusterAffinity matches clusters.
type ClusterAffinity struct {
	// ClusterNames are the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// A DecisionMatch says when a remedy applies.
type DecisionMatch struct {
	// ClusterConditionMatch looks at a condition of the cluster.
	// +optional
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// A ClusterConditionRequirement holds for a cluster that has the condition, in a
// status that fits. It never holds for one that has no such condition.
type ClusterConditionRequirement struct {
	// ConditionType is the type of the condition, such as
	// ServiceDomainNameResolutionReady.
	ConditionType ConditionType `json:"conditionType"`

	// Operator says how the condition's status relates to ConditionStatus.
	// +kubebuilder:validation:Enum=Equal;NotEqual
	Operator ClusterConditionOperator `json:"operator"`

	// ConditionStatus is a status: True, False or Unknown.
	ConditionStatus string `json:"conditionStatus"`
}

// A ConditionType is the type of a condition of a cluster.
type ConditionType string

// ServiceDomainNameResolutionReady says whether the cluster's pods can resolve
// the names of services.
const ServiceDomainNameResolutionReady ConditionType = "ServiceDomainNameResolutionReady"

// A ClusterConditionOperator relates two statuses.
type ClusterConditionOperator string

// How two statuses relate.
const (
	// ClusterConditionEqual holds when they are the same.
	ClusterConditionEqual ClusterConditionOperator = "Equal"
	// ClusterConditionNotEqual holds when they are not.
	ClusterConditionNotEqual ClusterConditionOperator = "NotEqual"
)

// A RemedyAction is what is done about a cluster.
type RemedyAction string

// TrafficControl sends no traffic to the cluster.
const TrafficControl RemedyAction = "TrafficControl"
