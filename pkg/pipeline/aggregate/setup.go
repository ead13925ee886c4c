// Package aggregate is the last stage of the pipeline: it brings together what
// the Works of a binding say about their clusters, in the status of the binding,
// and from there in the status of the template
// (spec: behaviour/02 2.4, 06 6.5, 03 3.11).
//
// Statuses of members change in quick succession, and one write tells of many
// changes: an object is written at most once in half a second.
package aggregate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Names of the controllers, one for each scope of binding.
const (
	Name        = "resource-binding-status-controller"
	ClusterName = "cluster-resource-binding-status-controller"
)

// Templates finds what a binding binds, and where to write it. What Get returns
// is shared: it is not changed.
type Templates interface {
	Get(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error)
	Resource(gvk schema.GroupVersionKind) (r dynamic.NamespaceableResourceInterface, namespaced bool, err error)
}

// An Interpreter makes one status of many. Aggregate returns an object of its own.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Aggregate(ctx context.Context, object *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
}

// Options say how statuses are brought together.
type Options struct {
	// Templates and Interpreter are required.
	Templates   Templates
	Interpreter Interpreter
	// Concurrency is how many bindings of a scope are worked on at a time. At
	// least 1.
	Concurrency int
	// RateLimiter says when a binding that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds one controller for each scope of binding. The manager's cache must
// have the indices of binding.Index.
func Setup(mgr manager.Manager, o Options) error {
	if o.Templates == nil || o.Interpreter == nil {
		return errors.New("set up aggregation: the templates and the interpreter must be set")
	}
	return errors.Join(
		setup(mgr, o, Name, &workv1alpha2.ResourceBinding{}),
		setup(mgr, o, ClusterName, &workv1alpha2.ClusterResourceBinding{}),
	)
}

func setup[B binding.Object](mgr manager.Manager, o Options, name string, of B) error {
	r := &Reconciler[B]{
		client:      mgr.GetClient(),
		live:        mgr.GetAPIReader(),
		templates:   o.Templates,
		interpreter: o.Interpreter,
		record:      mgr.GetEventRecorder(name),
		pace:        newPacer(time.Now),
	}
	err := builder.ControllerManagedBy(mgr).
		Named(name).
		For(of, builder.WithPredicates(bindingChanged())).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(bindingOf(name == Name)), builder.WithPredicates(statusChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1), RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// bindingChanged passes bindings that have been scheduled, when their template is
// another one, since its status has to be about it as it is now, and when other
// clusters are expected to have it.
func bindingChanged() predicate.Predicate {
	scheduled := func(o client.Object) bool {
		b, ok := o.(binding.Object)
		return ok && b.BindingStatus().LastScheduledTime != nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return scheduled(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(binding.Object)
			after, ok2 := e.ObjectNew.(binding.Object)
			return ok1 && ok2 && scheduled(after) &&
				(before.BindingSpec().Resource.ResourceVersion != after.BindingSpec().Resource.ResourceVersion ||
					!slices.Equal(binding.Expected(before.BindingSpec()), binding.Expected(after.BindingSpec())))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// statusChanged passes Works that tell something new of their cluster, or no
// longer do.
func statusChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			w, ok := e.Object.(*workv1alpha1.Work)
			return ok && len(w.Status.Conditions)+len(w.Status.ManifestStatuses) > 0
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*workv1alpha1.Work)
			after, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			return ok1 && ok2 && (before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				!sameBinding(before, after) || // the one that loses a Work and the one that gets it both are told
				!equality.Semantic.DeepEqual(before.Status, after.Status))
		},
	}
}

// sameBinding reports whether two states of a Work belong to the same binding.
func sameBinding(a, b *workv1alpha1.Work) bool {
	of, ok := binding.OfWork(a)
	now, stays := binding.OfWork(b)
	return of == now && ok == stays && a.Labels[names.ResourceBindingIDLabel] == b.Labels[names.ResourceBindingIDLabel] &&
		a.Labels[names.ClusterResourceBindingIDLabel] == b.Labels[names.ClusterResourceBindingIDLabel]
}

// bindingOf finds the binding of a Work, if that is of the scope.
func bindingOf(namespaced bool) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		w, ok := o.(*workv1alpha1.Work)
		if !ok {
			return nil
		}
		key, ok := binding.OfWork(w)
		if !ok || (key.Namespace != "") != namespaced {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	}
}
