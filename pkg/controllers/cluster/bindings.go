package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// leaveBindings takes a cluster out of the bindings that no scheduler places, such
// as those that a policy has released, and leaves the others to their scheduler. It
// says whether no binding has the cluster any more, and tells of those that keep it.
func (r *Reconciler) leaveBindings(ctx context.Context, c *clusterv1alpha1.Cluster) (bool, error) {
	bindings, err := r.bindingsOf(ctx, c.Name)
	if err != nil {
		return false, err
	}
	var (
		errs  []error
		moved []binding.Object // by their scheduler, soon
	)
	for _, b := range bindings {
		if binding.IsScheduled(b) && b.BindingSpec().Placement != nil {
			moved = append(moved, b)
			continue
		}
		if err := r.unbind(ctx, b, c.Name); err != nil {
			errs = append(errs, fmt.Errorf("take cluster %s out of binding %s: %w", c.Name, client.ObjectKeyFromObject(b), err))
		}
	}
	if len(moved) > 0 && r.now().Sub(c.DeletionTimestamp.Time) >= removalRetry {
		r.tellHeld(c, moved)
	}
	return len(bindings) == 0, errors.Join(errs...) // the events of the changes bring us back
}

// tellHeld tells, once, which bindings keep a cluster from leaving.
func (r *Reconciler) tellHeld(c *clusterv1alpha1.Cluster, by []binding.Object) {
	const most = 3
	var some []string
	for _, b := range by[:min(most, len(by))] {
		some = append(some, fmt.Sprintf("%s %s (scheduler %s)", binding.ScopeOf(b).Kind, client.ObjectKeyFromObject(b), binding.SchedulerOf(b)))
	}
	if more := len(by) - len(some); more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	if what := strings.Join(some, ", "); r.leaving.tell(c.Name, what) {
		r.record.Eventf(c, nil, corev1.EventTypeWarning, names.EventClusterHeld, "Remove",
			"The cluster stays until its bindings have left it: %s. See that their scheduler runs.", what)
	}
}

func (r *Reconciler) bindingsOf(ctx context.Context, cluster string) ([]binding.Object, error) {
	namespaced, global := &workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}
	for _, list := range []client.ObjectList{namespaced, global} {
		if err := r.client.List(ctx, list, client.MatchingFields{binding.ByCluster: cluster}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list bindings of cluster %s: %w", cluster, err)
		}
	}
	var bindings []binding.Object
	for i := range namespaced.Items {
		bindings = append(bindings, &namespaced.Items[i])
	}
	for i := range global.Items {
		bindings = append(bindings, &global.Items[i])
	}
	return bindings, nil
}

// unbind writes b without the cluster, unless somebody has written b since: the
// event of that brings us back.
func (r *Reconciler) unbind(ctx context.Context, b binding.Object, cluster string) error {
	after, ok := b.DeepCopyObject().(binding.Object)
	if !ok {
		return fmt.Errorf("%T is no binding", b)
	}
	spec := after.BindingSpec()
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	err := r.client.Patch(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
