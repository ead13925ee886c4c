package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Member is what this stage needs of a member cluster; see member.Member.
type Member interface {
	Name() string
	Dynamic() dynamic.Interface
	Mapper() meta.RESTMapper
	// Discovery and Metadata serve to find out what is in a namespace.
	Discovery() discovery.DiscoveryInterface
	Metadata() (metadata.Interface, error)
	// Watch lets the stage know of changes, and Cached of what is there.
	Watch(gvr schema.GroupVersionResource) error
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

	retain    Retain
	ledger    *ledger
	resources *metrics.Resources
}

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
		return nil, fmt.Errorf("find the API of %s in cluster %s: %w", describe(desired), m.Name(), err)
	}
	t := &target{
		member: m, work: w, desired: desired, retain: r.retain, ledger: r.ledger, resources: r.resources,
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
	if err := t.member.Watch(t.place.gvr); err != nil {
		return false, err
	}
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
			return cached, nil // to create what is there after all fails, and is tried again
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
	wrote := t.ledger.get(t.member.Name(), t.place)
	if wrote == "" || wrote == u.GetResourceVersion() {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), wrote)
	return err == nil && order > 0
}

func (t *target) create(ctx context.Context) error {
	again := t.ledger.get(t.member.Name(), t.place) != ""
	desired := t.desired.DeepCopy()
	desired.SetResourceVersion("")
	desired.SetUID("")
	created, err := t.resource.Create(ctx, desired, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return err // it will be updated instead
	}
	t.resources.Created(t.member.Name(), t.desired.GroupVersionKind(), again, err)
	if err != nil {
		return err
	}
	t.ledger.set(t.member.Name(), t.place, created.GetResourceVersion())
	return nil
}

// update changes the member's object unless that is not needed. Once a Work was
// applied as it is, its member holds everything that it says, and what is more
// there is not ours; before, a field may have to go.
func (t *target) update(ctx context.Context, observed *unstructured.Unstructured) (wrote bool, err error) {
	if !isManaged(observed) && !overwrites(t.desired) {
		return false, t.notOurs()
	}
	desired := t.desired.DeepCopy()
	carryOver(desired, observed)
	desired, err = t.retain(desired, observed)
	if err != nil {
		return false, err
	}
	if t.isNamespace() && !isManaged(observed) {
		annotations := orEmpty(desired.GetAnnotations())
		annotations[names.AdoptedAnnotation] = names.True
		desired.SetAnnotations(annotations)
	}
	want, have := relevant(desired), relevant(observed)
	if reflect.DeepEqual(want, have) || isApplied(t.work) && holds(have, want) {
		t.ledger.set(t.member.Name(), t.place, observed.GetResourceVersion())
		t.resources.Updated(t.member.Name(), t.desired.GroupVersionKind(), updateNotNeeded, nil)
		return false, nil
	}
	updated, err := t.resource.Update(ctx, desired, metav1.UpdateOptions{})
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
	t.ledger.set(t.member.Name(), t.place, updated.GetResourceVersion())
	return updated.GetResourceVersion() != observed.GetResourceVersion(), nil
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
