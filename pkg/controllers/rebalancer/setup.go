package rebalancer

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
)

// Name is the controller's name in logs and metrics (spec: behaviour/10 10.6).
const Name = "workload-rebalancer"

// concurrency is how many rebalancers are worked on at a time: one that is large,
// or in trouble, does not keep the others.
const concurrency = 4

// Options say how the controller runs.
type Options struct {
	// RateLimiter says when a rebalancer that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds the controller to a manager, whose cache has the indices of
// binding.Index. It runs on the leader.
func Setup(mgr manager.Manager, o Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&appsv1alpha1.WorkloadRebalancer{}, builder.WithPredicates(asked())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// asked passes rebalancers that are new, or want something else. What their status
// says is our own doing.
func asked() predicate.Predicate {
	return predicate.And(predicate.GenerationChangedPredicate{}, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})
}
