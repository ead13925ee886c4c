package unifiedauth

import (
	"context"
	"fmt"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

// Name is the name of the controller (spec: behaviour/02 2.8).
const Name = "unified-auth-controller"

// Options say how the controller runs.
type Options struct {
	// RateLimiter slows down what is tried again; nil is the library's default.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds the controller to a manager. It runs on the leader.
func Setup(mgr manager.Manager, o Options) error {
	m := mapper{client: mgr.GetClient()}
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(impersonatorChanged())).
		Owns(&workv1alpha1.Work{}, builder.WithPredicates(disturbed())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(m.ofRole), builder.WithPredicates(accessChanged())).
		Watches(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(m.ofBinding)).
		WithOptions(controller.Options{RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &Reconciler{client: mgr.GetClient(), record: mgr.GetEventRecorder(Name)}))
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

func impersonatorChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok1 && ok2 && (before.UID != after.UID || !reflect.DeepEqual(before.Spec.ImpersonatorSecretRef, after.Spec.ImpersonatorSecretRef))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// disturbed passes Works that somebody has changed or removed; their status
// changes by itself.
func disturbed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
	}
}

// accessChanged leaves out roles that have to do with no cluster, before or
// after.
func accessChanged() predicate.Predicate {
	grants := func(objects ...client.Object) bool {
		for _, o := range objects {
			if role, ok := o.(*rbacv1.ClusterRole); ok && !accessOf(role).none() {
				return true
			}
		}
		return false
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return grants(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return grants(e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return grants(e.Object) },
	}
}

// A mapper finds the clusters that a role or a binding has to do with.
type mapper struct{ client client.Reader }

func (m mapper) ofRole(ctx context.Context, o client.Object) []reconcile.Request {
	role, ok := o.(*rbacv1.ClusterRole)
	if !ok {
		return nil
	}
	return m.requests(ctx, accessOf(role))
}

func (m mapper) ofBinding(ctx context.Context, o client.Object) []reconcile.Request {
	b, ok := o.(*rbacv1.ClusterRoleBinding)
	if !ok || !isClusterRole(b.RoleRef) {
		return nil
	}
	role := &rbacv1.ClusterRole{}
	err := m.client.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, role)
	if apierrors.IsNotFound(err) {
		return nil // when it comes, or has gone, its own event says so
	}
	if err != nil {
		return m.requests(ctx, access{all: true}) // rather once too often
	}
	return m.requests(ctx, accessOf(role))
}

func (m mapper) requests(ctx context.Context, a access) []reconcile.Request {
	if a.none() {
		return nil
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := m.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil // a cache that does not answer has stopped
	}
	var requests []reconcile.Request
	for i := range clusters.Items {
		if name := clusters.Items[i].Name; a.includes(name) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		}
	}
	return requests
}
