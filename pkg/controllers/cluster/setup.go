package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Name is the name of the controller (spec: behaviour/02 2.1).
const Name = "cluster-controller"

// settle is how long the removal of a cluster waits for more events of the same
// sort: thousands of Works may go at once, and each pass looks at all of them.
const settle = 100 * time.Millisecond

// Options say how Clusters are looked after.
type Options struct {
	// RateLimiter slows down what is tried again; nil is the library's default.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// MonitorPeriod is how often the leases of pull mode clusters are looked at.
	MonitorPeriod time.Duration
	// MonitorGracePeriod is how long an agent may be silent before its cluster's
	// readiness is unknown.
	MonitorGracePeriod time.Duration
	// StartupGracePeriod is the same for a cluster that has never reported, from
	// its creation on.
	StartupGracePeriod time.Duration
}

// Setup adds the controller and the monitor of agents to a manager, which has
// the indices of binding.Index. Both run on the leader.
func Setup(mgr manager.Manager, o Options) error {
	r := &Reconciler{
		client:  mgr.GetClient(),
		live:    mgr.GetAPIReader(),
		record:  mgr.GetEventRecorder(Name),
		now:     time.Now,
		leaving: newNameSet(),
	}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(clusterChanged())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfNamespace), builder.WithPredicates(deletions())).
		Watches(&workv1alpha1.Work{}, r.whenLeaving(clusterOfWork)).
		Watches(&workv1alpha2.ResourceBinding{}, r.whenLeaving(binding.Clusters)).
		Watches(&workv1alpha2.ClusterResourceBinding{}, r.whenLeaving(binding.Clusters)).
		WithOptions(controller.Options{RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return mgr.Add(newMonitor(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetLogger().WithName("cluster-monitor"), o))
}

// clusterChanged passes changes that matter here: the status changes all the
// time, and of it only the readiness does.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok1 && ok2 && facts(before) != facts(after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// A factSheet is all that a reconcile depends on.
type factSheet struct {
	uid        string
	generation int64
	deleted    bool
	finalizer  bool
	ready      metav1.ConditionStatus
	cascade    string
}

func facts(c *clusterv1alpha1.Cluster) factSheet {
	f := factSheet{
		uid:        string(c.UID),
		generation: c.Generation,
		deleted:    !c.DeletionTimestamp.IsZero(),
		finalizer:  controllerutil.ContainsFinalizer(c, names.ClusterFinalizer),
		cascade:    c.Annotations[names.ClusterCascadeAnnotation],
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
		f.ready = ready.Status
	}
	return f
}

// deletions passes nothing else.
func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// clusterOfNamespace finds the cluster of an execution namespace.
func clusterOfNamespace(_ context.Context, o client.Object) []reconcile.Request {
	cluster, err := names.ClusterOfExecutionNamespace(o.GetName())
	if err != nil {
		return nil // not one
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cluster}}}
}

func clusterOfWork(o client.Object) []string {
	cluster, err := names.ClusterOfExecutionNamespace(o.GetNamespace())
	if err != nil {
		return nil
	}
	return []string{cluster}
}

// whenLeaving enqueues the clusters of an object that are being removed, a
// moment later.
func (r *Reconciler) whenLeaving(clusters func(client.Object) []string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queue, objects ...client.Object) {
		for _, o := range objects {
			for _, cluster := range clusters(o) {
				if r.leaving.has(cluster) {
					q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: cluster}}, settle)
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object) },
	}
}
