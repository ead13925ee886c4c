package cluster

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// grace is how long an agent may be silent.
type grace struct {
	running time.Duration // once it has reported
	startup time.Duration // until then
}

// A sign is what was last seen of an agent, and when it last gave a sign of
// life. Times in leases are the agent's and only ever compared with each other:
// its clock may be wrong.
type sign struct {
	at      time.Time
	allowed time.Duration
	renewed metav1.MicroTime
	ready   metav1.Condition
}

// look brings a sign up to date with a cluster and its lease, which may be nil.
// known says whether this cluster was looked at before
// (spec: behaviour/02 2.1, health monitor).
func (s sign) look(c *clusterv1alpha1.Cluster, lease *coordinationv1.Lease, known bool, now time.Time, g grace) sign {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case !known && ready == nil:
		s = sign{at: c.CreationTimestamp.Time, allowed: g.startup}
	case !known:
		s = sign{at: now, allowed: g.running, ready: *ready}
	case ready != nil && !same(*ready, s.ready):
		s.at, s.allowed, s.ready = now, g.running, *ready
	}
	if lease == nil || lease.Spec.RenewTime == nil {
		return s
	}
	if renewed := *lease.Spec.RenewTime; s.renewed.Before(&renewed) {
		if known {
			s.at = now
		}
		s.renewed = renewed
	}
	return s
}

func (s sign) silent(now time.Time) bool { return now.After(s.at.Add(s.allowed)) }

// lost returns the condition of a cluster whose agent is silent, nil when it has
// it already.
func lost(c *clusterv1alpha1.Cluster, now time.Time) *metav1.Condition {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	condition := &metav1.Condition{
		Type:               clusterv1alpha1.ConditionReady,
		Status:             metav1.ConditionUnknown,
		Reason:             clusterv1alpha1.ReasonClusterStatusUnknown,
		Message:            "Cluster status controller stopped posting cluster status.",
		LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case ready == nil:
		condition.Reason = clusterv1alpha1.ReasonClusterStatusNeverUpdated
		condition.Message = "Cluster status controller never posted cluster status."
		return condition
	case ready.Status == metav1.ConditionUnknown:
		return nil
	default:
		return condition
	}
}

// same says whether two readings found one and the same condition.
func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
