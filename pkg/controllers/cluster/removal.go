package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// removalRetry is how long a removal waits for an event before it looks again
// by itself (spec: behaviour/02 2.1).
const removalRetry = 10 * time.Second

// remove takes a deleted Cluster apart, one pass at a time, and lets it go when
// nothing of it is left:
//
//   - its Works go first, one by one, while the namespace is still whole: an
//     agent has its rights by a Role in it, and loses them when that goes;
//   - then the namespace, if we made it;
//   - meanwhile the cluster is taken out of bindings, by their scheduler or by us.
func (r *Reconciler) remove(ctx context.Context, c *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(c, names.ClusterFinalizer) {
		r.leaving.remove(c.Name)
		return reconcile.Result{}, nil
	}
	r.leaving.add(c.Name)

	spaceGone, err := r.removeExecutionSpace(ctx, c)
	if err != nil {
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventRemoveExecutionSpaceFailed, "RemoveExecutionSpace", "%s", err.Error())
	}
	unbound, bindErr := r.leaveBindings(ctx, c)
	if err := errors.Join(err, bindErr); err != nil {
		return reconcile.Result{}, err
	}
	if !spaceGone || !unbound {
		return reconcile.Result{RequeueAfter: removalRetry}, nil
	}

	name := c.Name // which is empty when somebody else was faster
	err = r.update(ctx, c, func(c *clusterv1alpha1.Cluster) { controllerutil.RemoveFinalizer(c, names.ClusterFinalizer) })
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("remove finalizer: %w", err)
	}
	r.leaving.remove(name)
	return reconcile.Result{}, nil
}

// removeExecutionSpace removes the Works of a cluster and then their namespace.
// It says whether both are gone.
func (r *Reconciler) removeExecutionSpace(ctx context.Context, c *clusterv1alpha1.Cluster) (bool, error) {
	name := names.ExecutionNamespace(c.Name)
	if err := r.removeWorks(ctx, c, name); err != nil {
		return false, err
	}
	if left, err := r.hasWorks(ctx, name); err != nil || left {
		return false, err
	}

	namespace := &corev1.Namespace{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for namespace %s: %w", name, err)
	}
	if namespace.Labels[names.SystemLabel] != names.True {
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventRemoveExecutionSpaceFailed, "RemoveExecutionSpace",
			"namespace %s is kept: it was not made by this control plane (no label %s=%s); its Works are gone", name, names.SystemLabel, names.True)
		return true, nil
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return false, nil
	}
	err = r.client.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete namespace %s: %w", name, err)
	}
	r.record.Eventf(c, nil, corev1.EventTypeNormal, names.EventRemoveExecutionSpaceSucceed, "RemoveExecutionSpace", "Removed execution space(%s) of cluster(%s).", name, c.Name)
	return false, nil
}

// removeWorks deletes the Works of a cluster; whoever applies them withdraws
// what they put there before they go. With cascade=orphan they are told to leave
// it there first. The Works of a pull mode cluster whose agent does not answer
// are let go as they are: nobody else would.
func (r *Reconciler) removeWorks(ctx context.Context, c *clusterv1alpha1.Cluster, namespace string) error {
	works := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Works in %s: %w", namespace, err)
	}
	if err := r.deleteWorks(ctx, c, namespace, works.Items); err != nil {
		return err
	}
	if c.Spec.SyncMode != clusterv1alpha1.Pull || meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
		return nil
	}
	var errs []error
	for i := range works.Items {
		if w := &works.Items[i]; !w.DeletionTimestamp.IsZero() {
			errs = append(errs, r.release(ctx, w))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) deleteWorks(ctx context.Context, c *clusterv1alpha1.Cluster, namespace string, works []workv1alpha1.Work) error {
	step := nextStep(c, works)
	switch {
	case len(step.preserve) > 0:
		var errs []error
		for _, w := range step.preserve {
			errs = append(errs, r.preserve(ctx, w))
		}
		return errors.Join(errs...) // the events of the changes bring us back
	case len(step.deleteOne) > 0:
		var errs []error
		for _, w := range step.deleteOne {
			// The Work that goes must be the one that was seen to preserve: who
			// renders Works may have written it again.
			err := r.client.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}},
				client.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion})
			if err = client.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
				errs = append(errs, fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err))
			}
		}
		return errors.Join(errs...)
	case step.deleteAll:
		if err := r.client.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("delete Works in %s: %w", namespace, err)
		}
	}
	return nil
}

// preserve tells a Work to leave its objects in the member when it goes.
func (r *Reconciler) preserve(ctx context.Context, w *workv1alpha1.Work) error {
	after := w.DeepCopy()
	after.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	if err := r.client.Patch(ctx, after, client.MergeFrom(w)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("make Work %s/%s preserve its objects: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// release lets a deleted Work go without a word to its member.
func (r *Reconciler) release(ctx context.Context, w *workv1alpha1.Work) error {
	after := w.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, names.WorkFinalizer) {
		return nil
	}
	err := r.client.Patch(ctx, after, client.MergeFromWithOptions(w, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil // the event of what has changed it brings us back
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release Work %s/%s of a cluster that does not answer: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// hasWorks says whether the API server, rather than a cache, has Works left.
func (r *Reconciler) hasWorks(ctx context.Context, namespace string) (bool, error) {
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	if err := r.live.List(ctx, works, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("list Works in %s: %w", namespace, err)
	}
	return len(works.Items) > 0, nil
}

// A workStep is what to do about the Works of a leaving cluster next: one of
// its fields at most is set.
type workStep struct {
	preserve  []*workv1alpha1.Work
	deleteOne []*workv1alpha1.Work
	deleteAll bool
}

// nextStep decides it. With cascade=orphan nothing is deleted before every Work
// preserves its objects. Works of the system itself always go with what they put
// into the member: that is of no use there.
func nextStep(c *clusterv1alpha1.Cluster, works []workv1alpha1.Work) workStep {
	var step workStep
	for i := range works {
		w := &works[i]
		switch {
		case !w.DeletionTimestamp.IsZero():
		case !orphans(c):
			return workStep{deleteAll: true}
		case w.Labels[names.SystemLabel] == names.True || ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false):
			step.deleteOne = append(step.deleteOne, w)
		default:
			step.preserve = append(step.preserve, w)
		}
	}
	if len(step.preserve) > 0 {
		step.deleteOne = nil
	}
	return step
}

// orphans says whether the objects in the member stay when the Cluster goes. A
// value that nobody knows keeps them: they can still be deleted, but not be
// brought back.
func orphans(c *clusterv1alpha1.Cluster) bool {
	switch c.Annotations[names.ClusterCascadeAnnotation] {
	case "", names.CascadeDelete:
		return false
	default:
		return true
	}
}
