package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpreterwebhookconfigurations,scope=Cluster,categories={karmada-io}

// A ResourceInterpreterWebhookConfiguration teaches the control plane, by
// webhooks, what resources of some kinds mean.
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are the webhooks. Of those that match, only the first by
	// configuration name and webhook name is called.
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// +kubebuilder:object:root=true

// A ResourceInterpreterWebhookConfigurationList is a list of
// ResourceInterpreterWebhookConfigurations.
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the configurations.
	Items []ResourceInterpreterWebhookConfiguration `json:"items"`
}

// A ResourceInterpreterWebhook is one webhook.
type ResourceInterpreterWebhook struct {
	// Name is the webhook's name: fully qualified, and unique in its configuration.
	Name string `json:"name"`

	// ClientConfig says how to reach it, always by https. A service is looked up
	// in the control plane.
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules say when it is called; one that matches is enough.
	// +optional
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// TimeoutSeconds is how long to wait for an answer, from 1 to 30 seconds.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// InterpreterContextVersions are the versions of ResourceInterpreterContext
	// that the webhook understands, in order of preference. v1alpha1 must be among
	// them.
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations matches a call by operation and kind.
type RuleWithOperations struct {
	// Operations are the operations, or "*" alone for all.
	Operations []InterpreterOperation `json:"operations"`

	// Rule says for which kinds.
	Rule `json:",inline"`
}

// A Rule matches kinds.
type Rule struct {
	// APIGroups are the groups, or "*" for all. The core group is "".
	APIGroups []string `json:"apiGroups"`

	// APIVersions are the versions, or "*" for all.
	APIVersions []string `json:"apiVersions"`

	// Kinds are the kinds, or "*" for all.
	Kinds []string `json:"kinds"`
}

// An InterpreterOperation is a question about a resource.
type InterpreterOperation string

// The operations of an interpreter.
const (
	// InterpreterOperationAll stands for all of them, in rules only.
	InterpreterOperationAll InterpreterOperation = "*"
	// InterpreterOperationInterpretReplica asks how many replicas an object has and
	// what each needs.
	InterpreterOperationInterpretReplica InterpreterOperation = "InterpretReplica"
	// InterpreterOperationInterpretComponent asks the same for an object with
	// several kinds of pod.
	InterpreterOperationInterpretComponent InterpreterOperation = "InterpretComponent"
	// InterpreterOperationReviseReplica sets how many replicas an object has.
	InterpreterOperationReviseReplica InterpreterOperation = "ReviseReplica"
	// InterpreterOperationInterpretStatus asks what is kept of a status.
	InterpreterOperationInterpretStatus InterpreterOperation = "InterpretStatus"
	// InterpreterOperationPrune is known but never asked, and refused in rules.
	InterpreterOperationPrune InterpreterOperation = "Prune"
	// InterpreterOperationRetain takes over what the cluster owns.
	InterpreterOperationRetain InterpreterOperation = "Retain"
	// InterpreterOperationAggregateStatus makes one status of many.
	InterpreterOperationAggregateStatus InterpreterOperation = "AggregateStatus"
	// InterpreterOperationInterpretHealth asks whether an object is healthy.
	InterpreterOperationInterpretHealth InterpreterOperation = "InterpretHealth"
	// InterpreterOperationInterpretDependency asks what an object refers to.
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
)
