package bind

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A claimer writes claims, on templates and on bindings.
type claimer struct {
	client    client.Client
	live      client.Reader
	templates Templates
}

// claim writes a claim on a template, with one request if it is not there yet,
// and returns the template as it is then.
func (c *claimer) claim(ctx context.Context, t *unstructured.Unstructured, by policy.Claim) (*unstructured.Unstructured, error) {
	next, err := c.mark(ctx, t, by.Put)
	if err != nil {
		return nil, fmt.Errorf("claim %s %s: %w", t.GetKind(), client.ObjectKeyFromObject(t), err)
	}
	return next, nil
}

// release takes a claim off a template's binding and then off the template. When
// that fails half way it can be repeated, as the template still says who claims
// it. What is not there, or says otherwise, is left alone.
func (c *claimer) release(ctx context.Context, t *unstructured.Unstructured, by policy.Claim) error {
	what := func() string { return fmt.Sprintf("%s %s", t.GetKind(), client.ObjectKeyFromObject(t)) }
	if err := c.releaseBinding(ctx, keyOf(t), by); err != nil {
		return fmt.Errorf("take the claim of policy %s off the binding of %s: %w", by, what(), err)
	}
	now := t
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, err := c.mark(ctx, now, by.Remove)
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, errGet := c.templates.Live(ctx, now.GroupVersionKind(), now.GetNamespace(), now.GetName())
		if errGet != nil {
			return errGet
		}
		if fresh.GetUID() != t.GetUID() {
			return nil // it was made anew
		}
		now = fresh
		return err
	})
	if err != nil && !isGone(err) {
		return fmt.Errorf("take the claim of policy %s off %s: %w", by, what(), err)
	}
	return nil
}

// isGone reports whether an error says that an object, or its kind, is not there.
func isGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

func (c *claimer) releaseBinding(ctx context.Context, k Key, by policy.Claim) error {
	name, err := binding.NameFor(ctx, c.client, k.ref())
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: k.Namespace, Name: name}
	return retry.RetryOnConflict(retry.DefaultRetry, readTwice(c.client, c.live, func(reader client.Reader) error {
		now := binding.New(k.Namespace)
		if err := reader.Get(ctx, key, now); err != nil {
			return err
		}
		if binding.TemplateKey(now.BindingSpec().Resource) != binding.TemplateKey(k.ref()) || now.GetLabels()[by.Label()] != by.ID {
			return nil
		}
		before, ok := now.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copy of %T is no object", now)
		}
		by.Remove(now)
		return c.client.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}))
}

// readTwice hands the cache to do, and then, when that does not have the object
// or not the newest, the API server. That it has none is no error.
func readTwice(cached, live client.Reader, do func(client.Reader) error) func() error {
	asked := false
	return func() error {
		if !asked {
			asked = true
			if err := do(cached); !apierrors.IsNotFound(err) {
				return err
			}
		}
		return client.IgnoreNotFound(do(live))
	}
}

// livePolicy asks the API server for the policy of a claim.
func (c *claimer) livePolicy(ctx context.Context, of policy.Claim) (policy.Object, error) {
	var p policy.Object = &policyv1alpha1.ClusterPropagationPolicy{}
	if of.Namespace != "" {
		p = &policyv1alpha1.PropagationPolicy{}
	}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, p); err != nil {
		return nil, fmt.Errorf("look for policy %s: %w", of, err)
	}
	return p, nil
}

// mark changes labels and annotations of a template with one request, which fails
// with a conflict when the template is not what it was. It writes nothing when
// nothing differs. It returns the template as it is then.
func (c *claimer) mark(ctx context.Context, t *unstructured.Unstructured, change func(metav1.Object)) (*unstructured.Unstructured, error) {
	marked := &metav1.ObjectMeta{Labels: t.GetLabels(), Annotations: t.GetAnnotations()}
	change(marked)
	fields := map[string]any{}
	if d := difference(t.GetLabels(), marked.Labels); len(d) > 0 {
		fields["labels"] = d
	}
	if d := difference(t.GetAnnotations(), marked.Annotations); len(d) > 0 {
		fields["annotations"] = d
	}
	if len(fields) == 0 {
		return t, nil
	}
	fields["resourceVersion"] = t.GetResourceVersion()
	data, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	all, _, err := c.templates.Resource(t.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	var r dynamic.ResourceInterface = all
	if namespace := t.GetNamespace(); namespace != "" {
		r = all.Namespace(namespace)
	}
	next, err := r.Patch(ctx, t.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	next.SetManagedFields(nil)
	return next, nil
}

// difference returns what a merge patch says to make one map another.
func difference(from, to map[string]string) map[string]any {
	d := map[string]any{}
	for k, v := range to {
		if now, ok := from[k]; !ok || now != v {
			d[k] = v
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			d[k] = nil
		}
	}
	return d
}
