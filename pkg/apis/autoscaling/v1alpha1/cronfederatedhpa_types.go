package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="REFERENCE-KIND",type="string",JSONPath=".spec.scaleTargetRef.kind"
// +kubebuilder:printcolumn:name="REFERENCE-NAME",type="string",JSONPath=".spec.scaleTargetRef.name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A CronFederatedHPA scales by the clock: a resource template directly, or a
// FederatedHPA by its limits.
type CronFederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is scaled, and when.
	Spec CronFederatedHPASpec `json:"spec"`

	// Status is what has been done.
	// +optional
	Status CronFederatedHPAStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A CronFederatedHPAList is a list of CronFederatedHPAs.
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the autoscalers.
	Items []CronFederatedHPA `json:"items"`
}

// CronFederatedHPASpec says what is scaled, and when.
type CronFederatedHPASpec struct {
	// ScaleTargetRef is a FederatedHPA, or a template that has a scale
	// sub-resource.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules say when, and to what.
	Rules []CronFederatedHPARule `json:"rules"`
}

// A CronFederatedHPARule says when to scale, and to what.
type CronFederatedHPARule struct {
	// Name names the rule. It is unique in its CronFederatedHPA.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// Schedule is when, in the five fields of cron.
	Schedule string `json:"schedule"`

	// TargetReplicas is the number of replicas to set, at least 0. Required for a
	// template, not used for a FederatedHPA.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas is the MinReplicas to set on a FederatedHPA, at least 1.
	// It, or TargetMaxReplicas, is required there.
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas is the MaxReplicas to set on a FederatedHPA, at least 1.
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend stops the rule. Default: false.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone is the zone of the schedule, such as Europe/Berlin. Absent: that of
	// the control plane.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is how many successful executions the status keeps.
	// Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +optional
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is how many failed executions the status keeps.
	// Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus is what has been done.
type CronFederatedHPAStatus struct {
	// ExecutionHistories are the histories of the rules.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// An ExecutionHistory is the history of one rule.
type ExecutionHistory struct {
	// RuleName is the rule.
	RuleName string `json:"ruleName"`

	// NextExecutionTime is when it is due next. Absent while it is suspended.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are those that scaled, the latest first.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are those that did not, the latest first.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// A SuccessfulExecution is an execution that scaled.
type SuccessfulExecution struct {
	// ScheduleTime is when it was due.
	ScheduleTime metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it took place.
	ExecutionTime metav1.Time `json:"executionTime"`

	// AppliedReplicas is the number of replicas it set on a template.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is the MaxReplicas it set on a FederatedHPA.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is the MinReplicas it set on a FederatedHPA.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// A FailedExecution is an execution that did not scale.
type FailedExecution struct {
	// ScheduleTime is when it was due.
	ScheduleTime metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when it took place.
	ExecutionTime metav1.Time `json:"executionTime"`

	// Message says why it failed.
	Message string `json:"message"`
}
