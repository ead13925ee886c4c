package binding

import (
	"context"
	"encoding/json"
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
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// EnsureWork makes a Work carry one object to its cluster, and says whether it
// had to write anything for that (spec: behaviour/02 2.3, create-or-update).
//
// want has the Work's namespace, name, labels, annotations, owners, and the
// options of its spec; its manifests are not read. The object gets the marks by
// which it is known on the member; what only means something in the control
// plane, such as its status and version, is left out.
//
// What others have put on the Work stays: labels and annotations are added,
// owners and finalizers too, while the spec becomes what is wanted. A Work that
// is being deleted is an error; so is one of a namespace that is not there, which
// is NotFound.
func EnsureWork(ctx context.Context, c client.Client, want *workv1alpha1.Work, object *unstructured.Unstructured) (changed bool, err error) {
	key := client.ObjectKeyFromObject(want)
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, raced, func() error {
		now := &workv1alpha1.Work{}
		err := c.Get(ctx, key, now)
		exists := err == nil
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if !now.DeletionTimestamp.IsZero() {
			return fmt.Errorf("work %s is being deleted", key)
		}
		next := now.DeepCopy()
		if err := merge(next, want, object); err != nil {
			return err
		}
		switch {
		case !exists:
			changed = true
			return c.Create(ctx, next)
		case same(now, next):
			return nil
		default:
			changed = true
			return c.Update(ctx, next)
		}
	})
	if err != nil {
		return false, fmt.Errorf("make Work %s carry %s %s: %w", key, object.GetKind(), object.GetName(), err)
	}
	return changed, nil
}

// merge makes w, which may be empty, what is wanted.
func merge(w, want *workv1alpha1.Work, object *unstructured.Unstructured) error {
	w.Namespace, w.Name = want.Namespace, want.Name
	w.Labels = added(w.Labels, want.Labels)
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
	raw, err := json.Marshal(Manifest(w, object).Object)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	w.Spec = *want.Spec.DeepCopy()
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return nil
}

func added(to, from map[string]string) map[string]string {
	if to == nil && len(from) > 0 {
		to = map[string]string{}
	}
	maps.Copy(to, from)
	return to
}

// same says whether two Works are the same but for how their manifests are
// written.
func same(a, b *workv1alpha1.Work) bool {
	if len(a.Spec.Workload.Manifests) != 1 {
		return false
	}
	x, errX := decoded(a.Spec.Workload.Manifests[0])
	y, errY := decoded(b.Spec.Workload.Manifests[0])
	if errX != nil || errY != nil || !reflect.DeepEqual(x, y) {
		return false
	}
	c := b.DeepCopy()
	c.Spec.Workload = a.Spec.Workload
	return equality.Semantic.DeepEqual(a, c)
}

func decoded(m workv1alpha1.Manifest) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(m.Raw); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return u.Object, nil
}

// Manifest returns an object as a Work carries it: with the marks of that Work,
// the lists of keys that are set from here, and of the rest what is Relevant
// (spec: behaviour/01 1.5, 02 2.3, 2.9).
func Manifest(w *workv1alpha1.Work, object *unstructured.Unstructured) *unstructured.Unstructured {
	uid := object.GetUID()
	m := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(Relevant(object))}

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
