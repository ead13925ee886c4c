package bind

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

const (
	// soon is when to look again for what the cache has not heard of yet, or what
	// is about to be gone.
	soon = time.Second
	// patiently is when to look again for what somebody has to make. That it was
	// made is noticed by itself, as a rule.
	patiently = 30 * time.Second
)

// A reconciler brings one template at a time up to date.
type reconciler struct {
	*claimer
	matcher     Matcher
	interpreter Interpreter
	gate        featuregate.FeatureGate
	record      events.EventRecorder
	ledger      *ledger
	meters      *meters
}

var _ reconcile.TypedReconciler[Key] = (*reconciler)(nil)

// Reconcile implements reconcile.TypedReconciler (spec: behaviour/03 3.2).
func (r *reconciler) Reconcile(ctx context.Context, k Key) (reconcile.Result, error) {
	touched, waited := r.ledger.take(k)
	result, err := r.reconcile(ctx, k, seen{touched: touched, waited: waited})
	if touched && (err != nil || result.RequeueAfter > 0) {
		r.ledger.touch(k) // it has still to be answered
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil // the cache is about to hear of it
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, k Key, s seen) (reconcile.Result, error) {
	t, err := r.get(ctx, k)
	if err != nil {
		return reconcile.Result{}, err
	}
	if t == nil || t.GetDeletionTimestamp() != nil || t.GetLabels()[names.ClaimedByLabel] != "" {
		r.ledger.forget(k)
		if t == nil {
			return reconcile.Result{}, r.collect(ctx, k)
		}
		return reconcile.Result{}, nil
	}
	c, claimed := policy.ClaimOf(t)
	if !claimed {
		return r.matched(ctx, k, t, s)
	}
	r.ledger.claimed(k)
	return r.claimed(ctx, t, c, s)
}

// get returns a template, nil when it is not there: should it be after all, or its
// kind be served again, it comes by itself.
func (c *claimer) get(ctx context.Context, k Key) (*unstructured.Unstructured, error) {
	t, known := c.templates.Cached(k.GroupVersionKind, k.Namespace, k.Name)
	if known {
		return t, nil
	}
	t, err := c.templates.Live(ctx, k.GroupVersionKind, k.Namespace, k.Name)
	if isGone(err) {
		return nil, nil
	}
	return t, err
}

// matched has the policy that wins, if there is one, claim a template.
func (r *reconciler) matched(ctx context.Context, k Key, t *unstructured.Unstructured, s seen) (reconcile.Result, error) {
	r.ledger.wait(k)
	start := time.Now()
	p, ok := r.matcher.Best(policy.SubjectOf(t))
	r.meters.matched(time.Since(start))
	if !ok {
		return reconcile.Result{}, nil // until a policy comes
	}
	result, err := r.apply(ctx, t, p, s)
	if err == nil && result == (reconcile.Result{}) {
		r.ledger.claimed(k)
	}
	return result, err
}

// claimed goes on with the policy that has claimed a template
// (spec: behaviour/03 3.3).
func (r *reconciler) claimed(ctx context.Context, t *unstructured.Unstructured, c policy.Claim, s seen) (reconcile.Result, error) {
	p, ok := r.matcher.Get(c.Namespace, c.Name)
	if !ok {
		_, err := r.livePolicy(ctx, c)
		switch {
		case apierrors.IsNotFound(err):
			return reconcile.Result{}, r.release(ctx, t, c) // by which it is matched anew
		case err != nil:
			return reconcile.Result{}, err
		default:
			return reconcile.Result{RequeueAfter: soon}, nil
		}
	}
	if !p.GetDeletionTimestamp().IsZero() {
		return reconcile.Result{RequeueAfter: patiently}, nil // it lets go of its templates itself
	}
	if !selects(p, policy.SubjectOf(t)) {
		if selectsVersion(p, policy.SubjectOf(t)) {
			return reconcile.Result{}, nil // it is bound as an object of another version
		}
		return reconcile.Result{}, r.release(ctx, t, c)
	}
	s.claimed = policy.By(p) == c
	return r.apply(ctx, t, p, s)
}

// apply has a policy claim a template and writes the binding
// (spec: behaviour/03 3.5), and tells of it.
func (r *reconciler) apply(ctx context.Context, t *unstructured.Unstructured, p policy.Object, s seen) (reconcile.Result, error) {
	by := policy.By(p)
	if by.ID == "" {
		return reconcile.Result{RequeueAfter: soon}, nil // it is about to get one
	}
	start := time.Now()
	written, err := r.bind(ctx, t, p, s)
	if apierrors.IsConflict(err) {
		return reconcile.Result{}, err // nothing to tell a user
	}
	r.meters.applied(time.Since(start), err)
	r.told(t, by, written, err)
	var (
		large   *binding.TooLargeError
		missing *missingOverridesError
		class   *missingPriorityError
	)
	switch {
	case err == nil:
		return reconcile.Result{}, nil
	case errors.As(err, &large):
		return reconcile.Result{}, reconcile.TerminalError(err) // when it changes, it comes by itself
	case errors.As(err, &missing), errors.As(err, &class):
		return reconcile.Result{RequeueAfter: patiently}, nil
	default:
		return reconcile.Result{}, err
	}
}

// bind claims a template and writes its binding, and reports whether it had to
// write a binding.
func (r *reconciler) bind(ctx context.Context, t *unstructured.Unstructured, p policy.Object, s seen) (written bool, err error) {
	if err := binding.CheckSize(t); err != nil {
		return false, err
	}
	if err := r.overridesExist(ctx, p); err != nil {
		return false, err
	}
	claimed, err := r.claim(ctx, t, policy.By(p))
	if err != nil {
		return false, err
	}
	if claimed.GetResourceVersion() != t.GetResourceVersion() {
		r.ledger.wrote(keyOf(claimed), claimed.GetResourceVersion())
	}
	t = claimed
	f, err := fingerprintOf(t)
	if err != nil {
		return false, err
	}
	ref := keyOf(t).ref()
	ref.UID = t.GetUID()
	now, name, err := r.find(ctx, ref)
	if err != nil {
		return false, err
	}
	if now != nil {
		if err := ours(now, ref); err != nil {
			return false, fmt.Errorf("binding %s: %w", name, err)
		}
	}
	how := activate(p, t, now, f, s)
	if how == nothing {
		return false, nil
	}
	w, err := r.describe(ctx, t, p, f)
	if err != nil {
		return false, err
	}
	put := w.put
	if how == templateOnly {
		put = w.putTemplate
	}
	written, err = r.write(ctx, now, name, ref, put)
	if written && w.pods.reason != "" {
		r.event(t, corev1.EventTypeNormal, w.pods.reason, w.pods.action, w.pods.note)
	}
	return written, err
}

// told records on a template what came of applying a policy.
func (r *reconciler) told(t *unstructured.Unstructured, by policy.Claim, written bool, err error) {
	what := "cluster policy"
	if by.Namespace != "" {
		what = "policy"
	}
	switch {
	case err != nil:
		r.event(t, corev1.EventTypeWarning, names.EventApplyPolicyFailed, "ApplyPolicy", fmt.Sprintf("Apply %s(%s) failed: %v", what, by, err))
	case written:
		r.event(t, corev1.EventTypeNormal, names.EventApplyPolicySucceed, "ApplyPolicy", fmt.Sprintf("Apply %s(%s) succeed", what, by))
	}
}

func (r *reconciler) event(t *unstructured.Unstructured, kind, reason, action, note string) {
	r.record.Eventf(t, nil, kind, reason, action, "%s", brief.Note(note))
}
