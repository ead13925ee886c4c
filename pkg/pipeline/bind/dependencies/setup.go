package dependencies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/template"
)

// Name is the controller's name in logs, metrics and events
// (spec: behaviour/03 3.10).
const Name = "dependencies-distributor"

// Options say what the controller works with, and how it runs.
type Options struct {
	// Templates are the objects of the control plane, and Interpreter knows what
	// they depend on. Required.
	Templates   Templates
	Interpreter Interpreter
	// Exempt says which kinds are never propagated. Nil: none.
	Exempt func(schema.GroupVersionKind) bool
	// ReleaseOnly is for when the gate PropagateDeps is off: nothing is sent along
	// or withdrawn then, but bindings that have been can be deleted.
	ReleaseOnly bool
	// Concurrency is how many bindings are worked on at a time
	// (--concurrent-dependent-resource-syncs). At least 1.
	Concurrency int
	// RateLimiter says when a binding that failed is tried again. Nil:
	// controller-runtime's.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

func (o Options) complete() (Options, error) {
	if o.Templates == nil || o.Interpreter == nil {
		return o, errors.New("templates and interpreter must be set")
	}
	if o.Exempt == nil {
		o.Exempt = func(schema.GroupVersionKind) bool { return false }
	}
	o.Concurrency = max(o.Concurrency, 1)
	return o, nil
}

// Setup adds the controller to a manager, whose cache must have the indices of
// binding.Index. It runs on the leader.
func Setup(mgr manager.Manager, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	if err := index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	r := &Reconciler{
		client:      mgr.GetClient(),
		live:        mgr.GetAPIReader(),
		templates:   o.Templates,
		interpreter: o.Interpreter,
		exempt:      o.Exempt,
		releaseOnly: o.ReleaseOnly,
		record:      mgr.GetEventRecorder(Name),
		ledger:      newLedger(),
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&workv1alpha2.ResourceBinding{}, builder.WithPredicates(sends())).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(referrers), builder.WithPredicates(r.gone())).
		WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			context.AfterFunc(ctx, o.Templates.Subscribe(func(e template.Event) {
				for _, request := range r.concerned(ctx, e.Old, e.New) {
					q.Add(request)
				}
			}))
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency, RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// Indices of ResourceBindings.
const (
	// byDependency indexes independent ones by the key of what they refer to.
	byDependency = "dependencies.object"
	// byReferrer indexes attached ones by the names of those that require them,
	// which are of the same namespace.
	byReferrer = "dependencies.referrer"
)

// index makes the indices.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	dependencies := func(o client.Object) []string {
		var keys []string
		for _, ref := range recorded(o) {
			if ref.Namespace == o.GetNamespace() {
				keys = append(keys, dependencyKey(groupKind(ref), ref.Name))
			}
		}
		return keys
	}
	if err := indexer.IndexField(ctx, &workv1alpha2.ResourceBinding{}, byDependency, dependencies); err != nil {
		return fmt.Errorf("index bindings by dependency: %w", err)
	}
	if err := indexer.IndexField(ctx, &workv1alpha2.ResourceBinding{}, byReferrer, referrerNames); err != nil {
		return fmt.Errorf("index bindings by what requires them: %w", err)
	}
	return nil
}

// dependencyKey is the key of an object in a namespace; without a name, of all
// references by labels to its kind.
func dependencyKey(gk schema.GroupKind, name string) string { return gk.String() + "/" + name }

// referrerNames returns the names of the bindings that require a binding.
func referrerNames(o client.Object) []string {
	a, ok := o.(*workv1alpha2.ResourceBinding)
	if !ok {
		return nil
	}
	var all []string
	for _, s := range a.Spec.RequiredBy {
		if s.Namespace == a.Namespace {
			all = append(all, s.Name)
		}
	}
	return all
}

// referrers asks those that require a binding to look after it.
func referrers(_ context.Context, o client.Object) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range referrerNames(o) {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
	}
	return all
}

// sends passes bindings that send along what their template depends on, or did.
func sends() predicate.Predicate {
	did := func(o client.Object) bool {
		rb, ok := o.(*workv1alpha2.ResourceBinding)
		return ok && (rb.Spec.PropagateDeps || controllerutil.ContainsFinalizer(rb, names.DependenciesFinalizer))
	}
	decided := func(o client.Object) bool {
		rb, ok := o.(*workv1alpha2.ResourceBinding)
		return ok && binding.IsDecided(rb)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return did(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			changed := e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				decided(e.ObjectOld) != decided(e.ObjectNew) ||
				// What was looked for, and not there yet, may have come before the cache
				// knew that somebody depends on it.
				e.ObjectOld.GetAnnotations()[names.DependenciesAnnotation] != e.ObjectNew.GetAnnotations()[names.DependenciesAnnotation]
			return changed && (did(e.ObjectOld) || did(e.ObjectNew))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// gone passes bindings that were deleted.
func (r *Reconciler) gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.ledger.forget(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

// concerned finds the bindings that have to do with a change of an object: those
// whose templates depend on it when it appears, or when labels by which it is
// selected change; and its own, if it is attached, when what is in it changes.
func (r *Reconciler) concerned(ctx context.Context, old, current *unstructured.Unstructured) []reconcile.Request {
	if current == nil || current.GetNamespace() == "" {
		return nil // its binding goes with it; nothing in no namespace is attached
	}
	var (
		all      []reconcile.Request
		gk       = current.GroupVersionKind().GroupKind()
		byLabels = func(sets ...map[string]string) {
			for _, rb := range r.listBy(ctx, current.GetNamespace(), byDependency, dependencyKey(gk, "")) {
				if slices.ContainsFunc(recorded(rb), func(ref reference) bool {
					return groupKind(ref) == gk && slices.ContainsFunc(sets, func(set map[string]string) bool { return selects(ref, set) })
				}) {
					all = append(all, requestFor(rb))
				}
			}
		}
	)
	switch {
	case old == nil || old.GetUID() != current.GetUID():
		for _, rb := range r.listBy(ctx, current.GetNamespace(), byDependency, dependencyKey(gk, current.GetName())) {
			all = append(all, requestFor(rb))
		}
		byLabels(current.GetLabels())
	case isSame(old, current):
	default:
		for _, a := range r.listBy(ctx, current.GetNamespace(), binding.ByTemplate, binding.TemplateKey(referenceTo(current))) {
			if len(a.Spec.RequiredBy) > 0 && !isClaimed(a) {
				all = append(all, requestFor(a))
			}
		}
		if !maps.Equal(old.GetLabels(), current.GetLabels()) {
			byLabels(old.GetLabels(), current.GetLabels())
		}
	}
	return all
}

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// listBy lists bindings by an index. They are shared: they must not be changed.
func (r *Reconciler) listBy(ctx context.Context, namespace, index, key string) []*workv1alpha2.ResourceBinding {
	list := &workv1alpha2.ResourceBindingList{}
	err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not list bindings", "index", index, "key", key)
		return nil
	}
	all := make([]*workv1alpha2.ResourceBinding, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// isSame reports whether two versions of an object differ in nothing that goes to a
// member (spec: behaviour/03 3.1).
func isSame(a, b *unstructured.Unstructured) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	return reflect.DeepEqual(relevant(a), relevant(b))
}

// relevant is a copy of an object, as far as it has to be one, without what changes
// by itself.
func relevant(u *unstructured.Unstructured) map[string]any {
	object := maps.Clone(u.Object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		delete(metadata, "resourceVersion")
		object["metadata"] = metadata
	}
	return object
}
