package taint

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// tries is how often a Cluster is read anew because somebody else changed it in between.
const tries = 10

// Update makes the taints of a Cluster what change makes of them. A taint that somebody else puts on or takes off at the same
// time is not lost: then change is asked again. A dry run asks, and writes nothing. It reports whether there is a difference.
func Update(ctx context.Context, c client.Client, name string, dryRun bool, change func([]corev1.Taint) ([]corev1.Taint, error)) (bool, error) {
	var err error
	for range tries {
		cluster := &clusterv1alpha1.Cluster{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return false, err // names the cluster already, in the contract's words
		}
		before := cluster.DeepCopy()
		if cluster.Spec.Taints, err = change(before.Spec.Taints); err != nil {
			return false, err
		}
		if apiequality.Semantic.DeepEqual(before.Spec.Taints, cluster.Spec.Taints) {
			return false, nil
		}
		if dryRun {
			return true, nil
		}
		// The patch says which version it was computed from.
		err = c.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return true, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return false, fmt.Errorf("change the taints of cluster %s: %w", name, err)
}
