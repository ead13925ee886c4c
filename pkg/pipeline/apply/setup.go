// Package apply is stage five of the pipeline: it makes a member cluster hold
// what its Works say. Push mode runs it in the controller manager, pull mode in
// the agent; the two differ in Options alone.
//
// A Work's manifests are created, updated, repaired when somebody changes or
// removes them on the member, and deleted or released with the Work. One that
// needs a namespace or a CRD waits for it, and one that somebody there keeps
// changing back is repaired less and less often. Nothing
// that lacks our mark is touched, unless the manifest says to overwrite it, and no
// namespace is deleted that was there before, or holds what is not ours. What came
// of it is in the conditions Dispatching and Applied of the Work
// (spec: behaviour/02 2.5).
package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
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
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Name is the controller's name in logs, metrics and events.
const Name = "execution-controller"

// membersAtOnce is how many members can be busy, or hang, before a further one
// has to wait.
const membersAtOnce = 16

// Options are all that differs between the two homes of this stage.
type Options struct {
	// Pool reaches the members. Required.
	Pool *member.Pool
	// Cluster is the one cluster that an agent serves. Empty: every Push cluster.
	Cluster string
	// Interpreter keeps what a member itself has put into an object. Nil: the
	// native one alone.
	Interpreter Interpreter
	// Notes are the good news that whoever writes the rest of a Work's status takes
	// along. Nil: they are written at once.
	Notes *Notes
	// Concurrency is how many Works of one member are applied at a time
	// (--concurrent-work-syncs). At least 1.
	Concurrency int
	// RateLimiter says when a Work that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Registerer takes the metrics. Required.
	Registerer prometheus.Registerer
}

// An Interpreter keeps what a member itself has put into an object: Retain returns
// desired with that of observed, for kinds of which it Supports this. See
// interpreter.Interpreter.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

func (o Options) complete() (Options, error) {
	if o.Pool == nil || o.Registerer == nil {
		return o, errors.New("the pool of members and the registerer of metrics must be set")
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
	resources, err := metrics.NewResources(o.Registerer)
	if err != nil {
		return err
	}
	durations, err := newDurations(o.Registerer)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:         mgr.GetClient(),
		live:           mgr.GetAPIReader(),
		members:        o.reach,
		unwatch:        o.Pool.Release,
		mine:           o.mine,
		interpreter:    o.Interpreter,
		record:         mgr.GetEventRecorder(Name),
		tellsTemplates: o.Cluster == "",
		resources:      resources,
		durations:      durations,
		ledger:         newLedger(),
		waits:          newWaits(),
		repairs:        newRepairs(),
		written:        newWritten(),
		notes:          o.Notes,
	}
	lanes := newLanes(o.Concurrency)
	workers := o.Concurrency
	if o.Cluster == "" {
		workers *= membersAtOnce
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&workv1alpha1.Work{}, builder.WithPredicates(predicate.NewPredicateFuncs(o.inScope), r.workChanged())).
		Watches(&clusterv1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(worksOf(mgr.GetClient())),
			builder.WithPredicates(predicate.NewPredicateFuncs(o.serves), r.clusterChanged())).
		WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			lanes.reopen(q.Add)
			r.waits.reopen(q.Add)
			context.AfterFunc(ctx, o.Pool.Subscribe(func(e member.Event) {
				r.arrived(e)
				if request, after, drifted := r.drifted(e); drifted {
					q.AddAfter(request, after)
				}
			}))
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: o.RateLimiter}).
		Complete(lanes.wrap(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// reach returns the member of a cluster.
func (o Options) reach(ctx context.Context, c *clusterv1alpha1.Cluster) (Member, error) {
	m, err := o.Pool.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	return connected{m}, nil
}

// A connected is a Member.
type connected struct{ *member.Member }

func (c connected) Metadata() (metadata.Interface, error) {
	return metadata.NewForConfigAndClient(metadata.ConfigFor(c.Config()), c.HTTP())
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

// workChanged lets through what concerns the member: the spec, and the deletion.
// Statuses are our own doing.
func (r *Reconciler) workChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			r.written.seen(e.ObjectNew)
			if w, ok := e.ObjectNew.(*workv1alpha1.Work); ok && isApplied(w) {
				r.notes.drop(w)
			}
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.released(e.Object)
			return false
		},
	}
}

// clusterChanged lets through what the Works of a cluster wait for: that it is
// ready, or leaves.
func (r *Reconciler) clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // it is not ready yet, or its Works come by themselves
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, okOld := e.ObjectOld.(*clusterv1alpha1.Cluster)
			current, ok := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return okOld && ok && (isReady(old) != isReady(current) || isLeaving(old) != isLeaving(current))
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.forget(e.Object.GetName())
			return true
		},
	}
}

// worksOf finds the Works of a Cluster.
func worksOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, c client.Object) []reconcile.Request {
		var works workv1alpha1.WorkList
		if err := reader.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(c.GetName()))); err != nil {
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

func isLeaving(c *clusterv1alpha1.Cluster) bool { return !c.DeletionTimestamp.IsZero() }

// newDurations registers work_sync_workload_duration_seconds, by result
// (spec: behaviour/15 15.1), or finds the one that another role of this process
// has registered.
func newDurations(r prometheus.Registerer) (*prometheus.HistogramVec, error) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "work_sync_workload_duration_seconds",
		Help:    "How long it takes to apply the manifests of a Work to its cluster.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}, []string{"result"})
	err := r.Register(h)
	if err == nil {
		return h, nil
	}
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(*prometheus.HistogramVec); ok {
			return existing, nil
		}
	}
	return nil, fmt.Errorf("register metric: %w", err)
}
