package bind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A policyReconciler brings policies of both scopes up to date, that is: it has
// the templates worked on that a policy concerns, and lets go of them when it is
// deleted (spec: behaviour/03 3.8).
type policyReconciler struct {
	*claimer
	matcher    Matcher
	record     events.EventRecorder
	ledger     *ledger
	queue      *inbox
	meters     *meters
	preemption bool // the feature is on
}

// reconcilerOf adapts a policyReconciler to one scope.
type reconcilerOf[P policy.Object] policyReconciler

// Reconcile implements reconcile.ObjectReconciler.
func (r reconcilerOf[P]) Reconcile(ctx context.Context, p P) (reconcile.Result, error) {
	return reconcile.Result{}, policyReconciler(r).reconcile(ctx, p)
}

// newPolicy returns an empty policy of one scope.
func newPolicy[P policy.Object]() (policy.Object, error) {
	var none P
	switch any(none).(type) {
	case *policyv1alpha1.PropagationPolicy:
		return &policyv1alpha1.PropagationPolicy{}, nil
	case *policyv1alpha1.ClusterPropagationPolicy:
		return &policyv1alpha1.ClusterPropagationPolicy{}, nil
	default:
		return nil, fmt.Errorf("%T is no propagation policy", none)
	}
}

func (r policyReconciler) reconcile(ctx context.Context, p policy.Object) error {
	if !p.GetDeletionTimestamp().IsZero() {
		know(r.matcher, r.templates, p)
		return r.letGo(ctx, p)
	}
	if err := r.identify(ctx, p); err != nil {
		return err
	}
	know(r.matcher, r.templates, p) // its templates must not be worked on without it
	err := r.enqueue(ctx, p)
	if r.preemption && p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
		err = errors.Join(err, r.preempt(ctx, p))
	}
	return err
}

// identify gives a policy what admission gives each one as a rule: a permanent
// identity, without which it can claim nothing, and the finalizer, without which
// its claims would outlive it.
func (r policyReconciler) identify(ctx context.Context, p policy.Object) error {
	before, ok := p.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy of %T is no object", p)
	}
	c := policy.By(p)
	changed := controllerutil.AddFinalizer(p, finalizerOf(p))
	if c.ID == "" {
		p.SetLabels(with(p.GetLabels(), c.Label(), string(uuid.NewUUID())))
		changed = true
	}
	if !changed {
		return nil
	}
	if err := r.client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("give policy %s a permanent identity: %w", c, err)
	}
	return nil
}

func finalizerOf(p policy.Object) string {
	if p.GetNamespace() != "" {
		return names.PropagationPolicyFinalizer
	}
	return names.ClusterPropagationPolicyFinalizer
}

// A place is where a selector looks for templates.
type place struct {
	schema.GroupVersionKind
	namespace string // empty: anywhere
}

// places returns where the templates are that a policy selects, each place once.
func places(p policy.Object) []place {
	var all []place
	for _, s := range p.PropagationSpec().ResourceSelectors {
		at := place{gvkOf(s), namespaceOf(p, s)}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

func gvkOf(s policyv1alpha1.ResourceSelector) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
}

// namespaceOf returns the namespace a selector of a policy means, empty for any.
func namespaceOf(p policy.Object, s policyv1alpha1.ResourceSelector) string {
	if p.GetNamespace() != "" {
		return p.GetNamespace()
	}
	return s.Namespace
}

// enqueue has the templates worked on that a policy has claimed, and those it may
// claim now. What is wrong with one kind keeps none of another back.
func (r policyReconciler) enqueue(ctx context.Context, p policy.Object) error {
	c := policy.By(p)
	bound, err := r.bound(ctx, c)
	for _, b := range bound {
		r.queue.put(keyOfRef(b.BindingSpec().Resource), later)
	}
	errs := []error{err}
	for _, at := range places(p) {
		if !r.templates.Synced(at.GroupVersionKind) {
			continue // all of the kind are about to come
		}
		claimed, err := r.templates.ListClaimed(ctx, at.GroupVersionKind, at.namespace, c.Label(), c.ID)
		if err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("find what policy %s has claimed: %w", c, err))
		}
		for _, t := range claimed {
			r.queue.put(keyOf(t), later)
		}
	}
	for _, s := range p.PropagationSpec().ResourceSelectors {
		for _, k := range r.ledger.among(gvkOf(s), namespaceOf(p, s), s.Name) {
			if s.Name != "" || s.LabelSelector == nil {
				r.queue.put(k, later)
				continue
			}
			t, known := r.templates.Cached(k.GroupVersionKind, k.Namespace, k.Name)
			if !known || t != nil && selects(p, policy.SubjectOf(t)) {
				r.queue.put(k, later)
			}
		}
	}
	return errors.Join(errs...)
}

// bound returns the bindings that say a policy has claimed their templates. They
// are shared: do not change them.
func (r policyReconciler) bound(ctx context.Context, c policy.Claim) ([]binding.Object, error) {
	if c.ID == "" {
		return nil, nil
	}
	var (
		all   []binding.Object
		match = []client.ListOption{client.MatchingFields{binding.ByPolicy: c.ID}, client.UnsafeDisableDeepCopy}
		space workv1alpha2.ResourceBindingList
	)
	err := r.client.List(ctx, &space, append(match, client.InNamespace(c.Namespace))...)
	for i := range space.Items {
		all = append(all, &space.Items[i])
	}
	if c.Namespace == "" {
		var cluster workv1alpha2.ClusterResourceBindingList
		err = errors.Join(err, r.client.List(ctx, &cluster, match...))
		for i := range cluster.Items {
			all = append(all, &cluster.Items[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find the bindings of policy %s: %w", c, err)
	}
	return all, nil
}

// letGo takes the claims of a policy off everything, and then lets the policy go.
// What it has bound stays as it is. A kind that is not served has no templates; one
// that nobody can ask for keeps the policy, but none of the other kinds.
func (r policyReconciler) letGo(ctx context.Context, p policy.Object) error {
	if !controllerutil.ContainsFinalizer(p, finalizerOf(p)) {
		return nil
	}
	c := policy.By(p)
	if c.ID != "" {
		if err := r.releaseAll(ctx, p, c); err != nil {
			return err
		}
	}
	next, ok := p.DeepCopyObject().(client.Object) // others know p
	if !ok {
		return fmt.Errorf("copy of %T is no object", p)
	}
	controllerutil.RemoveFinalizer(next, finalizerOf(p))
	err := r.client.Patch(ctx, next, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let policy %s go: %w", c, err)
	}
	return nil
}

func (r policyReconciler) releaseAll(ctx context.Context, p policy.Object, c policy.Claim) error {
	all := places(p)
	bound, err := r.bound(ctx, c)
	if err != nil {
		return err
	}
	for _, b := range bound { // of selectors that the policy had once
		ref := b.BindingSpec().Resource
		if at := (place{binding.GVK(ref), ref.Namespace}); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	var errs []error
	for _, at := range all {
		claimed, err := r.templates.ListClaimed(ctx, at.GroupVersionKind, at.namespace, c.Label(), c.ID)
		if err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("find what policy %s has claimed: %w", c, err))
		}
		for _, t := range claimed {
			errs = append(errs, r.release(ctx, t, c))
		}
	}
	return errors.Join(errs...)
}

// preempt has a policy take the templates that it names from policies of a lower
// priority (spec: behaviour/03 3.9).
func (r policyReconciler) preempt(ctx context.Context, p policy.Object) error {
	var errs []error
	for _, s := range p.PropagationSpec().ResourceSelectors {
		if s.Name == "" {
			continue // a preempting policy names what it takes
		}
		templates, err := r.named(ctx, p, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("preempt: %w", err))
			continue
		}
		for _, t := range templates {
			errs = append(errs, r.preemptOne(ctx, p, t))
		}
	}
	return errors.Join(errs...)
}

// named returns the templates that a selector with a name selects.
func (r policyReconciler) named(ctx context.Context, p policy.Object, s policyv1alpha1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	k := Key{gvkOf(s), namespaceOf(p, s), s.Name}
	t, err := r.get(ctx, k)
	if err != nil || t != nil {
		return []*unstructured.Unstructured{t}, err
	}
	_, namespaced, err := r.templates.Resource(k.GroupVersionKind)
	if isGone(err) || err == nil && (!namespaced || k.Namespace != "") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := r.templates.List(ctx, k.GroupVersionKind, "", labels.Everything())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(t *unstructured.Unstructured) bool { return t.GetName() != s.Name }), nil
}

func (r policyReconciler) preemptOne(ctx context.Context, p policy.Object, t *unstructured.Unstructured) error {
	from, ok := policy.ClaimOf(t)
	if !ok || t.GetDeletionTimestamp() != nil || t.GetLabels()[names.ClaimedByLabel] != "" || r.queue.isExempt(keyOf(t)) {
		return nil
	}
	by := policy.By(p)
	wins, err := r.preempts(ctx, p, from)
	if err == nil && !wins {
		return nil
	}
	if err == nil {
		_, err = r.claim(ctx, t, by)
	}
	r.meters.preempted(err)
	if err != nil {
		r.record.Eventf(t, nil, corev1.EventTypeWarning, names.EventPreemptPolicyFailed, "PreemptPolicy", "Policy(%s) preempted policy(%s) failed: %v", by, from, err)
		return fmt.Errorf("preempt policy %s: %w", from, err)
	}
	r.record.Eventf(t, nil, corev1.EventTypeNormal, names.EventPreemptPolicySucceed, "PreemptPolicy", "Policy(%s) preempted policy(%s) succeed", by, from)
	return nil
}

// preempts reports whether a policy takes a template from the one that has
// claimed it.
func (r policyReconciler) preempts(ctx context.Context, p policy.Object, from policy.Claim) (bool, error) {
	switch {
	case from.Namespace == p.GetNamespace() && from.Name == p.GetName():
		return false, nil
	case from.Namespace == "" && p.GetNamespace() != "":
		return true, nil // a PropagationPolicy comes before a ClusterPropagationPolicy, whatever their priorities
	case from.Namespace != "" && p.GetNamespace() == "":
		return false, nil
	}
	other, ok := r.matcher.Get(from.Namespace, from.Name)
	if !ok {
		var err error
		if other, err = r.livePolicy(ctx, from); err != nil {
			return false, err
		}
	}
	return policy.Priority(p.PropagationSpec()) > policy.Priority(other.PropagationSpec()), nil
}

// selects reports whether a policy selects a template.
func selects(p policy.Object, s policy.Subject) bool {
	if p.GetNamespace() != "" && p.GetNamespace() != s.Namespace {
		return false
	}
	return policy.LevelOf(p.PropagationSpec().ResourceSelectors, s) != policy.None
}

// selectsVersion reports whether a policy selects a template as an object of
// another version of its kind.
func selectsVersion(p policy.Object, s policy.Subject) bool {
	for _, selector := range p.PropagationSpec().ResourceSelectors {
		if gvkOf(selector).GroupKind() == s.GVK().GroupKind() {
			s.APIVersion = selector.APIVersion
			if selects(p, s) {
				return true
			}
		}
	}
	return false
}

// byOverride indexes policies by the override policies that must be there before
// they do anything.
const byOverride = "dependentOverrides"

func indexPolicies(ctx context.Context, indexer client.FieldIndexer) error {
	overrides := func(o client.Object) []string {
		if p, ok := o.(policy.Object); ok {
			return p.PropagationSpec().DependentOverrides
		}
		return nil
	}
	for _, p := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}} {
		if err := indexer.IndexField(ctx, p, byOverride, overrides); err != nil {
			return fmt.Errorf("index policies by override: %w", err)
		}
	}
	return nil
}

// dependents finds the policies that wait for an override policy.
func dependents(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, override client.Object) []reconcile.Request {
		match := []client.ListOption{client.MatchingFields{byOverride: override.GetName()}, client.UnsafeDisableDeepCopy}
		var requests []reconcile.Request
		add := func(p client.Object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
		var err error
		if namespace := override.GetNamespace(); namespace != "" {
			var all policyv1alpha1.PropagationPolicyList
			err = reader.List(ctx, &all, append(match, client.InNamespace(namespace))...)
			for i := range all.Items {
				add(&all.Items[i])
			}
		} else {
			var all policyv1alpha1.ClusterPropagationPolicyList
			err = reader.List(ctx, &all, match...)
			for i := range all.Items {
				add(&all.Items[i])
			}
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Could not find the policies that wait for an override policy", "override", override.GetName())
		}
		return requests
	}
}

// A missingOverridesError says which override policies a policy waits for.
type missingOverridesError struct{ kind, missing string }

func (e *missingOverridesError) Error() string {
	return fmt.Sprintf("waiting for dependent overrides: there is no %s %s", e.kind, e.missing)
}

// overridesExist makes sure that the override policies are there that a policy
// depends on.
func (c *claimer) overridesExist(ctx context.Context, p policy.Object) error {
	for _, name := range p.PropagationSpec().DependentOverrides {
		var override client.Object = &policyv1alpha1.ClusterOverridePolicy{}
		kind := "ClusterOverridePolicy"
		if p.GetNamespace() != "" {
			override, kind = &policyv1alpha1.OverridePolicy{}, "OverridePolicy"
		}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: p.GetNamespace(), Name: name}, override)
		if apierrors.IsNotFound(err) {
			return &missingOverridesError{kind: kind, missing: name}
		}
		if err != nil {
			return fmt.Errorf("look for %s %s: %w", kind, name, err)
		}
	}
	return nil
}
