package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// errTaken says that a Work of that name carries something else.
var errTaken = errors.New("the name is taken by a Work of something else")

// A works is what a binding has in each cluster, by name. The Works are shared:
// they are not changed.
type works map[string][]*workv1alpha1.Work

// names returns what the Work of a cluster is called: as it is called already,
// or else the classic name, by which existing tools find it, and the one to fall
// back on (spec: behaviour/01 1.3).
func (w works) names(cluster string, ref workv1alpha2.ObjectReference) []string {
	if there := w[cluster]; len(there) > 0 {
		return []string{there[0].Name}
	}
	return newNames(ref)
}

// newNames returns the names that a Work may get.
func newNames(ref workv1alpha2.ObjectReference) []string {
	classic := names.Work(ref.Kind, ref.Name, ref.Namespace)
	beside := names.WorkBeside(binding.GVK(ref).GroupKind(), ref.Name, ref.Namespace)
	if len(validation.IsDNS1123Subdomain(classic)) > 0 {
		return []string{beside}
	}
	return []string{classic, beside}
}

// stay reports whether a cluster has a Work that is not going.
func (w works) stay(cluster string) bool {
	return slices.ContainsFunc(w[cluster], func(w *workv1alpha1.Work) bool { return w.DeletionTimestamp.IsZero() })
}

// outside returns those in clusters that are not among the given ones.
func (w works) outside(clusters []string) works {
	rest := works{}
	for cluster, there := range w {
		if !slices.Contains(clusters, cluster) {
			rest[cluster] = there
		}
	}
	return rest
}

// purged returns those in clusters that a binding must have left before it goes
// elsewhere (spec: behaviour/02 2.3).
func (w works) purged(spec *workv1alpha2.ResourceBindingSpec) works {
	left := works{}
	for _, task := range spec.GracefulEvictionTasks {
		if there, ok := w[task.FromCluster]; ok && task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			left[task.FromCluster] = there
		}
	}
	return left.outside(binding.Expected(spec))
}

// all returns the Works in the order of clusters.
func (w works) all() []*workv1alpha1.Work {
	var all []*workv1alpha1.Work
	for _, there := range w {
		all = append(all, there...)
	}
	slices.SortFunc(all, func(a, b *workv1alpha1.Work) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// worksOf lists the Works of a binding, the one that counts first.
func (r *Reconciler[B]) worksOf(ctx context.Context, b B) (works, error) {
	list := &workv1alpha1.WorkList{}
	id, match := binding.ID(b), []client.ListOption{client.UnsafeDisableDeepCopy}
	if id != "" {
		match = append(match, client.MatchingFields{binding.WorksByBinding: id})
	}
	if err := r.client.List(ctx, list, match...); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	found := works{}
	for i := range list.Items {
		w := &list.Items[i]
		// A binding without an identity is known by its name only.
		if key, ok := binding.OfWork(w); id == "" && (!ok || key != client.ObjectKeyFromObject(b)) {
			continue
		}
		if cluster, err := names.ClusterOfExecutionNamespace(w.Namespace); err == nil {
			found[cluster] = append(found[cluster], w)
		}
	}
	for _, there := range found {
		slices.SortFunc(there, func(a, b *workv1alpha1.Work) int { return strings.Compare(a.Name, b.Name) })
	}
	return found, nil
}

// unseen reads the Works that a binding may have where it has none that is known:
// one that was made a moment ago may not have come to the cache.
func (r *Reconciler[B]) unseen(ctx context.Context, b B, known works) ([]*workv1alpha1.Work, error) {
	var found []*workv1alpha1.Work
	for _, cluster := range binding.Expected(b.BindingSpec()) {
		if len(known[cluster]) > 0 {
			continue
		}
		for _, name := range newNames(b.BindingSpec().Resource) {
			w := &workv1alpha1.Work{}
			err := r.live.Get(ctx, client.ObjectKey{Namespace: names.ExecutionNamespace(cluster), Name: name}, w)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("find out whether there is a Work %s in cluster %s: %w", name, cluster, err)
			}
			if key, ok := binding.OfWork(w); ok && key == client.ObjectKeyFromObject(b) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}

// mine returns a check of whether a Work that is there is the binding's: its own,
// one that a former binding of that name has left, or one by which its template
// goes to every cluster anyway.
func mine(b binding.Object, template *unstructured.Unstructured) func(*workv1alpha1.Work) error {
	id, self := binding.ID(b), client.ObjectKeyFromObject(b)
	return func(w *workv1alpha1.Work) error {
		key, bound := binding.OfWork(w)
		switch {
		case w.Labels[binding.ScopeOf(b).IDLabel] == id, bound && key == self, !bound && isOwnedByNamespace(w, template.GetName()) && isNamespace(template):
			return nil
		default:
			return errTaken
		}
	}
}

func isNamespace(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Namespace"
}

// isOwnedByNamespace reports whether a Work takes a Namespace to its cluster
// without a binding. An empty name means any.
func isOwnedByNamespace(w *workv1alpha1.Work, name string) bool {
	for _, owner := range w.OwnerReferences {
		if owner.APIVersion == "v1" && owner.Kind == "Namespace" && (name == "" || owner.Name == name) {
			return true
		}
	}
	return false
}

// removeAll removes Works; one that fails does not hold back the others.
func (r *Reconciler[B]) removeAll(ctx context.Context, b B, gone []*workv1alpha1.Work) error {
	var errs []error
	for _, w := range gone {
		if err := r.remove(ctx, b, w); err != nil {
			errs = append(errs, fmt.Errorf("remove Work %s: %w", client.ObjectKeyFromObject(w), err))
		}
	}
	return errors.Join(errs...)
}

// remove deletes a Work, which must not have been replaced meanwhile. One by which
// a Namespace goes to every cluster is only let go. Objects that are to be
// preserved are, also if the Work has not been told so yet.
func (r *Reconciler[B]) remove(ctx context.Context, b B, w *workv1alpha1.Work) error {
	if !w.DeletionTimestamp.IsZero() {
		return nil
	}
	if isOwnedByNamespace(w, "") {
		return r.change(ctx, b, w, func(w *workv1alpha1.Work) { letGo(w, b) })
	}
	preserve := func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = ptr.To(true) }
	if ptr.Deref(b.BindingSpec().PreserveResourcesOnDeletion, false) && !ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false) {
		if err := r.change(ctx, b, w, preserve); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, w.DeepCopy(), client.Preconditions{UID: &w.UID}))
}

// change writes a Work of a binding, on the basis of what it is now. One that is
// gone, or not the binding's any more, needs no change.
func (r *Reconciler[B]) change(ctx context.Context, b B, w *workv1alpha1.Work, how func(*workv1alpha1.Work)) error {
	label := binding.ScopeOf(b).IDLabel
	now, first := w, true
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			now = &workv1alpha1.Work{}
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(w), now); err != nil {
				return err
			}
			if now.UID != w.UID || now.Labels[label] != w.Labels[label] {
				return nil
			}
		}
		first = false
		next := now.DeepCopy()
		how(next)
		return r.client.Patch(ctx, next, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}))
	})
	return client.IgnoreNotFound(err)
}

// letGo takes off a Work what makes it the Work of a binding.
func letGo(w *workv1alpha1.Work, b binding.Object) {
	for label := range binding.WorkLabels(b) {
		delete(w.Labels, label)
	}
	for annotation := range binding.WorkAnnotations(b) {
		delete(w.Annotations, annotation)
	}
	delete(w.Annotations, names.ConflictResolutionAnnotation)
}
