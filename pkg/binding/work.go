package binding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// ErrWorkDeleted says that a Work that is to carry something is being deleted.
// Its successor can be made when it is gone.
var ErrWorkDeleted = errors.New("is being deleted")

// An EnsureOption changes how EnsureWork goes about it.
type EnsureOption func(*ensurer)

// Live reads a Work by a reader without a cache once a write has shown that the
// cache lags. Without it the cache is waited for.
func Live(reader client.Reader) EnsureOption {
	return func(e *ensurer) { e.live = reader }
}

// OnlyIf lets a Work that exists be changed only if check returns nil. EnsureWork
// returns what it returns, wrapped; check must not change the Work.
func OnlyIf(check func(*workv1alpha1.Work) error) EnsureOption {
	return func(e *ensurer) { e.check = check }
}

// EnsureWork makes a Work carry one object to its cluster, and says whether it
// had to write anything for that (spec: behaviour/02 2.3, create-or-update).
//
// want has the Work's namespace, name, labels, annotations, owners, and the
// options of its spec; its manifests are not read. The object gets the marks by
// which it is known on the member; what only means something in the control
// plane, such as its status and version, is left out. Neither is changed.
//
// What others have put on the Work stays: labels and annotations are added,
// owners and finalizers too, while the spec becomes what is wanted, and so does
// what the annotations say about overrides. A new Work has its permanent identity
// from the start. A Work that is being deleted is ErrWorkDeleted, an object that is
// too large for one a *TooLargeError, and a namespace that is not there NotFound.
func EnsureWork(
	ctx context.Context, c client.Client, want *workv1alpha1.Work, object *unstructured.Unstructured, opts ...EnsureOption,
) (changed bool, err error) {
	e := ensurer{client: c, live: c, check: func(*workv1alpha1.Work) error { return nil }}
	for _, o := range opts {
		o(&e)
	}
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	var reader client.Reader = c
	err = retry.OnError(retry.DefaultBackoff, raced, func() error {
		changed, err = e.ensure(ctx, reader, want, object)
		reader = e.live
		return err
	})
	if err != nil {
		return false, fmt.Errorf("make Work %s carry %s %s: %w", client.ObjectKeyFromObject(want), object.GetKind(), object.GetName(), err)
	}
	return changed, nil
}

// An ensurer is one call of EnsureWork.
type ensurer struct {
	client client.Client
	live   client.Reader
	check  func(*workv1alpha1.Work) error
}

func (e *ensurer) ensure(
	ctx context.Context, reader client.Reader, want *workv1alpha1.Work, object *unstructured.Unstructured,
) (changed bool, err error) {
	key, now := client.ObjectKeyFromObject(want), &workv1alpha1.Work{}
	err = reader.Get(ctx, key, now, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		next := &workv1alpha1.Work{}
		if err := merge(next, want, object); err != nil {
			return false, err
		}
		return true, e.client.Create(ctx, next)
	}
	if err != nil {
		return false, err
	}
	if err := e.check(now); err != nil {
		return false, err
	}
	if !now.DeletionTimestamp.IsZero() {
		return false, fmt.Errorf("work %s %w", key, ErrWorkDeleted)
	}
	if ok, err := holds(now, want, object); ok || err != nil {
		return false, err
	}
	next := now.DeepCopy()
	if err := merge(next, want, object); err != nil {
		return false, err
	}
	return true, e.client.Update(ctx, next)
}

// roomForMarks is how many bytes a manifest may be larger than the object that it
// is made of, which CheckSize has let through.
const roomForMarks = 16 << 10

// replaced are the annotations that are removed when they are not wanted.
func replaced() []string {
	return []string{names.AppliedOverridesAnnotation, names.AppliedClusterOverridesAnnotation}
}

// merge makes w, which may be empty, what is wanted.
func merge(w, want *workv1alpha1.Work, object *unstructured.Unstructured) error {
	w.Namespace, w.Name = want.Namespace, want.Name
	w.Labels = added(w.Labels, want.Labels)
	if w.Labels[names.WorkIDLabel] == "" {
		w.Labels = added(w.Labels, map[string]string{names.WorkIDLabel: string(uuid.NewUUID())})
	}
	for _, key := range replaced() {
		delete(w.Annotations, key)
	}
	w.Annotations = added(w.Annotations, want.Annotations)
	for _, f := range append(slices.Clone(want.Finalizers), names.WorkFinalizer) {
		controllerutil.AddFinalizer(w, f)
	}
	for _, owner := range want.OwnerReferences {
		w.OwnerReferences = slices.DeleteFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == owner.Kind && o.Name == owner.Name
		})
		w.OwnerReferences = append(w.OwnerReferences, owner)
	}
	raw, err := rawManifest(w, object)
	if err != nil {
		return err
	}
	if limit := MaxManifest + roomForMarks; len(raw) > limit {
		return &TooLargeError{Size: len(raw), Limit: limit}
	}
	w.Spec = *want.Spec.DeepCopy()
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return nil
}

// holds says whether merge would not change w, however its manifest is written.
// A permanent identity that is missing is no reason to write.
func holds(w, want *workv1alpha1.Work, object *unstructured.Unstructured) (bool, error) {
	for _, key := range replaced() {
		if w.Annotations[key] != want.Annotations[key] {
			return false, nil
		}
	}
	spec := want.Spec
	spec.Workload = w.Spec.Workload
	if len(spec.Workload.Manifests) != 1 || !contains(w.Labels, want.Labels) || !contains(w.Annotations, want.Annotations) ||
		!equality.Semantic.DeepEqual(w.Spec, spec) || !owned(w, want) || !controllerutil.ContainsFinalizer(w, names.WorkFinalizer) {
		return false, nil
	}
	for _, f := range want.Finalizers {
		if !controllerutil.ContainsFinalizer(w, f) {
			return false, nil
		}
	}
	raw, err := rawManifest(w, object)
	if err != nil {
		return false, err
	}
	return sameJSON(spec.Workload.Manifests[0].Raw, raw), nil
}

// owned says whether w has the owners that are wanted, each once.
func owned(w, want *workv1alpha1.Work) bool {
	for _, owner := range want.OwnerReferences {
		n := 0
		for _, o := range w.OwnerReferences {
			if o.Kind == owner.Kind && o.Name == owner.Name {
				if n++; n > 1 || !equality.Semantic.DeepEqual(o, owner) {
					return false
				}
			}
		}
		if n == 0 {
			return false
		}
	}
	return true
}

func added(to, from map[string]string) map[string]string {
	if to == nil && len(from) > 0 {
		to = map[string]string{}
	}
	maps.Copy(to, from)
	return to
}

// contains says whether all of part is in m.
func contains(m, part map[string]string) bool {
	for k, v := range part {
		if have, ok := m[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// sameJSON says whether two texts say the same. A server writes an object down as
// we do, so that reading them is the exception.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y unstructured.Unstructured
	return x.UnmarshalJSON(a) == nil && y.UnmarshalJSON(b) == nil && reflect.DeepEqual(x.Object, y.Object)
}

func rawManifest(w *workv1alpha1.Work, object *unstructured.Unstructured) ([]byte, error) {
	raw, err := json.Marshal(manifest(w, Relevant(object), object.GetUID()).Object)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	return raw, nil
}

// ReadManifest reads an object of a Work, which has all that it needs to be found
// on a member.
func ReadManifest(m workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(m.Raw); err != nil {
		return nil, err
	}
	switch {
	case u.GetAPIVersion() == "":
		return nil, errors.New("it has no apiVersion")
	case u.GetName() == "":
		return nil, errors.New("it has no metadata.name")
	}
	return u, nil
}

// Manifest returns an object as a Work carries it: with the marks of that Work,
// the lists of keys that are set from here, and of the rest what is Relevant
// (spec: behaviour/01 1.5, 02 2.3, 2.9).
func Manifest(w *workv1alpha1.Work, object *unstructured.Unstructured) *unstructured.Unstructured {
	return manifest(w, runtime.DeepCopyJSON(Relevant(object)), object.GetUID())
}

// manifest puts the marks on what is Relevant of an object, which may share
// everything but its metadata with that.
func manifest(w *workv1alpha1.Work, relevant map[string]any, uid types.UID) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: relevant}
	annotations := added(m.GetAnnotations(), map[string]string{
		names.WorkNamespaceAnnotation:      w.Namespace,
		names.WorkNameAnnotation:           w.Name,
		names.ManagedAnnotationsAnnotation: "",
		names.ManagedLabelsAnnotation:      "",
	})
	if uid != "" {
		annotations[names.TemplateUIDAnnotation] = string(uid)
	}
	if how, ok := w.Annotations[names.ConflictResolutionAnnotation]; ok {
		annotations[names.ConflictResolutionAnnotation] = how
	}
	annotations[names.ManagedAnnotationsAnnotation] = keys(annotations)

	labels := added(m.GetLabels(), map[string]string{names.ManagedLabel: names.True})
	if id, ok := w.Labels[names.WorkIDLabel]; ok {
		labels[names.WorkIDLabel] = id
	}
	annotations[names.ManagedLabelsAnnotation] = keys(labels)
	m.SetAnnotations(annotations)
	m.SetLabels(labels)
	return m
}

func keys(m map[string]string) string { return strings.Join(slices.Sorted(maps.Keys(m)), ",") }
