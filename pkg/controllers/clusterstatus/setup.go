package clusterstatus

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Name is the name of the controller (spec: behaviour/02 2.2).
const Name = "cluster-status-controller"

// Options are all that differs between the controller manager and an agent.
type Options struct {
	// Pool reaches the members.
	Pool *member.Pool
	// Mine says which Clusters this process answers for: Pushed or Named.
	Mine func(*clusterv1alpha1.Cluster) bool

	// Frequency is how often a cluster is looked at.
	Frequency time.Duration
	// SuccessThreshold and FailureThreshold are how long a cluster must be seen
	// ready, or not ready, before its condition changes to that. The first look
	// counts at once.
	SuccessThreshold, FailureThreshold time.Duration

	// ResourceModeling sums up nodes and pods.
	ResourceModeling bool
	// CustomizedModels also counts nodes by the resource models of the Cluster:
	// the feature gate CustomizedClusterResourceModeling.
	CustomizedModels bool

	// LeaseDuration is how long the lease of an agent holds, DefaultLeaseDuration
	// in an agent; 0, for push mode, has none. It must be at least a second.
	LeaseDuration time.Duration
	// LeaseInterval is the time from one renewal of the lease to the next.
	LeaseInterval time.Duration

	// Metrics take what is found out.
	Metrics *metrics.Clusters
	// RateLimiter slows down what is tried again; nil is the library's default.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

func (o Options) thresholds() thresholds {
	return thresholds{success: o.SuccessThreshold, failure: o.FailureThreshold}
}

// Pushed is the Mine of the controller manager: push mode clusters that it has
// credentials for.
func Pushed(c *clusterv1alpha1.Cluster) bool {
	return c.Spec.SyncMode == clusterv1alpha1.Push && c.Spec.SecretRef != nil
}

// Named returns the Mine of an agent: the one cluster of its own.
func Named(cluster string) func(*clusterv1alpha1.Cluster) bool {
	return func(c *clusterv1alpha1.Cluster) bool {
		return c.Name == cluster && c.Spec.SyncMode == clusterv1alpha1.Pull
	}
}

// Setup adds the controller to a manager. It runs on the leader.
func Setup(mgr manager.Manager, o Options) error {
	log := mgr.GetLogger().WithName(Name)
	f := newFleet(func(ctx context.Context, c *clusterv1alpha1.Cluster, kick chan struct{}, delay time.Duration) {
		l := &loop{
			name: c.Name, uid: c.UID,
			client: mgr.GetClient(), live: mgr.GetAPIReader(), log: log,
			o: o, now: time.Now, kick: kick, patience: patience,
		}
		l.run(ctx, delay)
	}, o.Frequency, func(name string) {
		o.Pool.Forget(name)
		o.Metrics.Forget(name)
	})
	if err := mgr.Add(f); err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(specOrFinalizersChanged())).
		WithOptions(controller.Options{RateLimiter: o.RateLimiter}).
		Complete(&reconciler{client: mgr.GetClient(), fleet: f, mine: o.Mine})
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// specOrFinalizersChanged leaves out what this controller itself writes.
func specOrFinalizersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			controllerutil.ContainsFinalizer(e.ObjectOld, names.ClusterFinalizer) != controllerutil.ContainsFinalizer(e.ObjectNew, names.ClusterFinalizer)
	}}
}

// A keeper is told which clusters are to be looked at.
type keeper interface {
	keep(*clusterv1alpha1.Cluster)
	drop(name string)
}

// A reconciler only says which clusters are looked at; it never waits for one.
type reconciler struct {
	client client.Client
	fleet  keeper
	mine   func(*clusterv1alpha1.Cluster) bool
}

// Reconcile has a Cluster looked at from when it has its finalizer until it is
// gone.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, request.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err):
		r.fleet.drop(request.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read the Cluster: %w", err)
	case !r.mine(c):
		r.fleet.drop(request.Name)
	case controllerutil.ContainsFinalizer(c, names.ClusterFinalizer):
		r.fleet.keep(c)
	}
	return reconcile.Result{}, nil
}
