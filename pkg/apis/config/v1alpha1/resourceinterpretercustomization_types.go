package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope=Cluster,shortName=ric,categories={karmada-io}
// +kubebuilder:printcolumn:name="TARGET-API-VERSION",type="string",JSONPath=".spec.target.apiVersion"
// +kubebuilder:printcolumn:name="TARGET-KIND",type="string",JSONPath=".spec.target.kind"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"

// A ResourceInterpreterCustomization teaches the control plane, by Lua scripts,
// what resources of one kind mean. It comes before every other interpreter.
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which kind, and holds the scripts.
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A ResourceInterpreterCustomizationList is a list of
// ResourceInterpreterCustomizations.
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the customizations.
	Items []ResourceInterpreterCustomization `json:"items"`
}

// ResourceInterpreterCustomizationSpec says which kind, and holds the scripts.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind.
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts, one for each operation. An operation without
	// one is left to the other interpreters.
	Customizations CustomizationRules `json:"customizations"`
}

// A CustomizationTarget is the kind that a customization is for.
type CustomizationTarget struct {
	// APIVersion is the group and version, such as apps/v1. It matches exactly.
	APIVersion string `json:"apiVersion"`

	// Kind is the kind.
	Kind string `json:"kind"`
}

// CustomizationRules are scripts for the operations of an interpreter. Several
// customizations for one kind may each hold some; for an operation that more
// than one has, the name that sorts first wins, except that the results of all
// dependency scripts are put together.
type CustomizationRules struct {
	// Retention keeps parts of the object in the cluster that the cluster owns:
	// function Retain(desiredObj, observedObj).
	// +optional
	Retention *LocalValueRetention `json:"retention,omitempty"`

	// ReplicaResource says how many replicas an object has and what each needs:
	// function GetReplicas(obj).
	// +optional
	ReplicaResource *ReplicaResourceRequirement `json:"replicaResource,omitempty"`

	// ComponentResource says the same for an object with several kinds of pod:
	// function GetComponents(obj).
	// +optional
	ComponentResource *ComponentResourceRequirement `json:"componentResource,omitempty"`

	// ReplicaRevision sets how many replicas an object has: function
	// ReviseReplica(obj, replica).
	// +optional
	ReplicaRevision *ReplicaRevision `json:"replicaRevision,omitempty"`

	// StatusReflection says what is kept of the status in a cluster: function
	// ReflectStatus(obj).
	// +optional
	StatusReflection *StatusReflection `json:"statusReflection,omitempty"`

	// StatusAggregation makes one status of those in the clusters: function
	// AggregateStatus(obj, items).
	// +optional
	StatusAggregation *StatusAggregation `json:"statusAggregation,omitempty"`

	// HealthInterpretation says whether an object is healthy: function
	// InterpretHealth(obj).
	// +optional
	HealthInterpretation *HealthInterpretation `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation says what an object refers to: function
	// GetDependencies(obj).
	// +optional
	DependencyInterpretation *DependencyInterpretation `json:"dependencyInterpretation,omitempty"`
}

// LocalValueRetention keeps parts of the object that is in the cluster.
type LocalValueRetention struct {
	// LuaScript defines Retain(desiredObj, observedObj), which returns the desired
	// object with those parts taken over.
	LuaScript string `json:"luaScript"`
}

// ReplicaResourceRequirement says how many replicas an object has.
type ReplicaResourceRequirement struct {
	// LuaScript defines GetReplicas(obj), which returns the number and what each
	// one needs, or nil for that.
	LuaScript string `json:"luaScript"`
}

// ComponentResourceRequirement says which kinds of pod an object has.
type ComponentResourceRequirement struct {
	// LuaScript defines GetComponents(obj), which returns a list of tables with
	// name, replicas and replicaRequirements, or nil.
	LuaScript string `json:"luaScript"`
}

// ReplicaRevision sets how many replicas an object has.
type ReplicaRevision struct {
	// LuaScript defines ReviseReplica(obj, replica), which returns the object with
	// that number.
	LuaScript string `json:"luaScript"`
}

// StatusReflection says what is kept of the status in a cluster.
type StatusReflection struct {
	// LuaScript defines ReflectStatus(obj), which returns a table.
	LuaScript string `json:"luaScript"`
}

// StatusAggregation makes one status of many.
type StatusAggregation struct {
	// LuaScript defines AggregateStatus(obj, items), which returns the object with
	// its status made from the items, one for each cluster.
	LuaScript string `json:"luaScript"`
}

// HealthInterpretation says whether an object is healthy.
type HealthInterpretation struct {
	// LuaScript defines InterpretHealth(obj), which returns a boolean.
	LuaScript string `json:"luaScript"`
}

// DependencyInterpretation says what an object refers to.
type DependencyInterpretation struct {
	// LuaScript defines GetDependencies(obj), which returns a list of tables with
	// apiVersion, kind, namespace, and name or labelSelector.
	LuaScript string `json:"luaScript"`
}
