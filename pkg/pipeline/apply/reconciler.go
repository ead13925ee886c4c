package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// lookAgain is how long a Work waits at most for its Cluster to be there and
// ready; a change of the Cluster brings it back at once.
const lookAgain = time.Minute

// eventNamespaceKept is the reason of the event on a Work whose namespace was
// not deleted with it. It is not part of Karmada's API.
const eventNamespaceKept = "NamespaceKept"

// maxNote is how long the note of an event may be.
const maxNote = 1024

// A Reconciler reconciles Works.
type Reconciler struct {
	client client.Client // reads from a cache
	live   client.Reader

	members   func(context.Context, *clusterv1alpha1.Cluster) (Member, error)
	mine      func(*clusterv1alpha1.Cluster) bool
	retain    Retain
	record    events.EventRecorder
	resources *metrics.Resources
	durations *prometheus.HistogramVec
	ledger    *ledger
}

var _ reconcile.ObjectReconciler[*workv1alpha1.Work] = (*Reconciler)(nil)

// Reconcile dispatches a live Work and withdraws a deleted one.
func (r *Reconciler) Reconcile(ctx context.Context, w *workv1alpha1.Work) (reconcile.Result, error) {
	c, err := r.cluster(ctx, w)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case c == nil && w.DeletionTimestamp.IsZero():
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case c == nil:
		return reconcile.Result{}, r.removeFinalizer(ctx, w)
	case !r.mine(c):
		return reconcile.Result{}, nil
	case !w.DeletionTimestamp.IsZero():
		return r.withdraw(ctx, c, w)
	}
	if err := r.addFinalizer(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	before := w.DeepCopy()
	result, err := r.dispatch(ctx, c, w) // changes w.Status in memory only
	return result, errors.Join(err, r.patchStatus(ctx, before, w))
}

// cluster returns the Cluster that a Work is for, nil when there is none. That
// is certain then: neither a cache that lags says so, nor an API that is not
// served for a moment.
func (r *Reconciler) cluster(ctx context.Context, w *workv1alpha1.Work) (*clusterv1alpha1.Cluster, error) {
	name, err := names.ClusterOfExecutionNamespace(w.Namespace)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	c := &clusterv1alpha1.Cluster{}
	err = r.client.Get(ctx, types.NamespacedName{Name: name}, c)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, types.NamespacedName{Name: name}, c)
		if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	return c, nil
}

// dispatch applies every manifest, and notes on w how that went.
func (r *Reconciler) dispatch(ctx context.Context, c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) (reconcile.Result, error) {
	if markDispatching(w) {
		r.recordDispatching(w)
	}
	if isSuspended(w) {
		return reconcile.Result{}, nil
	}
	if !isReady(c) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	start := time.Now()
	applied, wrote, err := r.applyAll(ctx, c, w)
	r.durations.WithLabelValues(resultOf(err)).Observe(time.Since(start).Seconds())
	if markApplied(w, applied, len(w.Spec.Workload.Manifests), err) || wrote || err != nil {
		r.recordApplied(w, err)
	}
	return reconcile.Result{}, err
}

// applyAll applies every manifest: one that fails does not hold back the others.
func (r *Reconciler) applyAll(ctx context.Context, c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) (applied int, wrote bool, err error) {
	m, err := r.members(ctx, c)
	if err != nil {
		return 0, false, fmt.Errorf("reach cluster %s: %w", c.Name, err)
	}
	var errs []error
	for _, manifest := range w.Spec.Workload.Manifests {
		t, err := r.target(m, w, manifest)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		did, err := t.apply(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		applied++
		wrote = wrote || did
	}
	return applied, wrote, errors.Join(errs...)
}

// withdraw removes, or releases, what w put on its member, then lets w go.
func (r *Reconciler) withdraw(ctx context.Context, c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(w, names.WorkFinalizer) {
		return reconcile.Result{}, nil
	}
	switch {
	case isReady(c):
		if err := r.undoAll(ctx, c, w); err != nil {
			return reconcile.Result{}, err
		}
	case !isLeaving(c):
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, r.removeFinalizer(ctx, w)
}

// undoAll deletes or releases every manifest. What the member has no kind for,
// or nobody can read, it does not have. What was to go and had to stay is told.
func (r *Reconciler) undoAll(ctx context.Context, c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) error {
	m, err := r.members(ctx, c)
	if err != nil {
		return fmt.Errorf("reach cluster %s: %w", c.Name, err)
	}
	var errs []error
	for _, manifest := range w.Spec.Workload.Manifests {
		if _, err := decode(manifest); err != nil {
			continue
		}
		t, err := r.target(m, w, manifest)
		switch {
		case meta.IsNoMatchError(err):
		case err != nil:
			errs = append(errs, err)
		case preserves(w) || keepsObjects(c, w):
			errs = append(errs, t.release(ctx))
		default:
			kept, err := t.delete(ctx)
			if kept != "" {
				r.record.Eventf(w, nil, corev1.EventTypeWarning, eventNamespaceKept, "Withdraw", "%s", truncate(kept, maxNote))
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// addFinalizer makes sure that w is withdrawn before it goes. Whoever makes a
// Work should have set it; users do not.
func (r *Reconciler) addFinalizer(ctx context.Context, w *workv1alpha1.Work) error {
	err := r.patch(ctx, w, r.client.Patch, func(w *workv1alpha1.Work) bool {
		return w.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(w, names.WorkFinalizer)
	})
	if err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, w *workv1alpha1.Work) error {
	err := r.patch(ctx, w, r.client.Patch, func(w *workv1alpha1.Work) bool {
		return controllerutil.RemoveFinalizer(w, names.WorkFinalizer)
	})
	if err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// patchStatus writes the conditions of w, if they differ from before.
func (r *Reconciler) patchStatus(ctx context.Context, before, w *workv1alpha1.Work) error {
	err := r.patch(ctx, before, func(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		return r.client.Status().Patch(ctx, o, p)
	}, func(current *workv1alpha1.Work) bool { return copyConditions(w, current) })
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// patch changes a Work, if change says that it did; on a conflict it does so
// again on what is there. A Work that is gone needs no change.
func (r *Reconciler) patch(
	ctx context.Context, w *workv1alpha1.Work,
	write func(context.Context, client.Object, client.Patch, ...client.PatchOption) error,
	change func(*workv1alpha1.Work) bool,
) error {
	first := true
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
		}
		first = false
		before := w.DeepCopy()
		if !change(w) {
			return nil
		}
		return write(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	return ignoreNotFound(err)
}

// drifted reports which Work, if any, an event of a member concerns: the object
// was changed in what is relevant, or removed, by somebody else
// (spec: behaviour/02 2.5).
func (r *Reconciler) drifted(e member.Event) (reconcile.Request, bool) {
	subject := e.Old
	if subject == nil {
		subject = e.New
	}
	annotations := subject.GetAnnotations()
	work := types.NamespacedName{Namespace: annotations[names.WorkNamespaceAnnotation], Name: annotations[names.WorkNameAnnotation]}
	if !isManaged(subject) || work.Name == "" || work.Namespace != names.ExecutionNamespace(e.Cluster) {
		return reconcile.Request{}, false // nothing on one member may speak for another
	}
	if e.New != nil {
		wrote := r.ledger.get(e.Cluster, place{gvr: e.GVR, namespace: e.New.GetNamespace(), name: e.New.GetName()})
		if wrote == "" || wrote == e.New.GetResourceVersion() || e.Old != nil && !differs(e.Old, e.New) {
			return reconcile.Request{}, false
		}
	}
	return reconcile.Request{NamespacedName: work}, true
}

// forget drops what is known about a cluster that is gone.
func (r *Reconciler) forget(cluster string) {
	r.ledger.forget(cluster)
	r.resources.Forget(cluster)
}

func (r *Reconciler) recordDispatching(w *workv1alpha1.Work) {
	message := dispatchingMessage
	if isSuspended(w) {
		message = suspendedMessage
	}
	r.record.Eventf(w, nil, corev1.EventTypeNormal, names.EventWorkDispatching, "Dispatch", "%s", message)
}

// recordApplied tells of the outcome on the Work, and on the templates that its
// manifests come from.
func (r *Reconciler) recordApplied(w *workv1alpha1.Work, err error) {
	kind, reason, message := corev1.EventTypeNormal, names.EventSyncSucceed, appliedMessage
	if err != nil {
		kind, reason, message = corev1.EventTypeWarning, names.EventSyncFailed, truncate(err.Error(), maxNote)
	}
	r.record.Eventf(w, nil, kind, reason, "Apply", "%s", message)
	for _, manifest := range w.Spec.Workload.Manifests {
		if u, err := decode(manifest); err == nil {
			if template, ok := templateOf(u); ok {
				r.record.Eventf(template, nil, kind, reason, "Apply", "%s", message)
			}
		}
	}
}

// templateOf returns the object of the control plane that a manifest was made
// of.
func templateOf(u *unstructured.Unstructured) (*corev1.ObjectReference, bool) {
	uid := u.GetAnnotations()[names.TemplateUIDAnnotation]
	return &corev1.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: types.UID(uid),
	}, uid != ""
}

func resultOf(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
