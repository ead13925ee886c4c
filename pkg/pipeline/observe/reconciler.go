package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// kindSoon is after how long a Work looks again whose kinds the member is being
// asked for.
const kindSoon = time.Second

// A Member is what this stage needs of a member cluster, none of which waits for
// it; see member.Member.
type Member interface {
	// Watch makes what a Work needs be followed, Cached says what is there, and
	// Lookup where to find a kind.
	Watch(work string, kinds ...schema.GroupVersionResource) error
	Cached(gvr schema.GroupVersionResource, namespace, name string) (obj *unstructured.Unstructured, known bool)
	Lookup(gvk schema.GroupVersionKind) (mapping *meta.RESTMapping, known bool)
}

// A Reconciler reconciles Works.
type Reconciler struct {
	client client.Client // reads from a cache

	members     func(context.Context, *clusterv1alpha1.Cluster) (Member, error)
	unwatch     func(cluster, work string) // what a Work that is gone needed
	mine        func(*clusterv1alpha1.Cluster) bool
	interpreter Interpreter
	record      events.EventRecorder

	news     News // nil: there never is any
	windows  *windows
	failures *failures
}

var _ reconcile.ObjectReconciler[*workv1alpha1.Work] = (*Reconciler)(nil)

// Reconcile makes the status of a Work tell what is known of its objects.
func (r *Reconciler) Reconcile(ctx context.Context, w *workv1alpha1.Work) (reconcile.Result, error) {
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	key := client.ObjectKeyFromObject(w)
	if wait := r.windows.wait(key, w.ResourceVersion); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c, err := r.cluster(ctx, w)
	if err != nil || c == nil {
		return reconcile.Result{}, err
	}
	m, err := r.members(ctx, c)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reach cluster %s: %w", c.Name, err)
	}
	seen, all, err := look(m, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{}
	if !all && isApplied(w) {
		result.RequeueAfter = kindSoon
	}
	if len(seen) == 0 {
		return result, nil
	}
	next, failed := r.interpret(ctx, w, seen)
	if same(w.Status.ManifestStatuses, next) {
		r.windows.close(key)
		return result, failed
	}
	var news []metav1.Condition
	more := slices.ContainsFunc(seen, func(s sight) bool { return isUnsettled(s.object) })
	if r.news != nil {
		news = r.news.Pending(w)
		more = more || !isApplied(w) && len(news) == 0
	}
	if more && r.windows.hold(key) { // there will be more to write soon
		return reconcile.Result{RequeueAfter: pause}, failed
	}
	if rest := r.windows.rest(key); rest > 0 && !isHealthy(next) {
		return reconcile.Result{RequeueAfter: rest}, failed
	}
	return result, errors.Join(failed, r.write(ctx, w, next, news))
}

// cluster returns the Cluster of a Work, nil when it is not ours, or not ready:
// then it brings its Works back when it is.
func (r *Reconciler) cluster(ctx context.Context, w *workv1alpha1.Work) (*clusterv1alpha1.Cluster, error) {
	name, err := names.ClusterOfExecutionNamespace(w.Namespace)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	c := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, c); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	if !r.mine(c) || !isReady(c) {
		return nil, nil
	}
	return c, nil
}

// A sight is an object as it was seen last. It is shared.
type sight struct {
	id     workv1alpha1.ResourceIdentifier
	object *unstructured.Unstructured
}

// look finds the objects of a Work among what is followed on its member, and has
// what was applied be followed. all is false when there are kinds of which nobody
// knows yet where to find them.
func look(m Member, w *workv1alpha1.Work) (seen []sight, all bool, err error) {
	all = true
	var kinds []schema.GroupVersionResource
	for ordinal, manifest := range w.Spec.Workload.Manifests {
		id, err := identify(ordinal, manifest)
		if err != nil {
			continue // who applies it says so
		}
		mapping, known := m.Lookup(gvkOf(id))
		if !known {
			all = false
			continue
		}
		if !slices.Contains(kinds, mapping.Resource) {
			kinds = append(kinds, mapping.Resource)
		}
		namespace := id.Namespace
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
		if obj, _ := m.Cached(mapping.Resource, namespace, id.Name); obj != nil && isOf(obj, w) {
			seen = append(seen, sight{id: id, object: obj})
		}
	}
	if all && isApplied(w) {
		if err := m.Watch(w.Name, kinds...); err != nil {
			return nil, false, err
		}
	}
	return seen, all, nil
}

// isOf reports whether an object says that it came by a Work.
func isOf(obj *unstructured.Unstructured, w *workv1alpha1.Work) bool {
	annotations := obj.GetAnnotations()
	return annotations[names.WorkNamespaceAnnotation] == w.Namespace && annotations[names.WorkNameAnnotation] == w.Name
}

// interpret returns what the status of a Work shall say: of what was seen what it
// is now, of the other manifests what it was. That something could not be
// interpreted is told, once; then its old status stays, and its health is
// unknown.
func (r *Reconciler) interpret(ctx context.Context, w *workv1alpha1.Work, seen []sight) (next []workv1alpha1.ManifestStatus, failed error) {
	key := client.ObjectKeyFromObject(w)
	var status, health error
	for ordinal, manifest := range w.Spec.Workload.Manifests {
		id, err := identify(ordinal, manifest)
		if err != nil {
			continue
		}
		is := workv1alpha1.ManifestStatus{Identifier: id}
		old := find(w.Status.ManifestStatuses, id)
		if old != nil {
			is = *old
		}
		at := slices.IndexFunc(seen, func(s sight) bool { return s.id == id })
		if at < 0 {
			if old != nil {
				next = append(next, is)
			}
			continue
		}
		obj := seen[at].object
		reflected, err := r.status(ctx, obj)
		if err != nil {
			status = errors.Join(status, err)
		} else {
			is.Status = reflected
		}
		is.Health, err = r.health(ctx, obj)
		health = errors.Join(health, err)
		next = append(next, is)
	}
	failed = errors.Join(status, health)
	if r.failures.note(key, textOf(failed)) {
		r.tellFailure(w, names.EventReflectStatusFailed, status)
		r.tellFailure(w, names.EventInterpretHealthFailed, health)
	}
	return next, failed
}

func (r *Reconciler) status(ctx context.Context, obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status, err := r.interpreter.Status(ctx, obj)
	if err != nil {
		return nil, fmt.Errorf("reflect the status: %w", err)
	}
	return withoutNulls(status)
}

// health interprets the health of an object: what nobody can tell of is healthy.
func (r *Reconciler) health(ctx context.Context, obj *unstructured.Unstructured) (workv1alpha1.ResourceHealth, error) {
	if !r.interpreter.Supports(obj.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretHealth) {
		return workv1alpha1.ResourceHealthy, nil
	}
	healthy, err := r.interpreter.Healthy(ctx, obj)
	switch {
	case err != nil:
		return workv1alpha1.ResourceUnknown, fmt.Errorf("interpret the health: %w", err)
	case healthy:
		return workv1alpha1.ResourceHealthy, nil
	}
	return workv1alpha1.ResourceUnhealthy, nil
}

// write writes the status of a Work, and news of another stage. Of the rest that
// that one writes it says nothing. So it needs no lock, and neither waits for the
// other.
func (r *Reconciler) write(ctx context.Context, w *workv1alpha1.Work, next []workv1alpha1.ManifestStatus, news []metav1.Condition) error {
	status := map[string]any{"manifestStatuses": next}
	if len(news) > 0 {
		status["conditions"] = news
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	written := &workv1alpha1.Work{}
	written.Namespace, written.Name = w.Namespace, w.Name
	if err := r.client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsNotFound(err) || binding.IsSuccessor(err) {
			return nil
		}
		return fmt.Errorf("write status: %w", err)
	}
	r.windows.wrote(client.ObjectKeyFromObject(w), written.ResourceVersion, isHealthy(next))
	if len(news) > 0 {
		r.news.Told(w, news)
	}
	r.tellNews(w, next)
	return nil
}

// tellNews tells what of the objects of a Work is new.
func (r *Reconciler) tellNews(w *workv1alpha1.Work, next []workv1alpha1.ManifestStatus) {
	for _, is := range next {
		old := find(w.Status.ManifestStatuses, is.Identifier)
		if old == nil && is.Status != nil || old != nil && !sameStatus(old.Status, is.Status) {
			r.record.Eventf(w, nil, corev1.EventTypeNormal, names.EventReflectStatusSucceed, "ReflectStatus",
				"The status of %s was reflected.", describe(is.Identifier))
		}
		if is.Health != workv1alpha1.ResourceUnknown && (old == nil || old.Health != is.Health) {
			r.record.Eventf(w, nil, corev1.EventTypeNormal, names.EventInterpretHealthSucceed, "InterpretHealth",
				"%s is now %s.", describe(is.Identifier), is.Health)
		}
	}
}

func (r *Reconciler) tellFailure(w *workv1alpha1.Work, reason string, err error) {
	if err != nil {
		r.record.Eventf(w, nil, corev1.EventTypeWarning, reason, "Interpret", "%s", brief.Note(err.Error()))
	}
}

// forget drops what is known about a Work that is gone.
func (r *Reconciler) forget(w client.Object) {
	key := client.ObjectKeyFromObject(w)
	r.windows.close(key)
	r.failures.note(key, "")
	if cluster, err := names.ClusterOfExecutionNamespace(key.Namespace); err == nil {
		r.unwatch(cluster, key.Name)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func describe(id workv1alpha1.ResourceIdentifier) string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}
