package bind

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/policy"
	"github.com/karmadactl/karmadactl/pkg/template"
)

// Names of the controllers in logs, metrics and events.
const (
	Name                    = "resource-detector"
	PolicyController        = "propagation-policy-controller"
	ClusterPolicyController = "cluster-propagation-policy-controller"
)

// Templates are the users' objects in the control plane, a template.Store.
type Templates interface {
	Follow(gvk schema.GroupVersionKind)
	Subscribe(handle func(template.Event)) (unsubscribe func())
	// Synced reports whether all templates of a kind are known, and have been or
	// will be told of.
	Synced(gvk schema.GroupVersionKind) bool
	// Cached returns nil for a template that is not there; known is false when
	// that has to be asked live.
	Cached(gvk schema.GroupVersionKind, namespace, name string) (t *unstructured.Unstructured, known bool)
	Live(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error)
	ListClaimed(ctx context.Context, gvk schema.GroupVersionKind, namespace, label, id string) ([]*unstructured.Unstructured, error)
	Resource(gvk schema.GroupVersionKind) (r dynamic.NamespaceableResourceInterface, namespaced bool, err error)
}

// A Matcher knows all policies, and which of them wins for a template. This stage
// tells it of them, before it asks.
type Matcher interface {
	Set(p policy.Object)
	Delete(namespace, name string)
	Get(namespace, name string) (policy.Object, bool)
	Best(s policy.Subject) (policy.Object, bool)
	// Preemptors returns the policies of a scope that take templates from others
	// and whose priority is between two, the highest first.
	Preemptors(namespace string, above, below int32) []policy.Object
}

// An Interpreter knows what a template asks of clusters.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Replicas(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
}

// Options say what this stage works with.
type Options struct {
	// Templates, Matcher and Interpreter are required. Exempt kinds are for the
	// Templates not to follow.
	Templates   Templates
	Matcher     Matcher
	Interpreter Interpreter
	// ExemptNamespace says in which namespaces nothing is propagated
	// (exempt.Namespaces.Has). Required.
	ExemptNamespace func(string) bool
	// Gate is asked for PropagationPolicyPreemption, PriorityBasedScheduling,
	// MultiplePodTemplatesScheduling, ResourceQuotaEstimate and WorkloadAffinity.
	// Required.
	Gate featuregate.FeatureGate

	// TemplateConcurrency, PolicyConcurrency and ClusterPolicyConcurrency are how
	// many of each are worked on at once (--concurrent-resource-template-syncs,
	// --concurrent-propagation-policy-syncs,
	// --concurrent-cluster-propagation-policy-syncs). At least 1.
	TemplateConcurrency, PolicyConcurrency, ClusterPolicyConcurrency int
	// TemplateRateLimiter says when a template that failed is tried again. Nil:
	// controller-runtime's.
	TemplateRateLimiter workqueue.TypedRateLimiter[Key]
	// PolicyRateLimiter makes the limiters of the two queues of policies. Nil:
	// controller-runtime's.
	PolicyRateLimiter func() workqueue.TypedRateLimiter[reconcile.Request]
	// Registerer takes the metrics. Required.
	Registerer prometheus.Registerer
}

func (o Options) complete() (Options, error) {
	if o.Templates == nil || o.Matcher == nil || o.Interpreter == nil || o.ExemptNamespace == nil || o.Gate == nil || o.Registerer == nil {
		return o, errors.New("stage bind needs templates, matcher, interpreter, exempt namespaces, feature gate and registerer")
	}
	if o.PolicyRateLimiter == nil {
		o.PolicyRateLimiter = func() workqueue.TypedRateLimiter[reconcile.Request] { return nil }
	}
	return o, nil
}

// Setup adds the stage to a manager. The indices of binding.Index must be there.
func Setup(mgr manager.Manager, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	m, err := newMeters(o.Registerer)
	if err != nil {
		return err
	}
	if err := indexPolicies(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	queue := newInbox(o.ExemptNamespace)
	ledger := newLedger()
	claims := &claimer{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), templates: o.Templates,
	}
	r := &reconciler{
		claimer:     claims,
		matcher:     o.Matcher,
		interpreter: o.Interpreter,
		gate:        o.Gate,
		record:      mgr.GetEventRecorder(Name),
		ledger:      ledger,
		meters:      m,
	}
	if err := setupTemplates(mgr, o, r, queue); err != nil {
		return err
	}
	policies := policyReconciler{
		claimer: claims, matcher: o.Matcher, record: mgr.GetEventRecorder(Name), ledger: ledger, queue: queue, meters: m,
		preemption: o.Gate.Enabled(features.PropagationPolicyPreemption),
	}
	return errors.Join(
		setupPolicies[*policyv1alpha1.PropagationPolicy](mgr, o, policies, PolicyController, o.PolicyConcurrency, &policyv1alpha1.OverridePolicy{}),
		setupPolicies[*policyv1alpha1.ClusterPropagationPolicy](mgr, o, policies, ClusterPolicyController, o.ClusterPolicyConcurrency, &policyv1alpha1.ClusterOverridePolicy{}),
	)
}

func setupTemplates(mgr manager.Manager, o Options, r *reconciler, queue *inbox) error {
	log := mgr.GetLogger().WithValues("controller", Name)
	c, err := controller.NewTyped(Name, mgr, controller.TypedOptions[Key]{
		Reconciler:              r,
		MaxConcurrentReconciles: max(o.TemplateConcurrency, 1),
		RateLimiter:             o.TemplateRateLimiter,
		LogConstructor: func(k *Key) logr.Logger {
			if k == nil {
				return log
			}
			return log.WithValues("kind", k.GroupVersionKind.String(), "namespace", k.Namespace, "name", k.Name)
		},
	})
	if err != nil {
		return fmt.Errorf("set up controller %s: %w", Name, err)
	}
	if err := c.Watch(&feed{cache: mgr.GetCache(), templates: o.Templates, matcher: o.Matcher, ledger: r.ledger, queue: queue}); err != nil {
		return fmt.Errorf("watch templates: %w", err)
	}
	return nil
}

// setupPolicies adds the controller of one scope of policy, P, whose dependent
// overrides are of the kind of override.
func setupPolicies[P policy.Object](mgr manager.Manager, o Options, r policyReconciler, name string, concurrency int, override client.Object) error {
	kind, err := newPolicy[P]()
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(kind, builder.WithPredicates(policyChanged())).
		Watches(override, handler.EnqueueRequestsFromMapFunc(dependents(mgr.GetClient())), builder.WithPredicates(createdOnly()))
	if r.preemption {
		b = b.Watches(kind, lowered(o.Matcher))
	}
	err = b.WithOptions(controller.Options{MaxConcurrentReconciles: max(concurrency, 1), RateLimiter: o.PolicyRateLimiter()}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconcilerOf[P](r)))
	if err != nil {
		return fmt.Errorf("set up controller %s: %w", name, err)
	}
	return nil
}

// policyChanged lets through what concerns templates: the spec, the deletion, and
// that a policy has become able to claim.
func policyChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, okOld := e.ObjectOld.(policy.Object)
			current, ok := e.ObjectNew.(policy.Object)
			return okOld && ok && (old.GetGeneration() != current.GetGeneration() ||
				old.GetDeletionTimestamp().IsZero() != current.GetDeletionTimestamp().IsZero() ||
				policy.By(old).ID != policy.By(current).ID)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false }, // its finalizer has seen to everything
	}
}

func createdOnly() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// lowered sends policies through that may now take the templates of one whose
// priority has fallen (spec: behaviour/03 3.9).
func lowered(m Matcher) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			old, okOld := e.ObjectOld.(policy.Object)
			current, ok := e.ObjectNew.(policy.Object)
			if !okOld || !ok {
				return
			}
			before, now := policy.Priority(old.PropagationSpec()), policy.Priority(current.PropagationSpec())
			if now >= before {
				return
			}
			for _, p := range m.Preemptors(current.GetNamespace(), now, before) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			}
		},
	}
}
