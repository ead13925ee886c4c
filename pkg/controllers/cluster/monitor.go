package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A monitor says of pull mode clusters whose agent is silent that their
// readiness is unknown. Push mode clusters are asked by who posts their status.
type monitor struct {
	client client.Client
	// live reads leases, which are of no use to anybody else, without a cache: a
	// list that fails is known to have failed, while a cache that is cut off
	// looks like agents that have stopped.
	live   client.Reader
	log    logr.Logger
	period time.Duration
	grace  grace
	now    func() time.Time

	signs map[types.UID]sign
	// looked is when the agents were last looked at with success.
	looked time.Time
}

var _ manager.LeaderElectionRunnable = (*monitor)(nil)

func newMonitor(c client.Client, live client.Reader, log logr.Logger, o Options) *monitor {
	return &monitor{
		client: c,
		live:   live,
		log:    log,
		period: o.MonitorPeriod,
		grace:  grace{running: o.MonitorGracePeriod, startup: o.StartupGracePeriod},
		now:    time.Now,
		signs:  map[types.UID]sign{},
	}
}

// NeedLeaderElection says that one process of all is enough.
func (m *monitor) NeedLeaderElection() bool { return true }

// Start looks at the agents until ctx ends.
func (m *monitor) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			m.log.Error(err, "Could not look after the agents of pull mode clusters")
		}
	}, m.period)
	return nil
}

// look looks at all agents once.
func (m *monitor) look(ctx context.Context) error {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := m.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	var pulled []*clusterv1alpha1.Cluster
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Spec.SyncMode == clusterv1alpha1.Pull {
			pulled = append(pulled, c)
		}
	}
	if len(pulled) == 0 {
		clear(m.signs)
		return nil
	}
	leases := &coordinationv1.LeaseList{}
	if err := m.live.List(ctx, leases, client.InNamespace(names.ClusterNamespace)); err != nil {
		return fmt.Errorf("list leases of agents: %w", err)
	}

	var errs []error
	for _, c := range m.silent(pulled, leases.Items) {
		if err := m.lose(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("say that the agent of cluster %s is silent: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// silent takes note of every agent's signs of life, and returns the clusters of
// those without.
func (m *monitor) silent(clusters []*clusterv1alpha1.Cluster, leases []coordinationv1.Lease) []*clusterv1alpha1.Cluster {
	now := m.now()
	// The time in which nobody could look is not the agents' silence: they could
	// not reach the API server either.
	blind := max(0, now.Sub(m.looked)-2*m.period)
	if m.looked.IsZero() {
		blind = 0
	}
	m.looked = now

	byName := make(map[string]*coordinationv1.Lease, len(leases))
	for i := range leases {
		byName[leases[i].Name] = &leases[i]
	}
	signs := make(map[types.UID]sign, len(clusters))
	var silent []*clusterv1alpha1.Cluster
	for _, c := range clusters {
		s, known := m.signs[c.UID]
		s.at = s.at.Add(blind)
		s = s.look(c, byName[c.Name], known, now, m.grace)
		signs[c.UID] = s
		if s.silent(now) {
			silent = append(silent, c)
		}
	}
	m.signs = signs // without those that are gone
	return silent
}

// lose sets the condition of a cluster, unless its agent has spoken since it was
// read.
func (m *monitor) lose(ctx context.Context, seen *clusterv1alpha1.Cluster) error {
	c := seen.DeepCopy()
	stale := false
	backoff := wait.Backoff{Steps: 5, Duration: 20 * time.Millisecond, Factor: 1}
	return retry.OnError(backoff, apierrors.IsConflict, func() error {
		if stale {
			*c = clusterv1alpha1.Cluster{}
			if err := m.live.Get(ctx, client.ObjectKey{Name: seen.Name}, c); err != nil {
				return client.IgnoreNotFound(err)
			}
			if c.UID != seen.UID || spoke(seen, c) {
				return nil
			}
		}
		condition := lost(c, m.now())
		if condition == nil {
			return nil
		}
		stale = true
		before := c.DeepCopy()
		meta.SetStatusCondition(&c.Status.Conditions, *condition)
		err := m.client.Status().Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return client.IgnoreNotFound(err)
	})
}

// spoke says whether an agent has posted a condition between two readings.
func spoke(before, after *clusterv1alpha1.Cluster) bool {
	old := meta.FindStatusCondition(before.Status.Conditions, clusterv1alpha1.ConditionReady)
	now := meta.FindStatusCondition(after.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case now == nil:
		return false
	case old == nil:
		return true
	default:
		return !same(*old, *now)
	}
}
