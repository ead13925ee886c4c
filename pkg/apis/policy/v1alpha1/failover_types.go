package v1alpha1

// A FailoverBehavior says when a workload leaves a cluster, and how.
type FailoverBehavior struct {
	// Application reacts to the workload's own health. It needs PropagateDeps, so
	// that what the workload depends on follows it. Without it an unhealthy
	// workload stays where it is.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster reacts to taints of the cluster that evict workloads. Without it the
	// control plane's own setting is used.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`
}

// An ApplicationFailoverBehavior moves a workload that is unhealthy.
type ApplicationFailoverBehavior struct {
	// DecisionConditions say when the workload is given up in a cluster.
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode says when the old copy is removed. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default="Gracefully"
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is how many seconds, at most, the old copy is kept while
	// the new one becomes healthy. It is more than 0, and used with Gracefully
	// only. Default there: 600.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation hands parts of the old copy's status to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// A ClusterFailoverBehavior moves a workload out of a tainted cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode says when the old copy is removed. Default: Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default="Gracefully"
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation hands parts of the old copy's status to the new one.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions say when a workload is given up in a cluster.
type DecisionConditions struct {
	// TolerationSeconds is for how many seconds the workload may be unhealthy
	// before it is moved. 0 moves it at once. Default: 300.
	// +kubebuilder:default=300
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// A PurgeMode says when a workload is removed from a cluster that it leaves.
type PurgeMode string

// When the copy in the cluster that is left is removed.
const (
	// PurgeModeDirectly removes it first; the new copy is made when it is gone.
	// For workloads of which two must never run at once.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully removes it when the new copy is healthy, or when the
	// grace period is over.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever leaves it to a person to remove it.
	PurgeModeNever PurgeMode = "Never"
)

// StatePreservation carries parts of a workload's status from the cluster it
// leaves to the cluster it moves to, as labels on the new copy.
type StatePreservation struct {
	// Rules say what is carried over.
	Rules []StatePreservationRule `json:"rules"`
}

// A StatePreservationRule carries one value over.
type StatePreservationRule struct {
	// AliasLabelName is the label that holds the value on the new copy.
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath finds the value in the status that was collected from the old
	// cluster, in the template syntax of kubectl, such as "{ .availableReplicas }".
	// A key that is not there is an error.
	JSONPath string `json:"jsonPath"`
}
