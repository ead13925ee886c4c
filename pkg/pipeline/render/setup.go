// Package render is stage four of the pipeline: for each cluster that a binding
// names it makes a Work that carries the template there, with the cluster's share
// of replicas and what override policies say about it
// (spec: behaviour/02 2.3, 07 7.1).
//
// A Work that is no longer asked for goes, but only when that is certain: the
// binding was read from the API, a scheduler has decided about it, and every
// cluster that takes the template over has its Work.
package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// Names of the controllers, one for each scope of binding.
const (
	Name        = "binding-controller"
	ClusterName = "cluster-resource-binding-controller"
)

// Templates finds what a binding binds. What it returns is shared: it is not
// changed. NotFound means that the template is gone, for certain.
type Templates interface {
	Get(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error)
}

// An Interpreter knows where an object of some kind has its replicas. Revise
// returns an object of its own.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Revise(ctx context.Context, object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
}

// Options say how bindings are rendered.
type Options struct {
	// Templates and Interpreter are required.
	Templates   Templates
	Interpreter Interpreter
	// InjectState gives the copy that takes over after a failover the labels that
	// were preserved for it (gate StatefulFailoverInjection).
	InjectState bool
	// Concurrency is how many bindings of a scope are rendered at a time. At least 1.
	Concurrency int
	// RateLimiter says when a binding that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds one controller for each scope of binding. The manager's cache must
// have the indices of binding.Index.
func Setup(mgr manager.Manager, o Options) error {
	if o.Templates == nil || o.Interpreter == nil {
		return errors.New("set up rendering: the templates and the interpreter must be set")
	}
	return errors.Join(
		setup(mgr, o, Name, &workv1alpha2.ResourceBinding{}, &policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{}),
		setup(mgr, o, ClusterName, &workv1alpha2.ClusterResourceBinding{}, &policyv1alpha1.ClusterOverridePolicy{}),
	)
}

// setup adds the controller of one scope. overrides are the kinds of override
// policy that bindings of this scope heed.
func setup[B binding.Object](mgr manager.Manager, o Options, name string, of B, overrides ...client.Object) error {
	r := &Reconciler[B]{
		client:      mgr.GetClient(),
		live:        mgr.GetAPIReader(),
		templates:   o.Templates,
		interpreter: o.Interpreter,
		injectState: o.InjectState,
		record:      mgr.GetEventRecorder(name),
	}
	m := mapper{client: mgr.GetClient(), templates: o.Templates, namespaced: name == Name}
	b := builder.ControllerManagedBy(mgr).
		Named(name).
		For(of, builder.WithPredicates(bindingChanged())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(m.ofWork), builder.WithPredicates(disturbed())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(m.ofCluster), builder.WithPredicates(selectableChanged()))
	for _, policy := range overrides {
		b = b.Watches(policy, handler.EnqueueRequestsFromMapFunc(m.ofOverride), builder.WithPredicates(overrideChanged()))
	}
	options := controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1), RateLimiter: o.RateLimiter}
	if err := b.WithOptions(options).Complete(reconcile.AsReconciler(mgr.GetClient(), r)); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// bindingChanged passes what may change a Work: the spec, the deletion, the
// identity, and, where no cluster is named, what the scheduler says about that.
func bindingChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(binding.Object)
			after, ok2 := e.ObjectNew.(binding.Object)
			if !ok1 || !ok2 {
				return false
			}
			return before.GetGeneration() != after.GetGeneration() ||
				before.GetUID() != after.GetUID() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
				binding.ID(before) != binding.ID(after) ||
				binding.IsDecided(before) != binding.IsDecided(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// disturbed passes Works that somebody has changed, taken from their binding, or
// removed; their status changes by itself.
func disturbed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
	}
}

// selectableChanged passes Clusters of which something changed that override
// policies select them by.
func selectableChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok1 && ok2 && (!maps.Equal(before.Labels, after.Labels) ||
				before.Spec.Provider != after.Spec.Provider || before.Spec.Region != after.Spec.Region ||
				!slices.Equal(before.Spec.Zones, after.Spec.Zones))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// overrideChanged passes override policies that come, change or go. Those that
// are there at the start need not be looked at: all bindings are, by themselves.
func overrideChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
	}
}
