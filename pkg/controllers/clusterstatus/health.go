package clusterstatus

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// Thresholds are how long a cluster must have been seen ready, or not ready,
// before its condition changes to that.
type thresholds struct{ success, failure time.Duration }

// A health remembers since when a cluster has been seen as it is seen now. The
// zero value has seen nothing.
type health struct {
	last  metav1.ConditionStatus
	since time.Time
}

// judge returns the condition that a cluster should have, given what was seen
// now and the condition that it has, which may be nil. settled is how long it
// takes until the other would be returned; 0 when there is no other
// (spec: behaviour/02 2.2, step 4).
func (h *health) judge(seen metav1.Condition, current *metav1.Condition, now time.Time, t thresholds) (condition metav1.Condition, settled time.Duration) {
	first := h.last == ""
	if h.last != seen.Status {
		h.last, h.since = seen.Status, now
	}
	if first || current == nil {
		return seen, 0
	}
	up, wasUp := seen.Status == metav1.ConditionTrue, current.Status == metav1.ConditionTrue
	if up == wasUp {
		return seen, 0
	}
	threshold := t.failure
	if up {
		threshold = t.success
	}
	if rest := threshold - now.Sub(h.since); rest > 0 {
		return *current, rest
	}
	return seen, 0
}

// What can be seen of a cluster.
func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}
}

func clusterReady() metav1.Condition {
	return condition(metav1.ConditionTrue, clusterv1alpha1.ReasonClusterReady, "cluster is healthy and ready to accept workloads")
}

func clusterNotReady() metav1.Condition {
	return condition(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReady, "cluster is reachable but health endpoint responded without ok")
}

func clusterNotReachable() metav1.Condition {
	return condition(metav1.ConditionFalse, clusterv1alpha1.ReasonClusterNotReachable, "cluster is not reachable")
}

func clusterWithoutClient(err error) metav1.Condition {
	return condition(metav1.ConditionFalse, clusterv1alpha1.ReasonStatusCollectionFailed, "failed to create a ClusterClient: "+err.Error())
}
