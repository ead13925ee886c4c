package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// +kubebuilder:object:root=true

// A ResourceInterpreterContext is the message to an interpreter webhook, and its
// answer. It is never stored (spec: behaviour/06-interpreter.md 6.4).
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is the question. Only the control plane sets it.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is the answer. Only the webhook sets it.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// A ResourceInterpreterRequest is a question to a webhook.
type ResourceInterpreterRequest struct {
	// UID identifies the question. The answer repeats it.
	UID types.UID `json:"uid"`

	// Kind is the object's kind.
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name is the object's name.
	Name string `json:"name"`

	// Namespace is the object's namespace. Empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Operation is the question.
	Operation InterpreterOperation `json:"operation"`

	// Object is the object that is asked about.
	// +optional
	Object runtime.RawExtension `json:"object,omitzero"`

	// ObservedObject is what the cluster has. Only with Retain.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number of replicas to set. Only with ReviseReplica;
	// it is always sent, 0 otherwise.
	DesiredReplicas int32 `json:"replicas"`

	// AggregatedStatus is the status in each cluster. Only with AggregateStatus.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// A ResourceInterpreterResponse is the answer of a webhook.
type ResourceInterpreterResponse struct {
	// UID is the request's.
	UID types.UID `json:"uid"`

	// Successful says whether the question was answered.
	Successful bool `json:"successful"`

	// Status says why it was not. Required then.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch changes the object, or its status: for ReviseReplica, Retain and
	// AggregateStatus. Without it nothing changes.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the form of Patch. It is set exactly when Patch is.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// Replicas is how many replicas the object has. Required for InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ReplicaRequirements are what each replica needs. For InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Components are the kinds of pod. Required for InterpretComponent, where an
	// empty list says that there are none.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitzero"`

	// Dependencies are what the object refers to. Required for
	// InterpretDependency, where an empty list says that there are none.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitzero"`

	// RawStatus is what is kept of the status. Required for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy says whether the object is healthy. Required for InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// A RequestStatus says why a question was not answered.
type RequestStatus struct {
	// Message says why to a person.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is an HTTP status code.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// A PatchType is a form of patch.
type PatchType string

// PatchTypeJSONPatch is a JSON patch (RFC 6902), the only form there is.
const PatchTypeJSONPatch PatchType = "JSONPatch"

// A DependentObjectReference points to objects that another one refers to: by
// name, or by labels.
type DependentObjectReference struct {
	// APIVersion is their group and version.
	APIVersion string `json:"apiVersion"`

	// Kind is their kind.
	Kind string `json:"kind"`

	// Namespace is their namespace. Empty when they are cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the one object.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector matches the objects when there is no name.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
