package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A NotReadyError says that a cluster is registered, but not ready, and why.
type NotReadyError struct {
	Name  string
	After time.Duration
	Why   string
}

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("cluster %s is joined, but is not ready after %s: %s; it stays joined and becomes ready by itself once that has changed", e.Name, e.After, e.Why)
}

// WaitReady waits until the cluster is ready and its capacity is known, and returns it then. progress gets a line whenever
// the reason to wait changes. After patience the error is a *NotReadyError.
func WaitReady(ctx context.Context, c client.Reader, name string, patience time.Duration, progress func(line string)) (*clusterv1alpha1.Cluster, error) {
	var found *clusterv1alpha1.Cluster
	why, told := "", ""
	err := poll(ctx, patience, func(ctx context.Context) (bool, error) {
		cluster, err := FindCluster(ctx, c, name)
		switch {
		case err != nil && (isStarting(err) || mayPass(err)):
			why = err.Error() // the control plane may be restarting
			return false, nil
		case err != nil:
			return false, err
		case cluster == nil || !cluster.DeletionTimestamp.IsZero():
			return false, fmt.Errorf("cluster %s was removed again while it was waited for", name)
		}
		found = cluster
		if why = WhyNotReady(cluster); why != "" && why != told {
			told = why
			progress(fmt.Sprintf("waiting for cluster %s: %s", name, why))
		}
		return why == "", nil
	})
	if errors.Is(err, errPatience) {
		return found, &NotReadyError{Name: name, After: patience, Why: why}
	}
	return found, err
}

// WhyNotReady returns what a cluster lacks to be ready with its capacity known, "" if nothing.
func WhyNotReady(c *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case ready == nil && c.Spec.SyncMode == clusterv1alpha1.Pull:
		return "its agent has not reported yet"
	case ready == nil:
		return "the control plane has not looked at it yet, which its karmada-controller-manager does"
	case ready.Status != metav1.ConditionTrue && ready.Reason == clusterv1alpha1.ReasonClusterNotReachable:
		return fmt.Sprintf("%s (%s): the control plane does not reach %s", ready.Message, ready.Reason, orUnknown(c.Spec.APIEndpoint))
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("%s (%s)", ready.Message, ready.Reason)
	case c.Status.NodeSummary == nil || c.Status.ResourceSummary == nil:
		return "it is ready, but its capacity is not known yet"
	}
	return ""
}
