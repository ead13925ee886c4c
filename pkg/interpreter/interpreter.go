package interpreter

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A Layer answers questions about some kinds. Only what it Supports is asked.
// A layer never changes what it is handed, which others read at the same time;
// what it returns belongs to the caller.
type Layer interface {
	// Supports says whether the layer answers a question about a kind.
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	// Replicas returns how many replicas an object wants, and what one of them
	// needs: nil, if it asks for nothing.
	Replicas(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	// Components returns the same for an object with several kinds of pods.
	Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	// Revise returns the object with another number of replicas.
	Revise(ctx context.Context, obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	// Retain returns desired with what is the member's own in observed.
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Aggregate returns the object with the status that members' statuses make.
	Aggregate(ctx context.Context, obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
	// Dependencies returns what the object refers to.
	Dependencies(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
	// Status returns what of the object's status is worth keeping, nil for none.
	Status(ctx context.Context, obj *unstructured.Unstructured) (*runtime.RawExtension, error)
	// Healthy says whether the object does what it is for.
	Healthy(ctx context.Context, obj *unstructured.Unstructured) (bool, error)
}

// Options are what differs between the places that interpret.
type Options struct {
	// ForQuotas adds to requirements what quotas are chosen by: the namespace,
	// and the priority class of the pods. It is gate ResourceQuotaEstimate
	// (spec: behaviour/03 3.7).
	ForQuotas bool
}

// An Interpreter is what the pipeline asks. It is a Layer itself. It is safe for
// use by many at once.
type Interpreter struct {
	layers  []Layer
	options Options
}

var _ Layer = (*Interpreter)(nil)

// New returns an interpreter that asks the layers in their order, and the native
// one last.
func New(o Options, layers ...Layer) *Interpreter {
	return &Interpreter{options: o, layers: append(slices.Clone(layers), newNative(o))}
}

// An UnsupportedError says that nobody answers a question about a kind. Callers
// that may ask about any kind ask Supports first.
type UnsupportedError struct {
	GVK       schema.GroupVersionKind
	Operation configv1alpha1.InterpreterOperation
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("there is no interpreter of %s for %s", e.Operation, e.GVK)
}

// Supports says whether any layer answers a question about a kind. About
// InterpretStatus one always does.
func (i *Interpreter) Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return i.find(gvk, op) != nil
}

func (i *Interpreter) find(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) Layer {
	for _, l := range i.layers {
		if l.Supports(gvk, op) {
			return l
		}
	}
	return nil
}

// ask puts a question to the first layer that knows it. Its error is the answer:
// a lower layer would answer by other rules than those that a user has set.
func (i *Interpreter) ask(obj *unstructured.Unstructured, op configv1alpha1.InterpreterOperation, question func(Layer) error) error {
	gvk := obj.GroupVersionKind()
	l := i.find(gvk, op)
	if l == nil {
		return &UnsupportedError{GVK: gvk, Operation: op}
	}
	if err := question(l); err != nil {
		return fmt.Errorf("%s of %s %s: %w", op, gvk.Kind, nameOf(obj), err)
	}
	return nil
}

func nameOf(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}

// Replicas returns how many replicas an object wants, and what one of them
// needs: nil, if it asks for nothing.
func (i *Interpreter) Replicas(ctx context.Context, obj *unstructured.Unstructured) (replicas int32, needs *workv1alpha2.ReplicaRequirements, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationInterpretReplica, func(l Layer) (err error) {
		replicas, needs, err = l.Replicas(ctx, obj)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	if i.options.ForQuotas && needs != nil && needs.Namespace == "" {
		needs.Namespace = obj.GetNamespace()
	}
	return replicas, needs, nil
}

// Components returns what Replicas does for an object with several kinds of pods.
// There is no native layer of it.
func (i *Interpreter) Components(ctx context.Context, obj *unstructured.Unstructured) (components []workv1alpha2.Component, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationInterpretComponent, func(l Layer) (err error) {
		components, err = l.Components(ctx, obj)
		return err
	})
	return components, err
}

// Revise returns the object with another number of replicas.
func (i *Interpreter) Revise(ctx context.Context, obj *unstructured.Unstructured, replicas int64) (revised *unstructured.Unstructured, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationReviseReplica, func(l Layer) (err error) {
		revised, err = l.Revise(ctx, obj, replicas)
		return err
	})
	return revised, err
}

// Retain returns desired with what is the member's own in observed.
func (i *Interpreter) Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (retained *unstructured.Unstructured, err error) {
	err = i.ask(desired, configv1alpha1.InterpreterOperationRetain, func(l Layer) (err error) {
		retained, err = l.Retain(ctx, desired, observed)
		return err
	})
	return retained, err
}

// Aggregate returns the object with the status that those of members make. The
// order of items is no matter. When what they say is in the status already, it
// comes back as it was, so whoever compares has nothing to write.
func (i *Interpreter) Aggregate(ctx context.Context, obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (aggregated *unstructured.Unstructured, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationAggregateStatus, func(l Layer) (err error) {
		aggregated, err = l.Aggregate(ctx, obj, items)
		return err
	})
	return aggregated, err
}

// Dependencies returns what the object refers to. Each reference has a kind, and
// either a name or a valid selector (spec: behaviour/06 6.7).
func (i *Interpreter) Dependencies(ctx context.Context, obj *unstructured.Unstructured) (references []configv1alpha1.DependentObjectReference, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationInterpretDependency, func(l Layer) (err error) {
		references, err = l.Dependencies(ctx, obj)
		if err != nil {
			return err
		}
		for n, r := range references {
			if err := validate(r); err != nil {
				return fmt.Errorf("dependency %d: %w", n, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return references, nil
}

func validate(r configv1alpha1.DependentObjectReference) error {
	switch {
	case r.APIVersion == "":
		return fmt.Errorf("it has no apiVersion (kind %q, name %q)", r.Kind, r.Name)
	case r.Kind == "":
		return fmt.Errorf("it has no kind (apiVersion %q, name %q)", r.APIVersion, r.Name)
	case r.Name == "" && r.LabelSelector == nil:
		return fmt.Errorf("it has neither name nor labelSelector (apiVersion %q, kind %q)", r.APIVersion, r.Kind)
	}
	if _, err := metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
		return fmt.Errorf("labelSelector of %s %q: %w", r.Kind, r.Name, err)
	}
	return nil
}

// Status returns what of the object's status is worth keeping, nil for none.
func (i *Interpreter) Status(ctx context.Context, obj *unstructured.Unstructured) (status *runtime.RawExtension, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationInterpretStatus, func(l Layer) (err error) {
		status, err = l.Status(ctx, obj)
		return err
	})
	return status, err
}

// Healthy says whether the object does what it is for.
func (i *Interpreter) Healthy(ctx context.Context, obj *unstructured.Unstructured) (healthy bool, err error) {
	err = i.ask(obj, configv1alpha1.InterpreterOperationInterpretHealth, func(l Layer) (err error) {
		healthy, err = l.Healthy(ctx, obj)
		return err
	})
	return healthy, err
}
