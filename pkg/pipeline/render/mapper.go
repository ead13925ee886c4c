package render

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A mapper finds the bindings of one scope that an event is about.
type mapper struct {
	client     client.Reader
	templates  Templates
	namespaced bool
}

// ofWork finds the binding of a Work.
func (m mapper) ofWork(_ context.Context, o client.Object) []reconcile.Request {
	w, ok := o.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	key, ok := binding.OfWork(w)
	if !ok || (key.Namespace != "") != m.namespaced {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofCluster finds the bindings that have a Work in a cluster, if there are
// override policies that may say something else about it now.
func (m mapper) ofCluster(ctx context.Context, c client.Object) []reconcile.Request {
	if !m.anyOverride(ctx) {
		return nil
	}
	works := &workv1alpha1.WorkList{}
	if err := m.client.List(ctx, works, client.InNamespace(names.ExecutionNamespace(c.GetName())), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the Works of a cluster", "cluster", c.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range works.Items {
		requests = append(requests, m.ofWork(ctx, &works.Items[i])...)
	}
	return requests
}

// anyOverride reports whether there are override policies that bindings of this
// scope heed. When that cannot be found out, there may be.
func (m mapper) anyOverride(ctx context.Context) bool {
	one := []client.ListOption{client.Limit(1), client.UnsafeDisableDeepCopy}
	cluster, namespaced := &policyv1alpha1.ClusterOverridePolicyList{}, &policyv1alpha1.OverridePolicyList{}
	if err := m.client.List(ctx, cluster, one...); err != nil || len(cluster.Items) > 0 {
		return true
	}
	if !m.namespaced {
		return false
	}
	err := m.client.List(ctx, namespaced, one...)
	return err != nil || len(namespaced.Items) > 0
}

// ofOverride finds the bindings whose templates an override policy selects. It
// is asked for the policy as it was, too.
func (m mapper) ofOverride(ctx context.Context, o client.Object) []reconcile.Request {
	p, ok := o.(policy.Override)
	if !ok {
		return nil
	}
	bindings, err := m.bindings(ctx, p.GetNamespace())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list the bindings that an override policy may select", "policy", client.ObjectKeyFromObject(p))
		return nil
	}
	var requests []reconcile.Request
	for _, b := range bindings {
		if m.selects(ctx, p.OverrideSpec(), b.BindingSpec().Resource) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return requests
}

// bindings lists those of a namespace, or all. They are shared.
func (m mapper) bindings(ctx context.Context, namespace string) ([]binding.Object, error) {
	var all []binding.Object
	if m.namespaced {
		list := &workv1alpha2.ResourceBindingList{}
		err := m.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, err
	}
	list := &workv1alpha2.ClusterResourceBindingList{}
	err := m.client.List(ctx, list, client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, err
}

// selects reports whether an override policy selects a template, which is read
// only if its labels matter. If that fails it may be selected.
func (m mapper) selects(ctx context.Context, spec *policyv1alpha1.OverrideSpec, ref workv1alpha2.ObjectReference) bool {
	subject := policy.Subject{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	if policy.OverrideLevel(spec, subject) != policy.None {
		return true
	}
	byLabel := false
	for _, s := range spec.ResourceSelectors {
		byLabel = byLabel || s.Name == "" && s.LabelSelector != nil && s.Kind == ref.Kind && s.APIVersion == ref.APIVersion
	}
	if !byLabel {
		return false
	}
	template, err := m.templates.Get(ctx, ref)
	if err != nil {
		return true
	}
	return policy.OverrideLevel(spec, policy.SubjectOf(template)) != policy.None
}
