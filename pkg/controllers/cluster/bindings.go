package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// leaveBindings takes a cluster out of all bindings, or leaves that to the
// scheduler, and says whether no binding has it any more.
func (r *Reconciler) leaveBindings(ctx context.Context, cluster string) (bool, error) {
	bindings, err := r.bindingsOf(ctx, cluster)
	if err != nil {
		return false, err
	}
	if len(bindings) == 0 || !r.unassign {
		return len(bindings) == 0, nil
	}
	var errs []error
	for _, b := range bindings {
		if err := r.unbind(ctx, b, cluster); err != nil {
			errs = append(errs, fmt.Errorf("take cluster %s out of binding %s: %w", cluster, client.ObjectKeyFromObject(b), err))
		}
	}
	return false, errors.Join(errs...) // the events of the changes bring us back
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
