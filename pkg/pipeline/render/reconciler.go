package render

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/policy"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// lookAgain is how long a binding waits at most for what its own events tell
// sooner: that a Work is gone, or that the cache has caught up.
const lookAgain = 5 * time.Second

// errIdentity says that override policies made another object of a template.
var errIdentity = errors.New("override policies may not change which object it is")

// A Reconciler reconciles bindings of one scope.
type Reconciler[B binding.Object] struct {
	client client.Client // reads from a cache
	live   client.Reader

	templates   Templates
	interpreter Interpreter
	injectState bool
	record      events.EventRecorder
}

var (
	_ reconcile.ObjectReconciler[*workv1alpha2.ResourceBinding]        = (*Reconciler[*workv1alpha2.ResourceBinding])(nil)
	_ reconcile.ObjectReconciler[*workv1alpha2.ClusterResourceBinding] = (*Reconciler[*workv1alpha2.ClusterResourceBinding])(nil)
)

// Reconcile makes the Works of a live binding, and removes those that it has no
// more. New ones are made first, but where a cluster must have been left before.
func (r *Reconciler[B]) Reconcile(ctx context.Context, b B) (reconcile.Result, error) {
	if !b.GetDeletionTimestamp().IsZero() {
		return reconcile.Result{}, r.withdraw(ctx, b)
	}
	if err := r.mark(ctx, b); err != nil {
		return reconcile.Result{}, err
	}
	there, err := r.worksOf(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left := there.purged(b.BindingSpec()); len(left) > 0 {
		return r.cleanUp(ctx, b, left)
	}
	template, err := r.template(ctx, b)
	if err != nil {
		r.recordSync(b, err)
		return reconcile.Result{}, err
	}
	if template == nil {
		return reconcile.Result{}, nil
	}
	wrote, missing, errs := r.renderAll(ctx, b, template, there)
	if wrote || len(errs) > 0 {
		r.recordSync(b, errors.Join(errs...))
	}
	if missing {
		return reconcile.Result{}, join(errs...) // nothing goes before its replacement is there
	}
	result, err := r.cleanUp(ctx, b, there.outside(binding.Expected(b.BindingSpec())))
	return result, join(append(errs, err)...)
}

// mark gives a binding that came without them what its Works are found by and
// kept from getting lost by: a permanent identity and the finalizer. Who makes
// bindings here does so from the start.
func (r *Reconciler[B]) mark(ctx context.Context, b B) error {
	scope := binding.ScopeOf(b)
	if binding.ID(b) != "" && controllerutil.ContainsFinalizer(b, scope.Finalizer) {
		return nil
	}
	return r.patch(ctx, b, func(b B) bool {
		if binding.ID(b) == "" {
			b.SetLabels(with(b.GetLabels(), map[string]string{scope.IDLabel: string(uuid.NewUUID())}))
		}
		controllerutil.AddFinalizer(b, scope.Finalizer)
		return true
	})
}

// withdraw removes all Works of a deleted binding, and lets it go. That they are
// gone from the clusters is the Works' own business.
func (r *Reconciler[B]) withdraw(ctx context.Context, b B) error {
	finalizer := binding.ScopeOf(b).Finalizer
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return nil
	}
	there, err := r.worksOf(ctx, b)
	if err != nil {
		return err
	}
	unseen, err := r.unseen(ctx, b, there)
	if err != nil {
		return err
	}
	if err := r.removeAll(ctx, b, append(there.all(), unseen...)); err != nil {
		r.record.Eventf(b, nil, corev1.EventTypeWarning, names.EventCleanupWorkFailed, "CleanupWork", "%s", brief.Note(err.Error()))
		return err
	}
	return r.patch(ctx, b, func(b B) bool { return controllerutil.RemoveFinalizer(b, finalizer) })
}

// patch changes the metadata of a binding, on the basis of what it is now. A
// binding that is gone needs no change, nor does its successor, which has Works of
// its own to be kept for.
func (r *Reconciler[B]) patch(ctx context.Context, b B, change func(B) bool) error {
	first, uid := true, b.GetUID()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
				return err
			}
		}
		first = false
		if b.GetUID() != uid {
			return nil
		}
		before, ok := b.DeepCopyObject().(client.Object)
		if !ok || !change(b) {
			return nil
		}
		return r.client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("write finalizer and identity of the binding: %w", err)
	}
	return nil
}

// template returns what is bound, nil when it is gone, or when there is another
// of that name: then so is the binding, soon.
func (r *Reconciler[B]) template(ctx context.Context, b B) (*unstructured.Unstructured, error) {
	ref := b.BindingSpec().Resource
	template, err := r.templates.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, err)
	}
	if ref.UID != "" && template.GetUID() != "" && ref.UID != template.GetUID() {
		return nil, nil
	}
	return template, nil
}

// cleanUp removes Works that a binding is to have no more, if that is certain: the
// binding must be as it is in the API, and where it names no cluster at all a
// scheduler must have said so, or the one that left the cluster.
func (r *Reconciler[B]) cleanUp(ctx context.Context, b B, gone works) (reconcile.Result, error) {
	if len(gone) == 0 {
		return reconcile.Result{}, nil
	}
	now, ok := b.DeepCopyObject().(B)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("%T is no binding", b)
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if now.GetUID() != b.GetUID() || now.GetGeneration() != b.GetGeneration() || !now.GetDeletionTimestamp().IsZero() {
		return reconcile.Result{RequeueAfter: lookAgain}, nil // its event comes before that
	}
	certain := gone
	if !binding.IsDecided(now) {
		certain = gone.purged(now.BindingSpec())
	}
	if err := r.removeAll(ctx, b, certain.all()); err != nil {
		r.record.Eventf(b, nil, corev1.EventTypeWarning, names.EventCleanupWorkFailed, "CleanupWork", "%s", brief.Note(err.Error()))
		return reconcile.Result{}, err
	}
	if len(gone.purged(b.BindingSpec())) > 0 {
		return reconcile.Result{RequeueAfter: lookAgain}, nil // others wait for it
	}
	return reconcile.Result{}, nil
}

// renderAll makes the Work of each target. It says whether it wrote any, and
// whether a target is without one: an error of one does not hold back the others.
func (r *Reconciler[B]) renderAll(ctx context.Context, b B, template *unstructured.Unstructured, there works) (wrote, missing bool, errs []error) {
	spec := b.BindingSpec()
	targets := binding.Targets(spec)
	if len(targets) == 0 {
		return false, false, nil
	}
	j := job[B]{Reconciler: r, binding: b, template: template, works: there}
	var err error
	if j.completions, err = completions(spec, targets, template); err != nil {
		return false, true, []error{err}
	}
	if j.cops, j.ops, err = r.overrides(ctx, template); err != nil {
		return false, true, []error{err}
	}
	if r.injectState {
		j.state = preservedState(spec, targets)
	}
	released := isReleased(b)
	for _, target := range targets {
		if released && there.stay(target.Name) {
			continue
		}
		did, err := j.render(ctx, target)
		wrote = wrote || did
		if err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", target.Name, err))
			missing = missing || !there.stay(target.Name)
		}
	}
	return wrote, missing, errs
}

// overrides lists the override policies that select a template. They are shared.
func (r *Reconciler[B]) overrides(
	ctx context.Context, template *unstructured.Unstructured,
) ([]policyv1alpha1.ClusterOverridePolicy, []policyv1alpha1.OverridePolicy, error) {
	cluster, namespaced := &policyv1alpha1.ClusterOverridePolicyList{}, &policyv1alpha1.OverridePolicyList{}
	if err := r.client.List(ctx, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list ClusterOverridePolicies: %w", err)
	}
	if ns := template.GetNamespace(); ns != "" {
		if err := r.client.List(ctx, namespaced, client.InNamespace(ns), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("list OverridePolicies: %w", err)
		}
	}
	subject := policy.SubjectOf(template)
	var cops []policyv1alpha1.ClusterOverridePolicy
	for i := range cluster.Items {
		if policy.OverrideLevel(&cluster.Items[i].Spec, subject) != policy.None {
			cops = append(cops, cluster.Items[i])
		}
	}
	var ops []policyv1alpha1.OverridePolicy
	for i := range namespaced.Items {
		if policy.OverrideLevel(&namespaced.Items[i].Spec, subject) != policy.None {
			ops = append(ops, namespaced.Items[i])
		}
	}
	return cops, ops, nil
}

// A job is what the Works of one binding are made from.
type job[B binding.Object] struct {
	*Reconciler[B]
	binding     B
	template    *unstructured.Unstructured
	works       works
	completions map[string]int64
	cops        []policyv1alpha1.ClusterOverridePolicy
	ops         []policyv1alpha1.OverridePolicy
	state       map[string]string
}

// render makes the Work of one target, and says whether it had to write.
func (j *job[B]) render(ctx context.Context, target workv1alpha2.TargetCluster) (bool, error) {
	object, err := revise(ctx, j.interpreter, j.binding.BindingSpec(), target, j.template)
	if err != nil {
		return false, err
	}
	if n, ok := j.completions[target.Name]; ok {
		object = withCompletions(object, n)
	}
	overridden, err := j.override(ctx, target.Name, object)
	if err != nil {
		return false, err
	}
	want, err := workOf(j.binding, j.template, target.Name, overridden)
	if err != nil {
		return false, err
	}
	object = marked(overridden.Object, j.binding, j.template.GetGeneration(), j.state)
	for _, want.Name = range j.works.names(target.Name, j.binding.BindingSpec().Resource) {
		var wrote bool
		wrote, err = binding.EnsureWork(ctx, j.client, want, object, binding.Live(j.live), binding.OnlyIf(mine(j.binding, j.template)))
		if wrote {
			j.recordOverridden(target.Name, overridden)
		}
		if !errors.Is(err, errTaken) {
			return wrote, err
		}
	}
	return false, err
}

// override applies the override policies for one cluster.
func (j *job[B]) override(ctx context.Context, cluster string, object *unstructured.Unstructured) (override.Result, error) {
	if len(j.cops)+len(j.ops) == 0 {
		return override.Result{Object: object}, nil
	}
	c := &clusterv1alpha1.Cluster{}
	if err := j.client.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy); err != nil {
		return override.Result{}, fmt.Errorf("read the cluster for override policies: %w", err)
	}
	result, err := override.Apply(object, c, j.cops, j.ops)
	if err == nil {
		err = sameObject(object, result.Object)
	}
	if err != nil {
		j.recordOverrideFailed(cluster, err)
		return override.Result{}, err
	}
	return result, nil
}

// isFinal reports whether an error stays until an object changes of which we
// hear.
func isFinal(err error) bool {
	var (
		bad   *override.Error
		large *binding.TooLargeError
	)
	return errors.Is(err, errIdentity) || errors.As(err, &bad) || errors.As(err, &large) || apierrors.IsRequestEntityTooLargeError(err)
}

// join makes one error of several, none of which is made of several. It is not
// retried if that would mend none of them.
func join(errs ...error) error {
	final := true
	for _, err := range errs {
		final = final && (err == nil || isFinal(err))
	}
	err := errors.Join(errs...)
	if err != nil && final {
		return reconcile.TerminalError(err)
	}
	return err
}
