package registration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func TestWhyNotReady(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
	isReady := ready(metav1.ConditionTrue, "ClusterReady", "cluster is healthy and ready to accept workloads")
	cases := map[string]struct {
		reason string
		mode   clusterv1alpha1.ClusterSyncMode
		status clusterv1alpha1.ClusterStatus
		want   string
	}{
		"Ready": {
			reason: "It can be used.",
			status: clusterv1alpha1.ClusterStatus{Conditions: isReady, NodeSummary: &clusterv1alpha1.NodeSummary{}, ResourceSummary: &clusterv1alpha1.ResourceSummary{}},
		},
		"NoCapacity":   {reason: "Nothing would be scheduled to it.", status: clusterv1alpha1.ClusterStatus{Conditions: isReady}, want: "its capacity is not known yet"},
		"NotSeen":      {reason: "Somebody has to look.", want: "its karmada-controller-manager does"},
		"NotReported":  {reason: "An agent has to report.", mode: clusterv1alpha1.Pull, want: "its agent has not reported yet"},
		"NotReachable": {reason: "The address says where to look.", status: clusterv1alpha1.ClusterStatus{Conditions: ready(metav1.ConditionFalse, "ClusterNotReachable", "cluster is not reachable")}, want: "cluster is not reachable (ClusterNotReachable): the control plane does not reach https://m"},
		"NotReady":     {reason: "What was seen is repeated.", status: clusterv1alpha1.ClusterStatus{Conditions: ready(metav1.ConditionUnknown, "R", "m")}, want: "m (R)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf("m", "id", tc.mode, "https://m")
			c.Status = tc.status
			got := WhyNotReady(c)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestWaitReady(t *testing.T) {
	status := clusterv1alpha1.ClusterStatus{
		Conditions:  []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		NodeSummary: &clusterv1alpha1.NodeSummary{}, ResourceSummary: &clusterv1alpha1.ResourceSummary{},
	}
	c := newCluster(t, clusterOf("m", "id", clusterv1alpha1.Push, "https://m"))
	lines := 0
	got, err := WaitReady(t.Context(), c, "m", time.Minute, func(string) {
		// It becomes ready once its first state has been told.
		if lines++; lines == 1 {
			m := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
			c.has(t, m)
			m.Status = status
			if err := c.Update(context.Background(), m); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || got == nil || lines != 1 {
		t.Errorf("got %v, %v, %d lines", got, err, lines)
	}

	var not *NotReadyError
	c = newCluster(t, clusterOf("m", "id", clusterv1alpha1.Push, "https://m"))
	if _, err := WaitReady(t.Context(), c, "m", time.Millisecond, func(string) {}); !errors.As(err, &not) || not.Name != "m" || not.Why == "" {
		t.Errorf("got %v, want a reason that it is not ready", err)
	}
	if _, err := WaitReady(t.Context(), newCluster(t), "m", time.Minute, func(string) {}); err == nil || errors.As(err, &not) {
		t.Errorf("got %v: one that was removed does not become ready", err)
	}
}
