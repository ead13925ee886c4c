package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// Reasons of an eviction.
const (
	// EvictionReasonTaintUntolerated evicts from a cluster with a NoExecute taint
	// that the binding does not tolerate, or no longer does.
	EvictionReasonTaintUntolerated = "TaintUntolerated"
	// EvictionReasonApplicationFailure evicts from a cluster in which the workload
	// has been unhealthy for too long.
	EvictionReasonApplicationFailure = "ApplicationFailure"
)

// Producers of an eviction.
const (
	// EvictionProducerTaintManager reacts to taints of clusters.
	EvictionProducerTaintManager = "TaintManager"
	// EvictionProducerRBApplicationFailover reacts to the health of a
	// ResourceBinding's workload.
	EvictionProducerRBApplicationFailover = "resource-binding-application-failover-controller"
	// EvictionProducerCRBApplicationFailover reacts to the health of a
	// ClusterResourceBinding's workload.
	EvictionProducerCRBApplicationFailover = "cluster-resource-binding-application-failover-controller"
)

// A GracefulEvictionTask is a cluster that a template is leaving. When the task
// is gone, so is what keeps the template there.
type GracefulEvictionTask struct {
	// FromCluster is the cluster that is left.
	FromCluster string `json:"fromCluster"`

	// PurgeMode says when the copy there is removed: Directly at once, else not
	// before the task ends. Empty: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +optional
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas is how many replicas the cluster had.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason says why in one word, such as TaintUntolerated.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message says why to a person.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Producer is who asked for it.
	Producer string `json:"producer"`

	// GracePeriodSeconds is how many seconds, at most, the copy is kept while the
	// new one becomes healthy. Absent: the control plane's setting, 600 unless
	// changed.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion, when true, keeps the task and the copy until a person sets
	// it to false, which ends the task at once. Absent: the task ends by itself.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState are labels, taken from the status of the copy that is
	// left, for the new copy.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is when the task began. It is filled in by the controller
	// that ends tasks; the grace period counts from it.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters the template was in before. None of
	// them is given PreservedLabelState.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}
