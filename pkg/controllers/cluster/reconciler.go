package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Reconciler reconciles Clusters.
type Reconciler struct {
	client client.Client
	// live reads from the API server. What is deleted, or let go, depends on what
	// is there now, not on a cache.
	live   client.Reader
	record events.EventRecorder
	now    func() time.Time
	// leaving are the clusters whose removal is under way.
	leaving *nameSet
}

var _ reconcile.ObjectReconciler[*clusterv1alpha1.Cluster] = (*Reconciler)(nil)

// Reconcile keeps what a live Cluster needs, and takes a deleted one apart.
func (r *Reconciler) Reconcile(ctx context.Context, c *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !c.DeletionTimestamp.IsZero() {
		return r.remove(ctx, c)
	}
	r.leaving.remove(c.Name)

	// The finalizer comes first: whatever is made for a Cluster must not outlive
	// one that is deleted at this very moment.
	if err := r.mark(ctx, c); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.ensureExecutionSpace(ctx, c)
}

// mark gives a Cluster its finalizer and its taints, in one write.
func (r *Reconciler) mark(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	tainted := false
	err := r.update(ctx, c, func(c *clusterv1alpha1.Cluster) {
		if !c.DeletionTimestamp.IsZero() { // since it was read
			tainted = false
			return
		}
		controllerutil.AddFinalizer(c, names.ClusterFinalizer)
		tainted = taintByReadiness(c, metav1.NewTime(r.now()))
	})
	switch {
	case err != nil && tainted:
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventTaintClusterFailed, "TaintCluster", "%s", err.Error())
	case tainted:
		r.record.Eventf(c, nil, corev1.EventTypeNormal, names.EventTaintClusterSucceed, "TaintCluster", "%s", describeTaints(c.Spec.Taints))
	}
	if err != nil {
		return fmt.Errorf("set finalizer and taints: %w", err)
	}
	return nil
}

// ensureExecutionSpace creates the namespace for the Works of a cluster. One
// that exists is left as it is.
func (r *Reconciler) ensureExecutionSpace(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	if !c.DeletionTimestamp.IsZero() || c.ResourceVersion == "" {
		return nil // gone, or about to be; the event of that is on its way
	}
	namespace := &corev1.Namespace{}
	name := names.ExecutionNamespace(c.Name)
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err == nil {
		return nil // one that is going is made anew when it is gone
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for namespace %s: %w", name, err)
	}
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.SystemLabel: names.True}}}
	err = r.client.Create(ctx, namespace)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		err = fmt.Errorf("create namespace %s: %w", name, err)
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventCreateExecutionSpaceFailed, "CreateExecutionSpace", "%s", err.Error())
		return err
	}
	r.record.Eventf(c, nil, corev1.EventTypeNormal, names.EventCreateExecutionSpaceSucceed, "CreateExecutionSpace", "Created execution space(%s) for cluster(%s).", name, c.Name)
	return nil
}

// update writes what change makes of c, with nothing but the difference, and
// never over what somebody else has written since: then it reads c anew and
// lets change have another look. A Cluster that is gone, or is another one of
// that name by now, is left empty.
func (r *Reconciler) update(ctx context.Context, c *clusterv1alpha1.Cluster, change func(*clusterv1alpha1.Cluster)) error {
	stale, name, uid := false, c.Name, c.UID
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if stale {
			*c = clusterv1alpha1.Cluster{}
			if err := r.live.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
				return client.IgnoreNotFound(err)
			}
			if c.UID != uid {
				*c = clusterv1alpha1.Cluster{}
				return nil
			}
		}
		before := c.DeepCopy()
		change(c)
		if equality.Semantic.DeepEqual(before, c) {
			return nil
		}
		stale = true
		err := r.client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsNotFound(err) {
			*c = clusterv1alpha1.Cluster{}
			return nil
		}
		return err
	})
}
