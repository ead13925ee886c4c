package rebalancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const (
	// askedAtOnce is how many bindings of one rebalancer are written at a time.
	askedAtOnce = 16
	// writeTries is how often a write is tried that others get in the way of.
	writeTries = 5
)

// A Reconciler reconciles WorkloadRebalancers.
type Reconciler struct {
	client client.Client // reads from a cache, which has the index binding.ByTemplate
	live   client.Reader
	now    func() time.Time
}

var _ reconcile.ObjectReconciler[*appsv1alpha1.WorkloadRebalancer] = (*Reconciler)(nil)

// Reconcile asks for what has not been asked for yet, says so in the status, and
// removes the rebalancer when its time has come.
func (r *Reconciler) Reconcile(ctx context.Context, w *appsv1alpha1.WorkloadRebalancer) (reconcile.Result, error) {
	if !w.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	before := w.DeepCopy()
	workloads := observe(&w.Spec, w.Status.ObservedWorkloads)
	failed := r.ask(ctx, w, workloads)
	conclude(w, workloads, r.now())
	if err := errors.Join(failed, r.writeStatus(ctx, before, w)); err != nil {
		return reconcile.Result{}, err
	}
	return r.expire(ctx, w)
}

// ask asks for the workloads that have no result, and notes the results.
func (r *Reconciler) ask(ctx context.Context, w *appsv1alpha1.WorkloadRebalancer, workloads []appsv1alpha1.ObservedWorkload) error {
	failures := make([]error, len(workloads))
	workqueue.ParallelizeUntil(ctx, askedAtOnce, len(workloads), func(i int) {
		o := &workloads[i]
		if o.Result != "" {
			return
		}
		found, err := r.reschedule(ctx, w, o.Workload)
		switch {
		case err != nil:
			failures[i] = err
		case found:
			o.Result = appsv1alpha1.RebalanceSuccessful
		default:
			o.Result, o.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
		}
	})
	first, count := ctx.Err(), 0 // when time is up, some were not even begun
	for i, err := range failures {
		if err != nil {
			count++
		}
		if err != nil && first == nil {
			first = fmt.Errorf("rebalance %s %s: %w", workloads[i].Workload.Kind, keyOf(workloads[i].Workload), err)
		}
	}
	if count > 1 {
		return fmt.Errorf("%d of %d workloads are still to be rebalanced, the first error is: %w", count, len(workloads), first)
	}
	return first
}

// reschedule asks for one workload, unless that has been done, and reports whether
// it has a binding.
func (r *Reconciler) reschedule(ctx context.Context, w *appsv1alpha1.WorkloadRebalancer, ref appsv1alpha1.ObjectReference) (found bool, err error) {
	b, err := r.find(ctx, ref)
	if b == nil || err != nil {
		return false, err
	}
	for range writeTries {
		asked := b.BindingSpec().RescheduleTriggeredAt
		if asked != nil && !asked.Before(&w.CreationTimestamp) {
			return true, nil
		}
		after, ok := b.DeepCopyObject().(binding.Object)
		if !ok {
			return false, fmt.Errorf("a copy of %T is no binding", b)
		}
		t := trigger(w.CreationTimestamp, b.BindingStatus().LastScheduledTime, r.now())
		after.BindingSpec().RescheduleTriggeredAt = &t
		err = r.client.Patch(ctx, after, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return true, nil
		}
		if apierrors.IsConflict(err) {
			// Others have written: a later rebalancer may have asked as well.
			b, err = r.get(ctx, r.live, ref, b.GetName())
		}
		if apierrors.IsNotFound(err) || err == nil && b == nil {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("ask for scheduling: %w", err)
		}
	}
	return false, fmt.Errorf("ask for scheduling: others kept writing the binding %s", b.GetName())
}

// find returns the binding of a workload, nil when it has none that stays. That it
// has none is an answer for good, so the API server is asked, too.
func (r *Reconciler) find(ctx context.Context, w appsv1alpha1.ObjectReference) (binding.Object, error) {
	if len(validation.IsDNS1123Label(w.Namespace)) > 0 && w.Namespace != "" {
		return nil, nil // there is no such namespace, and it makes no request
	}
	ref := reference(w)
	name, err := binding.NameFor(ctx, r.client, ref)
	if err != nil {
		return nil, err
	}
	if b, err := r.get(ctx, r.client, w, name); b != nil || err != nil {
		return b, err
	}
	for _, name := range []string{names.Binding(ref.Kind, ref.Name), names.BindingBeside(binding.GVK(ref).GroupKind(), ref.Name, ref.Namespace)} {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			continue
		}
		if b, err := r.get(ctx, r.live, w, name); b != nil || err != nil {
			return b, err
		}
	}
	return nil, nil
}

// get returns the binding of that name, nil when there is none, or it is another
// template's, or goes.
func (r *Reconciler) get(ctx context.Context, from client.Reader, w appsv1alpha1.ObjectReference, name string) (binding.Object, error) {
	b := binding.New(w.Namespace)
	err := from.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, b)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read its binding: %w", err)
	case !b.GetDeletionTimestamp().IsZero() || binding.TemplateKey(b.BindingSpec().Resource) != binding.TemplateKey(reference(w)):
		return nil, nil
	default:
		return b, nil
	}
}

// writeStatus writes what has changed of the status, if anything.
func (r *Reconciler) writeStatus(ctx context.Context, before, w *appsv1alpha1.WorkloadRebalancer) error {
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return nil
	}
	status := w.Status
	err := r.client.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status: %w", err)
	}
	w.Status = status // with what the server makes of times
	return nil
}

// expire removes a rebalancer that has been done for as long as it wants to be
// kept, unless it has changed since it was read.
func (r *Reconciler) expire(ctx context.Context, w *appsv1alpha1.WorkloadRebalancer) (reconcile.Result, error) {
	ttl, done := w.Spec.TTLSecondsAfterFinished, w.Status.FinishTime
	if ttl == nil || done == nil {
		return reconcile.Result{}, nil
	}
	if left := done.Add(time.Duration(*ttl) * time.Second).Sub(r.now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	uid, version := w.UID, w.ResourceVersion
	if err := r.client.Delete(ctx, w, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove what has finished: %w", err)
	}
	return reconcile.Result{}, nil
}

func reference(w appsv1alpha1.ObjectReference) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
}

func keyOf(w appsv1alpha1.ObjectReference) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
}
