package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertaintpolicies,scope=Cluster

// A ClusterTaintPolicy adds taints to clusters, and removes them, as their
// conditions change. Taints stay when the policy is deleted.
type ClusterTaintPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which taints, where and when.
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A ClusterTaintPolicyList is a list of ClusterTaintPolicies.
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec says which taints clusters get, and when.
type ClusterTaintPolicySpec struct {
	// TargetClusters match the clusters. Absent: all.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions must all hold for the taints to be added. Empty: they never
	// are.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions must all hold for the taints to be removed. Empty: they
	// never are. They are looked at after AddOnConditions.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints are the taints. No two have the same key and effect.
	// +kubebuilder:validation:MinItems=1
	Taints []Taint `json:"taints"`
}

// A MatchCondition holds for a cluster that has the condition, in a status that
// fits. It never holds for a cluster that has no such condition.
type MatchCondition struct {
	// ConditionType is the type of the condition, such as Ready.
	ConditionType string `json:"conditionType"`

	// Operator says how the status relates to StatusValues: In or NotIn.
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues are statuses of the condition: True, False or Unknown.
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// A MatchConditionOperator relates a status to a list of statuses.
type MatchConditionOperator string

// How a status relates to a list.
const (
	// MatchConditionOpIn holds when the status is listed.
	MatchConditionOpIn MatchConditionOperator = "In"
	// MatchConditionOpNotIn holds when the status is not listed.
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// A Taint is a taint that a policy puts on clusters. A taint that is there
// already, by key and effect, keeps its value.
type Taint struct {
	// Key is the taint's key.
	Key string `json:"key"`

	// Effect is what the taint does to workloads that do not tolerate it:
	// NoSchedule, PreferNoSchedule or NoExecute. The last one moves them away and
	// is refused unless the control plane was told to allow it.
	Effect corev1.TaintEffect `json:"effect"`

	// Value is the taint's value.
	// +optional
	Value string `json:"value,omitempty"`
}
