package namespace

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// Name is the controller's name in logs, metrics and events (spec: behaviour/02 2.7).
const Name = "namespace-sync-controller"

// Options say which Namespaces are propagated, and how.
type Options struct {
	// Exempt are namespaces that are not (--skipped-propagating-namespaces). The
	// reserved ones and default never are.
	Exempt exempt.Namespaces
	// Concurrency is how many Namespaces are worked on at a time
	// (--concurrent-namespace-syncs). At least 1.
	Concurrency int
	// RateLimiter says when a Namespace that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds the controller to a manager. It runs on the leader.
func Setup(mgr manager.Manager, o Options) error {
	m := mapper{client: mgr.GetClient(), propagates: o.propagates}
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), propagates: o.propagates, record: mgr.GetEventRecorder(Name)}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Namespace{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return m.propagates(o.GetName()) }), relabelled())).
		Owns(&workv1alpha1.Work{}, builder.WithPredicates(disturbed())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(m.all), builder.WithPredicates(newSpaces())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(m.all), builder.WithPredicates(clusterChanged())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, handler.EnqueueRequestsFromMapFunc(m.selected), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1), RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// propagates reports whether a Namespace of this name may be propagated
// (spec: behaviour/01 1.1).
func (o Options) propagates(name string) bool {
	return name != names.DefaultNamespace && !o.Exempt.Has(name)
}

// opted reports whether somebody has said that a Namespace is not to be propagated.
func opted(ns client.Object) bool {
	return strings.EqualFold(ns.GetLabels()[names.SkipAutoPropagationLabel], names.True)
}

// relabelled passes changes of what travels of a Namespace.
func relabelled() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false }, // the garbage collector sees to the Works
	}
}

// disturbed passes Works that somebody has changed or removed, or that are no
// longer those of a binding; their status changes by itself.
func disturbed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || bound(e.ObjectOld) && !bound(e.ObjectNew)
		},
	}
}

// newSpaces passes namespaces for Works when they come: before, a cluster can have
// none.
func newSpaces() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			_, err := names.ClusterOfExecutionNamespace(e.Object.GetName())
			return err == nil
		},
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// clusterChanged passes new Clusters, and changes of that by which override
// policies choose clusters.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok1 && ok2 && (before.UID != after.UID || !maps.Equal(before.Labels, after.Labels) ||
				before.Spec.Provider != after.Spec.Provider || before.Spec.Region != after.Spec.Region || !reflect.DeepEqual(before.Spec.Zones, after.Spec.Zones))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// bound reports whether a Work is that of a binding.
func bound(o client.Object) bool {
	w, ok := o.(*workv1alpha1.Work)
	if !ok {
		return false
	}
	_, named := binding.OfWork(w)
	return named || w.Labels[names.ClusterResourceBindingIDLabel] != ""
}

// A mapper finds the Namespaces that a change has to do with.
type mapper struct {
	client     client.Reader
	propagates func(name string) bool
}

func (m mapper) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return m.which(ctx, func(*corev1.Namespace) bool { return true })
}

// selected finds those that an override policy selects.
func (m mapper) selected(ctx context.Context, o client.Object) []reconcile.Request {
	p, ok := o.(*policyv1alpha1.ClusterOverridePolicy)
	if !ok {
		return nil
	}
	return m.which(ctx, func(ns *corev1.Namespace) bool {
		return policy.OverrideLevel(&p.Spec, policy.Subject{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, Labels: ns.Labels}) != policy.None
	})
}

func (m mapper) which(ctx context.Context, is func(*corev1.Namespace) bool) []reconcile.Request {
	list := &corev1.NamespaceList{}
	if err := m.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list Namespaces")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if ns := &list.Items[i]; m.propagates(ns.Name) && !opted(ns) && is(ns) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ns)})
		}
	}
	return requests
}
