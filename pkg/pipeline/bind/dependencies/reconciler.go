package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/template"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// Templates are the objects of the control plane; see template.Store.
type Templates interface {
	Follow(gvk schema.GroupVersionKind)
	Get(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error)
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error)
	Resource(gvk schema.GroupVersionKind) (r dynamic.NamespaceableResourceInterface, namespaced bool, err error)
	Subscribe(handle func(template.Event)) (unsubscribe func())
}

// An Interpreter knows what templates depend on; see interpreter.Interpreter.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Dependencies(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// A Reconciler reconciles ResourceBindings.
type Reconciler struct {
	client      client.Client // reads from a cache that has the indices of index, and binding.ByTemplate
	live        client.Reader
	templates   Templates
	interpreter Interpreter
	exempt      func(schema.GroupVersionKind) bool
	releaseOnly bool
	record      events.EventRecorder
	ledger      *ledger
}

var _ Templates = (*template.Store)(nil)

var _ reconcile.ObjectReconciler[*workv1alpha2.ResourceBinding] = (*Reconciler)(nil)

// Reconcile sends along what an independent binding's template depends on, or no
// longer does, and lets an attached binding know of a change of its object.
func (r *Reconciler) Reconcile(ctx context.Context, rb *workv1alpha2.ResourceBinding) (reconcile.Result, error) {
	if !rb.DeletionTimestamp.IsZero() || !rb.Spec.PropagateDeps && !r.releaseOnly {
		if err := r.release(ctx, rb); err != nil || !rb.DeletionTimestamp.IsZero() {
			return reconcile.Result{}, err
		}
	}
	var err error
	if rb.Spec.PropagateDeps && !r.releaseOnly {
		err = r.distribute(ctx, rb)
	}
	return reconcile.Result{}, errors.Join(err, r.refresh(ctx, rb))
}

// distribute records what the template of rb depends on, and makes that go where
// rb goes.
func (r *Reconciler) distribute(ctx context.Context, rb *workv1alpha2.ResourceBinding) error {
	if len(rb.Spec.Clusters) == 0 && (!controllerutil.ContainsFinalizer(rb, names.DependenciesFinalizer) || !binding.IsDecided(rb)) {
		return nil // it goes nowhere yet, or nobody knows where
	}
	object, err := r.templates.Get(ctx, rb.Spec.Resource)
	if apierrors.IsNotFound(err) {
		return nil // its binding goes, too
	}
	if err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	if !r.interpreter.Supports(binding.GVK(rb.Spec.Resource), configv1alpha1.InterpreterOperationInterpretDependency) {
		return nil
	}
	refs, err := r.interpret(ctx, rb, object)
	if err != nil {
		r.record.Eventf(object, nil, corev1.EventTypeWarning, names.EventGetDependenciesFailed, "GetDependencies", "%s", brief.Note(err.Error()))
		return fmt.Errorf("get dependencies of %s %s: %w", rb.Spec.Resource.Kind, rb.Spec.Resource.Name, err)
	}
	news, err := r.remember(ctx, rb, refs)
	if err != nil || !rb.DeletionTimestamp.IsZero() {
		return err
	}
	if news {
		r.record.Eventf(object, nil, corev1.EventTypeNormal, names.EventGetDependenciesSucceed, "GetDependencies", "Get dependencies succeed.")
	}
	return r.sync(ctx, rb, refs, news)
}

// interpret asks what the template of rb depends on. Of one reference that is wrong
// nobody knows what it was to mean, so that none is used.
func (r *Reconciler) interpret(ctx context.Context, rb *workv1alpha2.ResourceBinding, object *unstructured.Unstructured) ([]reference, error) {
	refs, err := r.interpreter.Dependencies(ctx, object)
	if err != nil {
		return nil, err
	}
	refs = slices.Clone(refs)
	for i := range refs {
		if refs[i].Namespace, err = r.namespaceOf(rb, refs[i]); err != nil {
			return nil, err
		}
	}
	if err := checkAll(refs); err != nil {
		return nil, err
	}
	return ordered(refs), nil
}

// namespaceOf returns the namespace that a reference means: when it names none,
// that of the template, unless it is known that the kind has none.
func (r *Reconciler) namespaceOf(rb *workv1alpha2.ResourceBinding, ref reference) (string, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if ref.Namespace != "" || r.exempt(gvk) {
		return ref.Namespace, nil
	}
	_, namespaced, err := r.templates.Resource(gvk)
	switch {
	case meta.IsNoMatchError(err), err == nil && namespaced:
		return rb.Namespace, nil
	case err != nil:
		return "", fmt.Errorf("find out whether %s is in namespaces: %w", ref.Kind, err)
	default:
		return "", nil
	}
}

// remember writes down what rb's template depends on, and that rb must be released
// before it goes, in one write. It reports whether the former is news. A template
// that never depended on anything costs nothing.
func (r *Reconciler) remember(ctx context.Context, rb *workv1alpha2.ResourceBinding, refs []reference) (news bool, err error) {
	_, err = r.change(ctx, rb, func(rb *workv1alpha2.ResourceBinding) (err error) {
		if !rb.DeletionTimestamp.IsZero() {
			return nil
		}
		if news, err = record(rb, refs); err != nil {
			return err
		}
		if len(refs) == 0 && !news {
			return nil
		}
		controllerutil.AddFinalizer(rb, names.DependenciesFinalizer)
		if binding.ID(rb) == "" {
			rb.Labels = added(rb.Labels, names.ResourceBindingIDLabel, string(uuid.NewUUID()))
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("record dependencies: %w", err)
	}
	return news, nil
}

func added(to map[string]string, key, value string) map[string]string {
	if to == nil {
		to = map[string]string{}
	}
	to[key] = value
	return to
}

// sync attaches everything that is referred to, and detaches what no longer is.
func (r *Reconciler) sync(ctx context.Context, rb *workv1alpha2.ResourceBinding, refs []reference, news bool) error {
	var (
		errs        []error
		unsupported []string
		wrote       bool
	)
	for _, ref := range refs {
		if why := r.unsupported(rb, ref); why != "" {
			unsupported = append(unsupported, describe(ref)+" "+why)
			continue
		}
		did, err := r.attachAll(ctx, rb, ref)
		wrote = wrote || did
		if err != nil {
			errs = append(errs, fmt.Errorf("send along %s: %w", describe(ref), err))
		}
	}
	did, err := r.detachOthers(ctx, rb, refs)
	wrote = wrote || did
	err = errors.Join(append(errs, err)...)
	switch {
	case err != nil:
		r.record.Eventf(rb, nil, corev1.EventTypeWarning, names.EventSyncScheduleResultToDependenciesFailed, "SyncDependencies", "%s", brief.Note(err.Error()))
	case news && len(unsupported) > 0:
		r.record.Eventf(rb, nil, corev1.EventTypeWarning, names.EventSyncScheduleResultToDependenciesFailed, "SyncDependencies", "%s",
			brief.Note("Not sent along: "+strings.Join(unsupported, "; ")+". Select it by a policy of its own."))
	case wrote:
		r.record.Eventf(rb, nil, corev1.EventTypeNormal, names.EventSyncScheduleResultToDependenciesSucceed, "SyncDependencies", "Sync schedule results to dependencies succeed.")
	}
	return err
}

// unsupported says why what is referred to cannot be sent along, "" if it can. Only
// ResourceBindings are attached, to objects of their own namespace. That the API
// server cannot tell about a kind is left to whoever asks for its objects.
func (r *Reconciler) unsupported(rb *workv1alpha2.ResourceBinding, ref reference) string {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if r.exempt(gvk) {
		return "is never propagated"
	}
	if _, namespaced, err := r.templates.Resource(gvk); err == nil && !namespaced {
		return "is cluster-scoped"
	}
	if ref.Namespace != rb.Namespace {
		return "is not in namespace " + rb.Namespace
	}
	return ""
}

// release detaches everything that is attached to rb, which goes, or sends nothing
// along any more. It asks live as well, as what was attached a moment ago would be
// attached for ever.
func (r *Reconciler) release(ctx context.Context, rb *workv1alpha2.ResourceBinding) error {
	if !controllerutil.ContainsFinalizer(rb, names.DependenciesFinalizer) {
		return nil
	}
	attached, err := r.attachedTo(ctx, rb)
	if err != nil {
		return err
	}
	if id := binding.ID(rb); id != "" {
		list := &workv1alpha2.ResourceBindingList{}
		if err := r.live.List(ctx, list, client.InNamespace(rb.Namespace), client.MatchingLabels{label(rb): id}); err != nil {
			return fmt.Errorf("list what is attached: %w", err)
		}
		for i := range list.Items {
			known := func(a *workv1alpha2.ResourceBinding) bool { return a.Name == list.Items[i].Name }
			if !slices.ContainsFunc(attached, known) {
				attached = append(attached, &list.Items[i])
			}
		}
	}
	var errs []error
	for _, a := range attached {
		if _, err := r.detach(ctx, a, rb); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.record.Eventf(rb, nil, corev1.EventTypeWarning, names.EventSyncScheduleResultToDependenciesFailed, "SyncDependencies", "%s", brief.Note(err.Error()))
		return err
	}
	_, err = r.change(ctx, rb, func(rb *workv1alpha2.ResourceBinding) error {
		controllerutil.RemoveFinalizer(rb, names.DependenciesFinalizer)
		delete(rb.Annotations, names.DependenciesAnnotation)
		return nil
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release binding: %w", err)
	}
	return nil
}

// refresh tells an attached binding of a newer version of its object, so that this
// is rendered. For what a policy claims, stage bind does so.
func (r *Reconciler) refresh(ctx context.Context, a *workv1alpha2.ResourceBinding) error {
	if len(a.Spec.RequiredBy) == 0 || isClaimed(a) {
		return nil
	}
	object, err := r.templates.Get(ctx, a.Spec.Resource)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	wrote, err := r.change(ctx, a, func(a *workv1alpha2.ResourceBinding) error {
		ref := &a.Spec.Resource
		if a.DeletionTimestamp.IsZero() && ref.UID == object.GetUID() && isNewer(object.GetResourceVersion(), ref.ResourceVersion) {
			ref.ResourceVersion = object.GetResourceVersion()
		}
		return nil
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("refresh binding: %w", err)
	}
	if wrote {
		r.ledger.note(a)
	}
	return nil
}

// change changes a binding by one write, if change makes a difference; on a
// conflict it does so again on what is there, unless that is another one.
func (r *Reconciler) change(ctx context.Context, b *workv1alpha2.ResourceBinding, change func(*workv1alpha2.ResourceBinding) error) (wrote bool, err error) {
	first, uid := true, b.UID
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
				return err
			}
		}
		first, wrote = false, false
		if b.UID != uid {
			return nil
		}
		before := b.DeepCopy()
		if err := change(b); err != nil || equality.Semantic.DeepEqual(before, b) {
			return err
		}
		wrote = true
		return r.client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	return wrote && err == nil, err
}
