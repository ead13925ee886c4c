package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// lookAgain is how long a Work waits at most for its Cluster to be there and
// ready; a change of the Cluster brings it back at once.
const lookAgain = time.Minute

// Reasons of the event on a Work whose object was not deleted with it, as others
// would have gone with that. They are not part of Karmada's API.
const (
	eventNamespaceKept  = "NamespaceKept"
	eventDefinitionKept = "CustomResourceDefinitionKept"
)

// eventDriftRepeated is the reason of the event on a Work whose object somebody
// on the member changes back again and again. It is not part of Karmada's API.
const eventDriftRepeated = "DriftRepeated"

// listSoon is after how long a Work looks again whose objects are being listed.
const listSoon = time.Second

// A Reconciler reconciles Works.
type Reconciler struct {
	client client.Client // reads from a cache
	live   client.Reader

	members     func(context.Context, *clusterv1alpha1.Cluster) (Member, error)
	unwatch     func(cluster, work string) // what a Work that is gone needed
	mine        func(*clusterv1alpha1.Cluster) bool
	interpreter Interpreter
	record      events.EventRecorder
	// tellsTemplates says that events may be made where templates are.
	tellsTemplates bool
	resources      *metrics.Resources
	durations      *prometheus.HistogramVec

	ledger  *ledger
	waits   *waits
	repairs *repairs
	written *written
	notes   *Notes
}

var _ reconcile.ObjectReconciler[*workv1alpha1.Work] = (*Reconciler)(nil)

// Reconcile dispatches a live Work and withdraws a deleted one.
func (r *Reconciler) Reconcile(ctx context.Context, w *workv1alpha1.Work) (reconcile.Result, error) {
	if r.written.isStale(w) {
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return reconcile.Result{}, ignoreNotFound(err)
		}
	}
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
	if err == nil && result.IsZero() && isGoodNews(before, w) && !sameConditions(before, w) {
		switch wait, told := r.notes.put(w); {
		case told:
			return reconcile.Result{}, nil
		case wait > 0:
			return reconcile.Result{RequeueAfter: wait, Priority: new(lowPriority)}, nil
		}
	}
	r.notes.drop(w)
	if failed := r.patchStatus(ctx, before, w); failed != nil {
		if terminal := reconcile.TerminalError(nil); errors.Is(err, terminal) { // that has to be told
			err = errors.Unwrap(err)
		}
		return reconcile.Result{}, errors.Join(err, failed)
	}
	return result, err
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
	before := slices.Clone(w.Status.Conditions)
	news := markDispatching(w)
	if isSuspended(w) || !isReady(c) {
		r.recordDispatching(w, news)
		if isSuspended(w) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	start := time.Now()
	o := r.applyAll(ctx, c, w)
	result, err := r.next(w, o)
	if result.RequeueAfter > 0 && o.isEarly(w) {
		w.Status.Conditions = before
		return result, nil
	}
	known := r.notes.has(w)
	r.recordDispatching(w, news && !known)
	r.durations.WithLabelValues(resultOf(o.err())).Observe(time.Since(start).Seconds())
	if markApplied(w, o.applied, len(w.Spec.Workload.Manifests), o.err()) && !known || o.wrote || err != nil {
		r.recordApplied(w, o.err())
	}
	return result, err
}

// An outcome is what came of applying the manifests of a Work.
type outcome struct {
	applied int
	wrote   bool
	errs    []error
	// waits says that the Work waits for what the member lacks, and waited for how
	// long it has.
	waits  bool
	waited time.Duration
}

func (o *outcome) err() error { return errors.Join(o.errs...) }

// all reports whether there are errors, and all of them are of a kind.
func (o *outcome) all(of func(error) bool) bool {
	return len(o.errs) > 0 && !slices.ContainsFunc(o.errs, func(err error) bool { return !of(err) })
}

// isEarly reports whether it is too early to tell how a Work fares: what is on
// the member is not known yet, or what it lacks is most likely about to come, as a
// namespace together with what is in it.
func (o *outcome) isEarly(w *workv1alpha1.Work) bool {
	return o.waits && o.waited < minWait && !isFailed(w) || o.all(isStarting)
}

func isStarting(err error) bool { return errors.Is(err, errStarting) }

func isLacking(err error) bool {
	var lacking *lackingError
	return errors.As(err, &lacking)
}

// next says when to look at a Work again: what waits for something that comes is
// called then, and looks by itself now and then; what no time heals is not tried
// again; anything else is, with pauses that grow.
func (r *Reconciler) next(w *workv1alpha1.Work, o *outcome) (reconcile.Result, error) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)}
	var lacks []lack
	for _, err := range o.errs {
		if lacking := (*lackingError)(nil); errors.As(err, &lacking) {
			lacks = append(lacks, lacking.lack)
		}
	}
	var after time.Duration
	if len(lacks) > 0 {
		o.waits = true
		o.waited, after = r.waits.enter(request, lacks)
	} else {
		r.waits.leave(request)
	}
	waits := func(err error) bool { return isLacking(err) || isStarting(err) || isHopeless(err) }
	switch {
	case len(o.errs) == 0:
		return reconcile.Result{}, nil
	case o.all(isHopeless):
		return reconcile.Result{}, reconcile.TerminalError(o.err())
	case slices.ContainsFunc(o.errs, isStarting) && o.all(waits):
		return reconcile.Result{RequeueAfter: listSoon}, nil
	case o.all(waits):
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return reconcile.Result{}, o.err()
}

// applyAll applies every manifest: one that fails does not hold back the others.
func (r *Reconciler) applyAll(ctx context.Context, c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) *outcome {
	o := &outcome{}
	m, err := r.members(ctx, c)
	if err != nil {
		o.errs = append(o.errs, fmt.Errorf("reach cluster %s: %w", c.Name, err))
		return o
	}
	var targets []*target
	var kinds []schema.GroupVersionResource
	for _, manifest := range w.Spec.Workload.Manifests {
		t, err := r.target(m, w, manifest)
		if err != nil {
			o.errs = append(o.errs, err)
			continue
		}
		targets = append(targets, t)
		if !slices.Contains(kinds, t.place.gvr) {
			kinds = append(kinds, t.place.gvr)
		}
	}
	if err := m.Watch(w.Name, kinds...); err != nil {
		o.errs = append(o.errs, err)
		return o
	}
	for _, t := range targets {
		wrote, err := t.apply(ctx)
		if err != nil {
			o.errs = append(o.errs, err)
			continue
		}
		o.applied++
		o.wrote = o.wrote || wrote
	}
	return o
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
				r.record.Eventf(w, nil, corev1.EventTypeWarning, t.keptReason(), "Withdraw", "%s", brief.Note(kept))
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

// patchStatus writes the conditions of w, if they differ from before. Nobody else
// writes them, and the patch says nothing about the rest of the status: so there
// is no conflict with who writes that.
func (r *Reconciler) patchStatus(ctx context.Context, before, w *workv1alpha1.Work) error {
	if sameConditions(before, w) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.UID}, "status": map[string]any{"conditions": w.Status.Conditions},
	})
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	if err := r.client.Status().Patch(ctx, w, client.RawPatch(types.MergePatchType, patch)); err != nil {
		if apierrors.IsNotFound(err) || binding.IsSuccessor(err) {
			return nil
		}
		return fmt.Errorf("write status: %w", err)
	}
	r.written.note(w)
	return nil
}

func sameConditions(a, b *workv1alpha1.Work) bool {
	return equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions)
}

// patch changes a Work, if change says that it did; on a conflict it does so
// again on what is there. A Work that is gone needs no change, nor does its
// successor.
func (r *Reconciler) patch(
	ctx context.Context, w *workv1alpha1.Work,
	write func(context.Context, client.Object, client.Patch, ...client.PatchOption) error,
	change func(*workv1alpha1.Work) bool,
) error {
	first, uid := true, w.UID
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
		}
		first = false
		if w.UID != uid {
			return nil
		}
		before := w.DeepCopy()
		if !change(w) {
			return nil
		}
		return write(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	return ignoreNotFound(err)
}

// drifted reports which Work, if any, an event of a member concerns, and how long
// it is to be put off: the object was changed in what is relevant, or removed, by
// somebody else (spec: behaviour/02 2.5).
func (r *Reconciler) drifted(e member.Event) (work reconcile.Request, after time.Duration, drifted bool) {
	subject := e.Old
	if subject == nil {
		subject = e.New
	}
	annotations := subject.GetAnnotations()
	work = reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: annotations[names.WorkNamespaceAnnotation], Name: annotations[names.WorkNameAnnotation],
	}}
	if !isManaged(subject) || work.Name == "" || work.Namespace != names.ExecutionNamespace(e.Cluster) {
		return reconcile.Request{}, 0, false // nothing on one member may speak for another
	}
	at := place{gvr: e.GVR, namespace: subject.GetNamespace(), name: subject.GetName()}
	if e.New != nil {
		wrote := r.ledger.get(e.Cluster, at).version
		if wrote == "" || wrote == e.New.GetResourceVersion() || e.Old != nil && !differs(e.Old, e.New) {
			return reconcile.Request{}, 0, false
		}
	}
	return work, r.repairs.pause(e.Cluster, at), true
}

// arrived calls the Works that have waited for what an event of a member tells
// of: a namespace, or a kind.
func (r *Reconciler) arrived(e member.Event) {
	if e.New == nil || !e.New.GetDeletionTimestamp().IsZero() {
		return
	}
	switch e.GVR.GroupResource() {
	case schema.GroupResource{Resource: "namespaces"}:
		r.waits.came(lack{cluster: e.Cluster, namespace: e.New.GetName()})
	case schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		if gk, ok := servedBy(e.New); ok {
			r.waits.came(lack{cluster: e.Cluster, kind: gk})
		}
	}
}

// servedBy returns the kind that a CRD makes be served, ok false when it is not
// yet.
func servedBy(crd *unstructured.Unstructured) (gk schema.GroupKind, ok bool) {
	var errs [3]error
	var conditions []any
	gk.Group, _, errs[0] = unstructured.NestedString(crd.Object, "spec", "group")
	gk.Kind, _, errs[1] = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	conditions, _, errs[2] = unstructured.NestedSlice(crd.Object, "status", "conditions")
	return gk, errors.Join(errs[:]...) == nil && slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// released drops what is known about a Work that is gone.
func (r *Reconciler) released(w client.Object) {
	r.waits.leave(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)})
	r.written.forget(w)
	r.notes.drop(w)
	if cluster, err := names.ClusterOfExecutionNamespace(w.GetNamespace()); err == nil {
		r.unwatch(cluster, w.GetName())
	}
}

// forget drops what is known about a cluster that is gone.
func (r *Reconciler) forget(cluster string) {
	r.ledger.forget(cluster)
	r.repairs.forget(cluster)
	r.resources.Forget(cluster)
}

func (r *Reconciler) recordDispatching(w *workv1alpha1.Work, news bool) {
	if !news {
		return
	}
	message := dispatchingMessage
	if isSuspended(w) {
		message = suspendedMessage
	}
	r.record.Eventf(w, nil, corev1.EventTypeNormal, names.EventWorkDispatching, "Dispatch", "%s", message)
}

// recordApplied tells of the outcome on the Work, and on the templates that its
// manifests come from. An agent has no rights there: what it tells of a Work comes
// to the template with the status of that.
func (r *Reconciler) recordApplied(w *workv1alpha1.Work, err error) {
	kind, reason, message := corev1.EventTypeNormal, names.EventSyncSucceed, appliedMessage
	if err != nil {
		kind, reason, message = corev1.EventTypeWarning, names.EventSyncFailed, brief.Note(err.Error())
	}
	r.record.Eventf(w, nil, kind, reason, "Apply", "%s", message)
	if !r.tellsTemplates {
		return
	}
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
