// Package observe is stage six of the pipeline: it brings what becomes of objects
// on the members back into the status of their Works. Push mode runs it in the
// controller manager, pull mode in the agent; the two differ in Options alone.
//
// A Work has one manifestStatus for each of its manifests whose object was seen:
// what the interpreter keeps of its status, and whether it is healthy
// (spec: behaviour/02 2.6). It never waits for a member: what is told comes from
// what is followed there. Nothing is written that says nothing new, and what
// changes quickly is written at most twice a second.
package observe

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Name is the controller's name in logs, metrics and events.
const Name = "work-status-controller"

// moreForPush is how many times more Works are worked on at once where there is
// more than one member.
const moreForPush = 4

// An Interpreter says what the status of an object means; see
// interpreter.Interpreter.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Status(ctx context.Context, obj *unstructured.Unstructured) (*runtime.RawExtension, error)
	Healthy(ctx context.Context, obj *unstructured.Unstructured) (bool, error)
}

// Options are all that differs between the two homes of this stage.
type Options struct {
	// Pool reaches the members. Required.
	Pool *member.Pool
	// Cluster is the one cluster that an agent serves. Empty: every Push cluster.
	Cluster string
	// Interpreter says what statuses mean. Nil: the native one alone.
	Interpreter Interpreter
	// News is what else is to be written with the status of a Work. Nil: nothing.
	News News
	// Concurrency is how many Works are worked on at a time for one member
	// (--concurrent-work-syncs). At least 1.
	Concurrency int
	// RateLimiter says when a Work that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// News are conditions of Works that somebody else has for the next status that is
// written: Pending returns them, and is Told when they are.
type News interface {
	Pending(w *workv1alpha1.Work) []metav1.Condition
	Told(w *workv1alpha1.Work, conditions []metav1.Condition)
}

func (o Options) complete() (Options, error) {
	if o.Pool == nil {
		return o, errors.New("the pool of members must be set")
	}
	if o.Interpreter == nil {
		o.Interpreter = interpreter.New(interpreter.Options{})
	}
	o.Concurrency = max(o.Concurrency, 1)
	return o, nil
}

// Setup adds the stage to a manager, whose cache must have the Works of the
// execution namespaces and the Clusters that are served.
func Setup(mgr manager.Manager, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:      mgr.GetClient(),
		members:     o.reach,
		unwatch:     o.Pool.Release,
		mine:        o.mine,
		interpreter: o.Interpreter,
		record:      mgr.GetEventRecorder(Name),
		news:        o.News,
		windows:     newWindows(),
		failures:    newFailures(),
	}
	workers := o.Concurrency
	if o.Cluster == "" {
		workers *= moreForPush
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&workv1alpha1.Work{}, builder.WithPredicates(predicate.NewPredicateFuncs(o.inScope), r.workChanged())).
		Watches(&clusterv1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(worksOf(mgr.GetClient())),
			builder.WithPredicates(predicate.NewPredicateFuncs(o.serves), becameReady())).
		WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			context.AfterFunc(ctx, o.Pool.Subscribe(func(e member.Event) {
				if request, ok := workOf(e); ok {
					q.Add(request)
				}
			}))
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// reach returns the member of a cluster.
func (o Options) reach(ctx context.Context, c *clusterv1alpha1.Cluster) (Member, error) {
	return o.Pool.Get(ctx, c)
}

// mine reports whether this process answers for the Works of a cluster.
func (o Options) mine(c *clusterv1alpha1.Cluster) bool {
	if o.Cluster != "" {
		return c.Name == o.Cluster
	}
	return c.Spec.SyncMode == clusterv1alpha1.Push
}

func (o Options) serves(obj client.Object) bool {
	c, ok := obj.(*clusterv1alpha1.Cluster)
	return ok && o.mine(c)
}

// inScope reports whether an object is in an execution namespace that may be
// ours; which clusters are Push clusters is known by their Clusters only.
func (o Options) inScope(obj client.Object) bool {
	cluster, err := names.ClusterOfExecutionNamespace(obj.GetNamespace())
	return err == nil && (o.Cluster == "" || cluster == o.Cluster)
}

// workOf returns the Work of the object that an event of a member tells of. What
// has gone says nothing: it is put back by another stage. Nothing on one member
// may speak for another.
func workOf(e member.Event) (reconcile.Request, bool) {
	if e.New == nil {
		return reconcile.Request{}, false
	}
	annotations := e.New.GetAnnotations()
	work := types.NamespacedName{Namespace: annotations[names.WorkNamespaceAnnotation], Name: annotations[names.WorkNameAnnotation]}
	return reconcile.Request{NamespacedName: work}, work.Name != "" && work.Namespace == names.ExecutionNamespace(e.Cluster)
}

// workChanged lets through what may bring a status: that a Work is new to us, or
// was applied.
func (r *Reconciler) workChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, okOld := e.ObjectOld.(*workv1alpha1.Work)
			current, ok := e.ObjectNew.(*workv1alpha1.Work)
			return okOld && ok && isApplied(current) && (!isApplied(old) || appliedGeneration(old) != appliedGeneration(current))
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.forget(e.Object)
			return false
		},
	}
}

// becameReady lets through that a cluster is ready again.
func becameReady() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // its Works come by themselves
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, okOld := e.ObjectOld.(*clusterv1alpha1.Cluster)
			current, ok := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return okOld && ok && !isReady(old) && isReady(current)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// worksOf finds the Works of a Cluster.
func worksOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, c client.Object) []reconcile.Request {
		var works workv1alpha1.WorkList
		err := reader.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(c.GetName())), client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Could not list the Works of a cluster", "cluster", c.GetName())
			return nil
		}
		requests := make([]reconcile.Request, 0, len(works.Items))
		for i := range works.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&works.Items[i])})
		}
		return requests
	}
}

func isReady(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}

func isApplied(w *workv1alpha1.Work) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.ConditionApplied)
}

// appliedGeneration returns the generation of a Work that was applied last.
func appliedGeneration(w *workv1alpha1.Work) int64 {
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionApplied); c != nil {
		return c.ObservedGeneration
	}
	return 0
}
