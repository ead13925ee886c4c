package unifiedauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// spaceRetry is how long to wait for the namespace of a new cluster's Works,
// which is being made at the same time.
const spaceRetry = 200 * time.Millisecond

// A Reconciler reconciles Clusters.
type Reconciler struct {
	client client.Client
	record events.EventRecorder
}

var _ reconcile.ObjectReconciler[*clusterv1alpha1.Cluster] = (*Reconciler)(nil)

// Reconcile makes the Works that carry the rights to a cluster. A cluster
// without an impersonator needs none; one that is deleted gets none any more.
func (r *Reconciler) Reconcile(ctx context.Context, c *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if !c.DeletionTimestamp.IsZero() || c.Spec.ImpersonatorSecretRef == nil {
		return reconcile.Result{}, nil
	}
	changed, err := r.sync(ctx, c)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: spaceRetry}, nil
	case err != nil:
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventSyncImpersonationConfigFailed, "SyncImpersonationConfig", "%s", err.Error())
	case changed:
		r.record.Eventf(c, nil, corev1.EventTypeNormal, names.EventSyncImpersonationConfigSucceed, "SyncImpersonationConfig", "Sync impersonation config succeed.")
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) sync(ctx context.Context, c *clusterv1alpha1.Cluster) (changed bool, err error) {
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("list %T: %w", list, err)
		}
	}
	objects, err := manifests(c, subjectsOf(c.Name, roles.Items, bindings.Items))
	if err != nil {
		return false, err
	}
	var errs []error
	for _, o := range objects {
		wrote, err := binding.EnsureWork(ctx, r.client, workOf(c, o), o)
		changed = changed || wrote
		errs = append(errs, err)
	}
	return changed, first(errs)
}

// first returns the errors as one; a namespace that is not there is the only
// thing to say when it is what all of them say.
func first(errs []error) error {
	err := errors.Join(errs...)
	for _, e := range errs {
		if !apierrors.IsNotFound(e) {
			return err
		}
	}
	return errs[0]
}
