package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// A Member is what this stage needs of a member cluster; see member.Member.
type Member interface {
	Name() string
	Dynamic() dynamic.Interface
	Mapper() meta.RESTMapper
	// Discovery and Metadata serve to find out what is in a namespace.
	Discovery() discovery.DiscoveryInterface
	Metadata() (metadata.Interface, error)
	// Watch lets the stage know of changes to kinds that a Work needs, Cached of
	// what is there, and Starting whether that will be known soon.
	Watch(work string, kinds ...schema.GroupVersionResource) error
	Starting(gvr schema.GroupVersionResource) bool
	Cached(gvr schema.GroupVersionResource, namespace, name string) (obj *unstructured.Unstructured, known bool)
}

// Values of the label operationResult.
const (
	updateFailed    = "none"
	updateNotNeeded = "unchanged"
	updateDone      = "updated"
)

// A target is one manifest of a Work on its way to the member.
type target struct {
	member   Member
	work     *workv1alpha1.Work
	desired  *unstructured.Unstructured
	place    place
	resource dynamic.ResourceInterface

	*Reconciler
}

// errStarting says that what is on a member will be known soon, and that there is
// time to wait for it.
var errStarting = errors.New("what is there is being listed")

// target finds where a manifest belongs on the member. An error that
// meta.IsNoMatchError recognises means that the member has no such kind.
func (r *Reconciler) target(m Member, w *workv1alpha1.Work, manifest workv1alpha1.Manifest) (*target, error) {
	desired, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	desired = binding.Manifest(w, desired) // as it is already, unless a user wrote it
	gvk := desired.GroupVersionKind()
	mapping, err := m.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		err := fmt.Errorf("find the API of %s in cluster %s: %w", describe(desired), m.Name(), err)
		if meta.IsNoMatchError(err) {
			return nil, &lackingError{lack: lack{cluster: m.Name(), kind: gvk.GroupKind()}, err: err}
		}
		return nil, err
	}
	t := &target{
		Reconciler: r, member: m, work: w, desired: desired,
		place: place{gvr: mapping.Resource, namespace: desired.GetNamespace(), name: desired.GetName()},
	}
	t.resource = m.Dynamic().Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		t.resource = m.Dynamic().Resource(mapping.Resource).Namespace(t.place.namespace)
	} else {
		t.place.namespace = ""
	}
	return t, nil
}

// apply makes the member hold the manifest, and reports whether it wrote
// something for that.
func (t *target) apply(ctx context.Context) (wrote bool, err error) {
	first := true
	err = retry.OnError(retry.DefaultRetry, isRace, func() error {
		observed, err := t.observe(ctx, !first)
		first = false
		if err != nil {
			return err
		}
		if observed == nil {
			wrote = true
			return t.create(ctx)
		}
		wrote, err = t.update(ctx, observed)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("apply %s to cluster %s: %w", describe(t.desired), t.member.Name(), err)
	}
	return wrote, nil
}

// isRace reports whether the object changed, came or went since it was read.
func isRace(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// observe returns the member's object, nil when there is none. What is cached
// serves unless live is asked for, or it is older than what we wrote.
func (t *target) observe(ctx context.Context, live bool) (*unstructured.Unstructured, error) {
	if !live {
		cached, known := t.member.Cached(t.place.gvr, t.place.namespace, t.place.name)
		if known && (cached == nil || t.isCurrent(cached)) {
			return cached, nil // to create what is there after all fails, and is read live then
		}
		if !known && isApplied(t.work) && t.member.Starting(t.place.gvr) {
			return nil, errStarting // one list tells more than a request for each object
		}
	}
	observed, err := t.resource.Get(ctx, t.place.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return observed, nil
}

// isCurrent reports whether an object is no older than the one we wrote last.
func (t *target) isCurrent(u *unstructured.Unstructured) bool {
	wrote := t.ledger.get(t.member.Name(), t.place).version
	return wrote == "" || !binding.IsOlder(u.GetResourceVersion(), wrote)
}

// settle notes that an object is as it should be.
func (t *target) settle(u *unstructured.Unstructured) {
	t.ledger.set(t.member.Name(), t.place, entry{version: u.GetResourceVersion(), work: t.work.UID, generation: t.work.Generation})
}

// wasApplied reports whether the manifest, as it is now, was applied before.
func (t *target) wasApplied() bool {
	is := t.ledger.get(t.member.Name(), t.place)
	return isApplied(t.work) || is.version != "" && is.work == t.work.UID && is.generation == t.work.Generation
}

func (t *target) create(ctx context.Context) error {
	again := t.ledger.get(t.member.Name(), t.place).version != ""
	desired := t.desired.DeepCopy()
	desired.SetResourceVersion("")
	desired.SetUID("")
	created, err := t.resource.Create(ctx, desired, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return err // it will be updated instead
	}
	t.resources.Created(t.member.Name(), t.desired.GroupVersionKind(), again, err)
	if err != nil {
		return t.lacking(err)
	}
	t.settle(created)
	if again {
		t.repaired()
	}
	namespace := t.place.namespace
	if t.isNamespace() {
		namespace = t.place.name
	}
	t.waits.came(lack{cluster: t.member.Name(), namespace: namespace})
	t.waits.came(lack{cluster: t.member.Name(), kind: t.desired.GroupVersionKind().GroupKind()})
	return nil
}

// lacking tells what the member has to have before the object can be created, if
// that is why it cannot.
func (t *target) lacking(err error) error {
	namespace := lack{cluster: t.member.Name(), namespace: t.place.namespace}
	status := apierrors.APIStatus(nil)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &lackingError{lack: namespace, err: err}
	case !apierrors.IsNotFound(err):
		return err
	case errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return &lackingError{lack: namespace, err: err}
	default: // the kind has gone since
		meta.MaybeResetRESTMapper(t.member.Mapper())
		return &lackingError{lack: lack{cluster: t.member.Name(), kind: t.desired.GroupVersionKind().GroupKind()}, err: err}
	}
}

// repaired notes that the object was put right, and tells when that happens too
// often.
func (t *target) repaired() {
	if t.repairs.note(t.member.Name(), t.place) {
		t.record.Eventf(t.work, nil, corev1.EventTypeWarning, eventDriftRepeated, "Apply", "%s", brief.Note(fmt.Sprintf(
			"%s had to be repaired in cluster %s %d times: something there keeps changing or removing it. From now on it is repaired less often. Find out what it is, or stop propagating what it changes.",
			describe(t.desired), t.member.Name(), quickRepairs)))
	}
}

// update changes the member's object unless that is not needed. Once a Work was
// applied as it is, its member holds everything that it says, and what is more
// there is not ours; before, a field may have to go. So no annotation, nor any
// guess about defaults, is needed to know what was applied last.
//
// It replaces the whole object (spec: behaviour/02 2.5). Server-side apply would
// leave to others what they added, but it refuses lists that this accepts, and
// would keep for ever what was applied by an Update before.
func (t *target) update(ctx context.Context, observed *unstructured.Unstructured) (wrote bool, err error) {
	if !isManaged(observed) && !overwrites(t.desired) {
		return false, t.notOurs()
	}
	desired := t.desired.DeepCopy()
	carryOver(desired, observed)
	if t.interpreter.Supports(desired.GroupVersionKind(), configv1alpha1.InterpreterOperationRetain) {
		if desired, err = t.interpreter.Retain(ctx, desired, observed); err != nil {
			return false, err
		}
	}
	if t.isNamespace() && !isManaged(observed) {
		annotations := orEmpty(desired.GetAnnotations())
		annotations[names.AdoptedAnnotation] = names.True
		desired.SetAnnotations(annotations)
	}
	want, have, before := binding.Relevant(desired), binding.Relevant(observed), t.wasApplied()
	if reflect.DeepEqual(want, have) || before && holds(have, want) {
		t.settle(observed)
		t.resources.Updated(t.member.Name(), t.desired.GroupVersionKind(), updateNotNeeded, nil)
		return false, nil
	}
	updated, err := t.resource.Update(ctx, desired, metav1.UpdateOptions{})
	if apierrors.IsInvalid(err) {
		updated, err = t.updateGently(ctx, desired, observed, err)
	}
	if apierrors.IsConflict(err) {
		return false, err // it is read again
	}
	if apierrors.IsNotFound(err) {
		return false, apierrors.NewConflict(t.place.gvr.GroupResource(), t.place.name, err) // so is what has gone
	}
	result := updateDone
	if err != nil {
		result = updateFailed
	}
	t.resources.Updated(t.member.Name(), t.desired.GroupVersionKind(), result, err)
	if err != nil {
		return false, err
	}
	t.settle(updated)
	wrote = updated.GetResourceVersion() != observed.GetResourceVersion()
	if wrote && before {
		t.repaired()
	}
	return wrote, nil
}

// updateGently is for a member that does not take an object as it is desired: it
// tries with the fields that the member has and the manifest does not set, as some
// of those cannot be removed again once a member has filled them in (the storage
// class of a claim, say). When that does not help it returns the first error.
func (t *target) updateGently(ctx context.Context, desired, observed *unstructured.Unstructured, first error) (*unstructured.Unstructured, error) {
	gentle := overlay(desired, observed)
	if reflect.DeepEqual(binding.Relevant(gentle), binding.Relevant(observed)) {
		return observed, nil // all that is left to do is what the member refuses
	}
	if reflect.DeepEqual(gentle.Object, desired.Object) {
		return nil, first
	}
	updated, err := t.resource.Update(ctx, gentle, metav1.UpdateOptions{})
	if apierrors.IsInvalid(err) {
		return nil, first
	}
	return updated, err
}

// notOurs says why an object is left alone (spec: behaviour/02 2.5, the words
// are contract).
func (t *target) notOurs() error {
	return fmt.Errorf("resource(kind=%s, %s) already exists in the cluster %s and the %s strategy value is empty, Karmada will not manage this resource",
		t.desired.GetKind(), key(t.place), t.member.Name(), names.ConflictResolutionAnnotation)
}

// delete removes the object, if it is this Work's. A namespace that must not go
// is released instead; unless we only took it over, kept says why.
func (t *target) delete(ctx context.Context) (kept string, err error) {
	defer t.ledger.remove(t.member.Name(), t.place)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		kept = ""
		observed, err := t.resource.Get(ctx, t.place.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !belongsTo(observed, t.work) || !observed.GetDeletionTimestamp().IsZero() {
			return nil
		}
		stays, why := t.mustStay(ctx, observed)
		if stays {
			kept = why
			return t.unmark(ctx, observed)
		}
		background, uid := metav1.DeletePropagationBackground, observed.GetUID()
		options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}}
		err = t.resource.Delete(ctx, t.place.name, options)
		t.resources.Deleted(t.member.Name(), t.desired.GroupVersionKind(), ignoreNotFound(err))
		return err
	})
	if ignoreNotFound(err) != nil {
		return "", fmt.Errorf("delete %s from cluster %s: %w", describe(t.desired), t.member.Name(), err)
	}
	if err != nil {
		return "", nil // gone in the meantime
	}
	return kept, nil
}

// release leaves the object to its member, without our marks.
func (t *target) release(ctx context.Context) error {
	defer t.ledger.remove(t.member.Name(), t.place)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		observed, err := t.resource.Get(ctx, t.place.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !belongsTo(observed, t.work) {
			return nil
		}
		return t.unmark(ctx, observed)
	})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("release %s in cluster %s: %w", describe(t.desired), t.member.Name(), err)
	}
	return nil
}

// unmark takes our marks off the object, if it is as it was observed.
func (t *target) unmark(ctx context.Context, observed *unstructured.Unstructured) error {
	patch, err := releasePatch(observed)
	if err != nil {
		return err
	}
	_, err = t.resource.Patch(ctx, t.place.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// releasePatch takes our marks off an object of a certain version.
func releasePatch(observed *unstructured.Unstructured) ([]byte, error) {
	off := func(have map[string]string, keys []string) map[string]any {
		nulls := map[string]any{}
		for _, k := range keys {
			if _, ok := have[k]; ok {
				nulls[k] = nil
			}
		}
		return nulls
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": observed.GetResourceVersion(),
		"labels":          off(observed.GetLabels(), releasedLabels()),
		"annotations":     off(observed.GetAnnotations(), releasedAnnotations()),
	}})
}

// ignoreNotFound ignores that something is not there.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// describe names an object for a message.
func describe(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + key(place{namespace: u.GetNamespace(), name: u.GetName()})
}

func key(p place) string {
	if p.namespace == "" {
		return p.name
	}
	return p.namespace + "/" + p.name
}
