package schedule

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// writeTries is how often a write is tried that others get in the way of.
const writeTries = 5

// writeTargets writes the clusters of b, with the placement that they follow,
// unless they are so already, and returns b as it is then. What others wrote to
// the spec in the meantime is not overwritten: the decision may be another then,
// and errMoved is returned.
func (r *Reconciler) writeTargets(ctx context.Context, b binding.Object, targets []workv1alpha2.TargetCluster, clusters fleet) (binding.Object, error) {
	placement, err := json.Marshal(b.BindingSpec().Placement)
	if err != nil {
		return nil, fmt.Errorf("encode placement: %w", err)
	}
	same := equality.Semantic.DeepEqual(b.BindingSpec().Clusters, targets)
	if same && b.GetAnnotations()[names.AppliedPlacementAnnotation] == string(placement) {
		return b, nil
	}
	if err := r.confirmGone(ctx, b, clusters); err != nil {
		return nil, err
	}
	change := func(b binding.Object) {
		annotations := b.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[names.AppliedPlacementAnnotation] = string(placement)
		b.SetAnnotations(annotations)
		b.BindingSpec().Clusters = targets
	}
	after, err := r.patch(ctx, b, r.client.Patch, change)
	if err != nil {
		return nil, fmt.Errorf("write the clusters of %s(%s): %w", binding.ScopeOf(b).Kind, nameOf(b), err)
	}
	return after, nil
}

// confirmGone asks the API server whether clusters that b is in, and that the
// cache does not know, are really gone: a template must not leave a cluster
// because a cache is behind.
func (r *Reconciler) confirmGone(ctx context.Context, b binding.Object, clusters fleet) error {
	var unknown []string
	for _, t := range b.BindingSpec().Clusters {
		if clusters.byName[t.Name] == nil {
			unknown = append(unknown, t.Name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	// A list, because a server that does not serve Clusters also answers that
	// there is no such Cluster.
	list := &clusterv1alpha1.ClusterList{}
	if err := r.live.List(ctx, list); err != nil {
		return fmt.Errorf("find out whether clusters %q are gone: %w", unknown, err)
	}
	there := newFleet(list.Items)
	for _, name := range unknown {
		if there.byName[name] != nil {
			return fmt.Errorf("cluster %s has not been heard of yet", name)
		}
	}
	return nil
}

// writeStatus notes an outcome in the status of b, and says whether it is news.
// Nothing is written when the status says so already.
func (r *Reconciler) writeStatus(ctx context.Context, b binding.Object, o outcome) (bool, error) {
	news, now := false, r.now()
	change := func(b binding.Object) { news = o.note(b, now) }
	if _, err := r.patch(ctx, b, r.patchStatus, change); err != nil {
		return false, fmt.Errorf("write the status of %s(%s): %w", binding.ScopeOf(b).Kind, nameOf(b), err)
	}
	return news, nil
}

func (r *Reconciler) patchStatus(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return r.client.Status().Patch(ctx, o, p)
}

type patcher = func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

// patch makes a change to b, unless it makes no difference, and returns b as it
// is then. When somebody else has written meanwhile, the change is made to what
// is there now, if its spec is still the one that was read; else, or when b is
// going or gone, errMoved is returned.
func (r *Reconciler) patch(ctx context.Context, b binding.Object, send patcher, change func(binding.Object)) (binding.Object, error) {
	var last error
	for range writeTries {
		after, ok := b.DeepCopyObject().(binding.Object)
		if !ok {
			return nil, fmt.Errorf("a copy of %T is no binding", b)
		}
		change(after)
		if equality.Semantic.DeepEqual(b, after) {
			return b, nil
		}
		last = send(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}))
		if last == nil {
			return after, nil
		}
		if apierrors.IsNotFound(last) || apierrors.HasStatusCause(last, corev1.NamespaceTerminatingCause) {
			return nil, errMoved
		}
		if !apierrors.IsConflict(last) {
			return nil, last
		}
		now := binding.New(b.GetNamespace())
		err := r.live.Get(ctx, client.ObjectKeyFromObject(b), now)
		if apierrors.IsNotFound(err) {
			return nil, errMoved
		}
		if err != nil {
			return nil, fmt.Errorf("read again: %w", err)
		}
		if now.GetUID() != b.GetUID() || now.GetGeneration() != b.GetGeneration() || !now.GetDeletionTimestamp().IsZero() {
			return nil, errMoved
		}
		b = now
	}
	return nil, last
}
