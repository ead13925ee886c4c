package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

var (
	// errBound says that a Work is that of a binding, which says what is in it.
	errBound = errors.New("it is the Work of a binding")
	// errTaken says that a Work carries something else.
	errTaken = errors.New("the name is taken by a Work of something else")
	// errIdentity says that something else would go to the cluster.
	errIdentity = errors.New("override policies make another object of it")
)

// A Reconciler reconciles Namespaces.
type Reconciler struct {
	client     client.Client // reads from a cache
	live       client.Reader
	propagates func(name string) bool
	record     events.EventRecorder
}

var _ reconcile.ObjectReconciler[*corev1.Namespace] = (*Reconciler)(nil)

// Reconcile makes every cluster have a Work for a Namespace. A cluster that fails
// does not keep the others. One that is exempt gets none; those that it has stay.
func (r *Reconciler) Reconcile(ctx context.Context, ns *corev1.Namespace) (reconcile.Result, error) {
	if !r.propagates(ns.Name) || !ns.DeletionTimestamp.IsZero() || opted(ns) {
		return reconcile.Result{}, nil
	}
	object, err := toUnstructured(ns)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	clusters, policies := &clusterv1alpha1.ClusterList{}, &policyv1alpha1.ClusterOverridePolicyList{}
	for _, list := range []client.ObjectList{clusters, policies} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	var again, final []error
	for i := range clusters.Items {
		c := &clusters.Items[i]
		err := r.sync(ctx, c, ns, object, policies.Items)
		var bad *override.Error
		switch {
		case err == nil:
		case errors.As(err, &bad), errors.Is(err, errIdentity):
			final = append(final, fmt.Errorf("cluster %s: %w", c.Name, err)) // it is right only when something is changed
		default:
			again = append(again, fmt.Errorf("cluster %s: %w", c.Name, err))
		}
	}
	if len(again) == 0 && len(final) > 0 {
		return reconcile.Result{}, reconcile.TerminalError(errors.Join(final...))
	}
	return reconcile.Result{}, errors.Join(append(again, final...)...)
}

// sync makes one cluster have the Work.
func (r *Reconciler) sync(
	ctx context.Context, c *clusterv1alpha1.Cluster, ns *corev1.Namespace, object *unstructured.Unstructured, policies []policyv1alpha1.ClusterOverridePolicy,
) error {
	if ready, err := r.hasSpace(ctx, c); !ready || err != nil {
		return err
	}
	result, err := r.override(c, ns, object, policies)
	if err != nil {
		return err
	}
	w, err := workOf(c, ns, result)
	if err != nil {
		return err
	}
	candidates, err := r.names(ctx, w.Namespace, ns)
	if err != nil {
		return err
	}
	for _, w.Name = range candidates {
		changed, err := binding.EnsureWork(ctx, r.client, w, result.Object, binding.Live(r.live), binding.OnlyIf(func(w *workv1alpha1.Work) error { return mine(w, ns.Name) }))
		switch {
		case errors.Is(err, errTaken):
			continue
		case errors.Is(err, errBound):
			return r.own(ctx, client.ObjectKeyFromObject(w), ns)
		case errors.Is(err, binding.ErrWorkDeleted), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // when it is gone, that brings the Namespace back; a cluster that leaves needs none
		case err != nil:
			return err
		}
		if changed {
			r.recordOverridden(ns, c.Name, result)
		}
		return nil
	}
	return errTaken
}

// hasSpace reports whether there is a namespace for Works of a cluster. When there
// is one, all Namespaces are looked at.
func (r *Reconciler) hasSpace(ctx context.Context, c *clusterv1alpha1.Cluster) (bool, error) {
	if !c.DeletionTimestamp.IsZero() {
		return false, nil
	}
	space := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: names.ExecutionNamespace(c.Name)}, space, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the namespace for Works: %w", err)
	}
	return space.DeletionTimestamp.IsZero(), nil
}

// override makes a Namespace what a cluster is to have.
func (r *Reconciler) override(
	c *clusterv1alpha1.Cluster, ns *corev1.Namespace, object *unstructured.Unstructured, policies []policyv1alpha1.ClusterOverridePolicy,
) (override.Result, error) {
	result, err := override.Apply(object, c, policies, nil)
	if err == nil && (result.Object.GroupVersionKind() != object.GroupVersionKind() || result.Object.GetName() != ns.Name || result.Object.GetNamespace() != "") {
		err = fmt.Errorf("%w: %s %s", errIdentity, result.Object.GroupVersionKind(), client.ObjectKeyFromObject(result.Object))
	}
	if err != nil {
		what := "Apply override policies"
		var bad *override.Error
		if errors.As(err, &bad) {
			what = fmt.Sprintf("Apply cluster override policy(%s)", bad.Name)
		}
		r.record.Eventf(ns, nil, corev1.EventTypeWarning, names.EventApplyOverridePolicyFailed, "ApplyOverridePolicy", "%s",
			brief.Note(fmt.Sprintf("%s for cluster(%s) failed: %v", what, c.Name, err)))
		return override.Result{}, err
	}
	return result, nil
}

// recordOverridden tells which override policies a Work that was written has in it.
func (r *Reconciler) recordOverridden(ns *corev1.Namespace, cluster string, result override.Result) {
	for i, a := range result.Cluster {
		if i > 0 && a.PolicyName == result.Cluster[i-1].PolicyName {
			continue // another rule of it
		}
		r.record.Eventf(ns, nil, corev1.EventTypeNormal, names.EventApplyOverridePolicySucceed, "ApplyOverridePolicy",
			"Apply cluster override policy(%s) for cluster(%s) succeed.", a.PolicyName, cluster)
	}
}

// names returns the names that the Work of a Namespace may have, the first that is
// free of which it gets: the classic one, unless there is one beside it already.
func (r *Reconciler) names(ctx context.Context, space string, ns *corev1.Namespace) ([]string, error) {
	const kind = "Namespace"
	classic, beside := names.Work(kind, ns.Name, ""), names.WorkBeside(schema.GroupKind{Kind: kind}, ns.Name, "")
	for _, name := range []string{classic, beside} {
		w := &workv1alpha1.Work{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: space, Name: name}, w, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read Work %s: %w", name, err)
		}
		if err == nil && !errors.Is(mine(w, ns.Name), errTaken) {
			return []string{name}, nil
		}
	}
	return []string{classic, beside}, nil
}

// mine says why a Work must be left alone: errBound, errTaken, or nil when it need
// not be.
func mine(w *workv1alpha1.Work, name string) error {
	owner := ownerOf(w, name)
	switch {
	case owner == nil && !carries(w, name):
		return errTaken
	case bound(w):
		return errBound
	default:
		return nil
	}
}

// ownerOf returns the reference of a Work to the Namespace that owns it, nil when
// it does not.
func ownerOf(w *workv1alpha1.Work, name string) *metav1.OwnerReference {
	i := slices.IndexFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "v1" && o.Kind == "Namespace" && o.Name == name
	})
	if i < 0 {
		return nil
	}
	return &w.OwnerReferences[i]
}

// carries reports whether a Work takes a Namespace to its cluster, whoever made it.
func carries(w *workv1alpha1.Work, name string) bool {
	if len(w.Spec.Workload.Manifests) != 1 {
		return false
	}
	u := &unstructured.Unstructured{}
	return u.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw) == nil &&
		u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"} && u.GetName() == name
}

// own makes a Namespace the owner of a binding's Work, of which nothing else is
// changed. One that is being deleted brings the Namespace back by that.
func (r *Reconciler) own(ctx context.Context, key client.ObjectKey, ns *corev1.Namespace) error {
	w := &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, w); err != nil {
		return fmt.Errorf("read Work %s: %w", key.Name, err)
	}
	if owner := ownerOf(w, ns.Name); owner != nil && owner.UID == ns.UID {
		return nil
	}
	before := w.DeepCopy()
	w.OwnerReferences = slices.DeleteFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "v1" && o.Kind == "Namespace" && o.Name == ns.Name
	})
	w.OwnerReferences = append(w.OwnerReferences, ownerReference(ns))
	err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("make the Namespace own Work %s: %w", key.Name, err)
	}
	return nil
}

// workOf returns the Work for a cluster, but for its name and its manifest. It goes
// with the Namespace. That it does not say to overwrite keeps a namespace that the
// member had before from being taken over (spec: behaviour/02 2.7).
func workOf(c *clusterv1alpha1.Cluster, ns *corev1.Namespace, result override.Result) (*workv1alpha1.Work, error) {
	annotations, err := result.Annotations()
	if err != nil {
		return nil, err
	}
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:       names.ExecutionNamespace(c.Name),
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{ownerReference(ns)},
	}}, nil
}

func ownerReference(ns *corev1.Namespace) metav1.OwnerReference {
	return *metav1.NewControllerRef(ns, corev1.SchemeGroupVersion.WithKind("Namespace"))
}

func toUnstructured(ns *corev1.Namespace) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ns)
	if err != nil {
		return nil, fmt.Errorf("convert Namespace: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return u, nil
}
