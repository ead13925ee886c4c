package agentrights

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// Name is the controller's.
const Name = "agent-rights-controller"

// Setup adds the controller to a manager. It goes with agentcsrapproving, which gives the rights. Of ClusterRoles only
// the metadata is kept.
func Setup(mgr manager.Manager) error {
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", Name, err)
	}
	given := predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, ours := registration.GrantOf(o)
		return ours
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rbacv1.ClusterRole{}, builder.OnlyMetadata, builder.WithPredicates(given)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(rightsOf), builder.WithPredicates(becomes())).
		Complete(NewReconciler(mgr.GetClient(), live))
}

func rightsOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: registration.AgentRightsName(o.GetName())}}}
}

// becomes lets Clusters through when they are there, when their mode changes, and when those with an agent become Ready:
// not with each report of their status.
func becomes() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !isPush(e.ObjectOld) && !isReady(e.ObjectOld) && isReady(e.ObjectNew) || isPush(e.ObjectOld) != isPush(e.ObjectNew)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func isPush(o client.Object) bool {
	c, ok := o.(*clusterv1alpha1.Cluster)
	return ok && c.Spec.SyncMode == clusterv1alpha1.Push
}

func isReady(o client.Object) bool {
	c, ok := o.(*clusterv1alpha1.Cluster)
	if !ok {
		return false
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue
}
