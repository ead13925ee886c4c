package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// A Reconciler reconciles bindings of one scope.
type Reconciler[B binding.Object] struct {
	client client.Client // reads from a cache
	live   client.Reader

	templates   Templates
	interpreter Interpreter
	record      events.EventRecorder
	pace        *pacer
	behind      sync.Map // keys of bindings whose template could not be told
}

var (
	_ reconcile.ObjectReconciler[*workv1alpha2.ResourceBinding]        = (*Reconciler[*workv1alpha2.ResourceBinding])(nil)
	_ reconcile.ObjectReconciler[*workv1alpha2.ClusterResourceBinding] = (*Reconciler[*workv1alpha2.ClusterResourceBinding])(nil)
)

// Reconcile brings together what the Works of a binding say, in the binding
// first, then in its template.
func (r *Reconciler[B]) Reconcile(ctx context.Context, b B) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(b)
	if !b.GetDeletionTimestamp().IsZero() || binding.ID(b) == "" {
		r.pace.settled(key)
		r.behind.Delete(key)
		return reconcile.Result{}, nil
	}
	works := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, works, client.MatchingFields{binding.WorksByBinding: binding.ID(b)}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Works: %w", err)
	}
	reports := reportsOf(works.Items, b.BindingSpec().Resource)
	items := itemsOf(reports)

	changed := r.differs(b, items)
	if changed {
		complete := isComplete(binding.Expected(b.BindingSpec()), reports)
		if wait := r.pace.wait(key, complete); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		before := slices.Clone(b.BindingStatus().AggregatedStatus) // the answer to the write is read into b
		if err := r.write(ctx, b, items); err != nil {
			r.recordBinding(b, err)
			return reconcile.Result{}, err
		}
		r.recordPulled(ctx, b, before, items)
		r.pace.wrote(key)
		r.recordBinding(b, nil)
	} else {
		r.pace.settled(key)
	}

	_, behind := r.behind.LoadAndDelete(key)
	wrote, err := r.tellTemplate(ctx, b, items, changed || behind)
	if err != nil {
		r.behind.Store(key, true)
	}
	if wrote || err != nil {
		r.recordTemplate(b, err)
	}
	return reconcile.Result{}, err
}

// differs reports whether the status of a binding says something else.
func (r *Reconciler[B]) differs(b B, items []workv1alpha2.AggregatedStatusItem) bool {
	status := b.BindingStatus()
	want := fullyApplied(binding.Expected(b.BindingSpec()), items)
	return !sameItems(status.AggregatedStatus, items) || !hasCondition(status.Conditions, want)
}

func hasCondition(conditions []metav1.Condition, want metav1.Condition) bool {
	have := meta.FindStatusCondition(conditions, want.Type)
	return have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message
}

// A statusPatch is a merge patch of what this stage has in the status of a
// binding: the scheduler has the rest.
type statusPatch struct {
	Metadata struct {
		UID types.UID `json:"uid,omitempty"`
		// ResourceVersion is there with the conditions, of which others are somebody
		// else's.
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status struct {
		AggregatedStatus *[]workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
		Conditions       []metav1.Condition                   `json:"conditions,omitempty"`
	} `json:"status"`
}

// write makes the status of a binding say what its Works do. b becomes what the
// server has. A binding that is gone needs no status.
func (r *Reconciler[B]) write(ctx context.Context, b B, items []workv1alpha2.AggregatedStatusItem) error {
	first, uid := true, b.GetUID()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := r.live.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
				return err
			}
		}
		first = false
		if b.GetUID() != uid || !r.differs(b, items) {
			return nil
		}
		data, err := json.Marshal(r.patchOf(b, items))
		if err != nil {
			return fmt.Errorf("write patch: %w", err)
		}
		return r.client.Status().Patch(ctx, b, client.RawPatch(types.MergePatchType, data))
	})
	if client.IgnoreNotFound(err) != nil && !binding.IsSuccessor(err) {
		return fmt.Errorf("write status of the binding: %w", err)
	}
	return nil
}

func (r *Reconciler[B]) patchOf(b B, items []workv1alpha2.AggregatedStatusItem) statusPatch {
	var p statusPatch
	status := b.BindingStatus()
	p.Metadata.UID = b.GetUID()
	if !sameItems(status.AggregatedStatus, items) {
		p.Status.AggregatedStatus = &items
	}
	if want := fullyApplied(binding.Expected(b.BindingSpec()), items); !hasCondition(status.Conditions, want) {
		p.Metadata.ResourceVersion = b.GetResourceVersion()
		p.Status.Conditions = append(p.Status.Conditions, status.Conditions...)
		meta.SetStatusCondition(&p.Status.Conditions, want)
	}
	return p
}

// tellTemplate makes the status of the template what its kind makes of that of
// the clusters, and says whether it had to write. When the binding had nothing
// new, which is so for all of them after a start, a copy of the template that
// says the same already is believed.
func (r *Reconciler[B]) tellTemplate(ctx context.Context, b B, items []workv1alpha2.AggregatedStatusItem, news bool) (wrote bool, err error) {
	ref := b.BindingSpec().Resource
	gvk := binding.GVK(ref)
	if !r.interpreter.Supports(gvk, configv1alpha1.InterpreterOperationAggregateStatus) {
		return false, nil
	}
	if !news {
		known, err := r.templates.Get(ctx, ref)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read the template: %w", err)
		}
		if next, err := r.aggregate(ctx, ref, known, items); next == nil || err != nil {
			return false, err
		}
	}
	resource, namespaced, err := r.templates.Resource(gvk)
	if err != nil {
		return false, fmt.Errorf("find out where %s is served: %w", gvk, err)
	}
	var templates dynamic.ResourceInterface = resource
	if namespaced {
		templates = resource.Namespace(ref.Namespace)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := templates.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		next, err := r.aggregate(ctx, ref, now, items)
		if next == nil || err != nil {
			return err
		}
		_, err = templates.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		wrote = err == nil
		return err
	})
	// It is gone, or its kind has no status to write.
	if err := client.IgnoreNotFound(err); err != nil {
		return false, fmt.Errorf("write status of %s %s: %w", ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, err)
	}
	return wrote, nil
}

// aggregate returns the template with its new status, nil if that is the one it
// has, or if it is not the one that is bound.
func (r *Reconciler[B]) aggregate(
	ctx context.Context, ref workv1alpha2.ObjectReference, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	if ref.UID != "" && template.GetUID() != ref.UID {
		return nil, nil
	}
	next, err := r.interpreter.Aggregate(ctx, template, items)
	if err != nil {
		return nil, err
	}
	if sameMeaning(template.Object["status"], next.Object["status"]) {
		return nil, nil
	}
	return next, nil
}

func (r *Reconciler[B]) recordBinding(b B, err error) {
	name := client.ObjectKeyFromObject(b).String()
	if b.GetNamespace() == "" {
		name = b.GetName()
	}
	r.tell(b, err, fmt.Sprintf("Update %s(%s) with AggregatedStatus successfully.", binding.ScopeOf(b).Kind, name))
}

// recordPulled tells on the template what could not be applied in clusters in pull
// mode: their agents have no rights where users' objects are (spec: behaviour/02
// 2.5).
func (r *Reconciler[B]) recordPulled(ctx context.Context, b B, before, items []workv1alpha2.AggregatedStatusItem) {
	for _, i := range items {
		told := slices.ContainsFunc(before, func(is workv1alpha2.AggregatedStatusItem) bool {
			return is.ClusterName == i.ClusterName && is.AppliedMessage == i.AppliedMessage
		})
		if i.AppliedMessage == "" || told {
			continue
		}
		var c clusterv1alpha1.Cluster
		if err := r.client.Get(ctx, client.ObjectKey{Name: i.ClusterName}, &c); err != nil || c.Spec.SyncMode != clusterv1alpha1.Pull {
			continue // one that is gone says nothing any more
		}
		r.record.Eventf(templateOf(b), nil, corev1.EventTypeWarning, names.EventSyncFailed, "Apply", "%s", brief.Note(i.AppliedMessage))
	}
}

func (r *Reconciler[B]) recordTemplate(b B, err error) {
	r.tell(templateOf(b), err, "Update the status of the template with that of the clusters successfully.")
}

// templateOf names what is bound, to tell something of it.
func templateOf(b binding.Object) *corev1.ObjectReference {
	ref := b.BindingSpec().Resource
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}

// tell tells of an outcome (spec: behaviour/02 2.4).
func (r *Reconciler[B]) tell(on runtime.Object, err error, done string) {
	if err != nil {
		r.record.Eventf(on, nil, corev1.EventTypeWarning, names.EventAggregateStatusFailed, "AggregateStatus", "%s", brief.Note(err.Error()))
		return
	}
	r.record.Eventf(on, nil, corev1.EventTypeNormal, names.EventAggregateStatusSucceed, "AggregateStatus", "%s", done)
}
