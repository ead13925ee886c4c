package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadrebalancers,scope=Cluster
// +kubebuilder:subresource:status

// A WorkloadRebalancer asks the scheduler, once, to divide the replicas of some
// workloads anew, without regard to where they are now.
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which workloads.
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status says which of them have been asked for.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A WorkloadRebalancerList is a list of WorkloadRebalancers.
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the rebalancers.
	Items []WorkloadRebalancer `json:"items"`
}

// WorkloadRebalancerSpec says which workloads are rebalanced.
type WorkloadRebalancerSpec struct {
	// Workloads are the workloads.
	// +kubebuilder:validation:MinItems=1
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is how many seconds after it has finished the
	// rebalancer deletes itself. 0 is at once. Absent: never.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// An ObjectReference points to a workload in the control plane.
type ObjectReference struct {
	// APIVersion is the workload's group and version.
	APIVersion string `json:"apiVersion"`

	// Kind is the workload's kind.
	Kind string `json:"kind"`

	// Name is the workload's name.
	Name string `json:"name"`

	// Namespace is the workload's namespace. Empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus says how far a rebalancer has come.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads are the workloads dealt with, sorted by apiVersion, kind,
	// namespace and name.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the spec that this is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when the last workload was dealt with.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// An ObservedWorkload is a workload that was dealt with.
type ObservedWorkload struct {
	// Workload is the workload.
	Workload ObjectReference `json:"workload"`

	// Result says whether the scheduler was asked: Successful or Failed. Empty:
	// not yet.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason says why it failed.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}

// A RebalanceResult says whether the scheduler was asked.
type RebalanceResult string

// Whether the scheduler was asked.
const (
	// RebalanceSuccessful says that it was.
	RebalanceSuccessful RebalanceResult = "Successful"
	// RebalanceFailed says that it will not be.
	RebalanceFailed RebalanceResult = "Failed"
)

// A RebalanceFailedReason says why the scheduler will not be asked.
type RebalanceFailedReason string

// RebalanceObjectNotFound says that the workload has no binding: it does not
// exist, or no policy has claimed it.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"
