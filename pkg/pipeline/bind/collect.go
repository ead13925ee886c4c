package bind

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// collect deletes the bindings of a template that is gone. The garbage collector
// would, too, but looks at everything there is each time that kinds come or go,
// and is late then: what a user has deleted would run on for minutes.
//
// It does what the garbage collector would do and nothing else: the API server must
// say that there is no such object (not that it does not know the kind), and the
// binding, as it is there, must still be owned by that very one. Who deletes a
// template and orphans what it owns has the owner taken off first.
func (c *claimer) collect(ctx context.Context, k Key) error {
	bindings, err := c.bindingsOf(ctx, k)
	if err != nil || len(bindings) == 0 {
		return err
	}
	if _, err := c.templates.Live(ctx, k.GroupVersionKind, k.Namespace, k.Name); !apierrors.IsNotFound(err) {
		return nil // it is there, or nobody can tell
	}
	for _, b := range bindings {
		if err := c.live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("read the binding of what is gone: %w", err)
		}
		owner := metav1.GetControllerOf(b)
		if !b.GetDeletionTimestamp().IsZero() || owner == nil || owner.Kind != k.Kind || owner.Name != k.Name || owner.UID != b.BindingSpec().Resource.UID {
			continue
		}
		uid, version := b.GetUID(), b.GetResourceVersion()
		err := c.client.Delete(ctx, b, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the binding of %s %s, which is gone: %w", k.Kind, k.Name, err)
		}
	}
	return nil
}

// bindingsOf lists the bindings of a template, as copies.
func (c *claimer) bindingsOf(ctx context.Context, k Key) ([]binding.Object, error) {
	match := client.MatchingFields{binding.ByTemplate: binding.TemplateKey(k.ref())}
	var all []binding.Object
	if k.Namespace == "" {
		var list workv1alpha2.ClusterResourceBindingList
		if err := c.client.List(ctx, &list, match); err != nil {
			return nil, fmt.Errorf("list the bindings of %s %s: %w", k.Kind, k.Name, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	}
	var list workv1alpha2.ResourceBindingList
	if err := c.client.List(ctx, &list, match, client.InNamespace(k.Namespace)); err != nil {
		return nil, fmt.Errorf("list the bindings of %s %s: %w", k.Kind, k.Name, err)
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}
