// Package agentrights looks after the rights of agents once they are given: it ties them to their Cluster, so that they
// go when it goes, and ends the bootstrap token that they were asked for with when the Cluster has become Ready. Those of
// a name that is a push member's it removes: the credentials of that member would be within them.
package agentrights

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const (
	// settle is how long after a certificate was given to the agent of a Cluster that was Ready all along a heartbeat
	// counts as that of the new agent: the one before it may beat on until it is replaced.
	settle = time.Minute
	// beatPeriod is how often the heartbeat is looked at meanwhile.
	beatPeriod = 15 * time.Second
)

// A Reconciler looks after the rights of agents; it is asked by the names of their ClusterRoles.
type Reconciler struct {
	cached client.Reader // ClusterRoles by their metadata, and Clusters
	live   client.Client
	now    func() time.Time
}

// NewReconciler returns a Reconciler. live must read from the API server.
func NewReconciler(cached client.Reader, live client.Client) *Reconciler {
	return &Reconciler{cached: cached, live: live, now: time.Now}
}

// Reconcile ties the rights of an agent to its Cluster, and ends its token; or removes them, if the Cluster has no agent.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name, ok := registration.ClusterOfAgentRights(request.Name)
	if !ok {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	err := r.cached.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil // not registered yet
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read cluster %q: %w", name, err)
	case cluster.Spec.SyncMode == clusterv1alpha1.Push: // whatever else there is, or is not, of the rights
		return reconcile.Result{}, registration.RemoveAgentRights(ctx, registration.NewWriter(r.live), name)
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := r.cached.Get(ctx, client.ObjectKey{Name: request.Name}, role); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	grant, ours := registration.GrantOf(role)
	if !ours || cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		return reconcile.Result{}, nil
	}
	owner, tied := registration.OwnerOfAgentRights(role)
	if !tied {
		return reconcile.Result{}, r.tie(ctx, cluster) // whose event comes back here
	}
	if owner != cluster.UID || grant.TokenID == "" || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	return r.endToken(ctx, cluster, grant)
}

// tie makes the rights go with the Cluster, unless they go with another one by now.
func (r *Reconciler) tie(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var role rbacv1.ClusterRole
	if err := r.live.Get(ctx, client.ObjectKey{Name: registration.AgentRightsName(cluster.Name)}, &role); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, tied := registration.OwnerOfAgentRights(&role); tied {
		return nil
	}
	return registration.MendAgentRights(ctx, registration.NewWriter(r.live), cluster.Name, cluster)
}

// endToken ends the token of a grant once the agent is seen to have come.
func (r *Reconciler) endToken(ctx context.Context, cluster *clusterv1alpha1.Cluster, g registration.Grant) (reconcile.Result, error) {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return reconcile.Result{}, nil // until then the token serves the same name again
	}
	if ready.LastTransitionTime.Time.Before(g.At) && cluster.CreationTimestamp.Time.Before(g.At) {
		beats, err := r.beatsSince(ctx, cluster.Name, g.At.Add(settle))
		if err != nil {
			return reconcile.Result{}, err
		}
		if !beats {
			return reconcile.Result{RequeueAfter: beatPeriod}, nil
		}
	}
	return reconcile.Result{}, registration.EndGrant(ctx, registration.NewWriter(r.live), cluster.Name)
}

// beatsSince reports whether a cluster's agent has given a sign of life at that time or later.
func (r *Reconciler) beatsSince(ctx context.Context, cluster string, at time.Time) (bool, error) {
	var lease coordinationv1.Lease
	err := r.live.Get(ctx, client.ObjectKey{Namespace: names.ClusterNamespace, Name: cluster}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the heartbeat of cluster %q: %w", cluster, err)
	}
	return lease.Spec.RenewTime != nil && !lease.Spec.RenewTime.Time.Before(at), nil
}
