package apply

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// errManifest says that a manifest is none.
var errManifest = errors.New("read manifest")

// decode reads a manifest. Its error is an errManifest.
func decode(m workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	u, err := binding.ReadManifest(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	return u, nil
}

// isHopeless reports whether an error stays for as long as the Work is what it
// is: the manifest is none, or more than the member takes.
func isHopeless(err error) bool {
	if errors.Is(err, errManifest) || apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	for _, words := range []string{"etcdserver: request is too large", "trying to send message larger than max"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// isManaged reports whether an object on a member is ours.
func isManaged(u *unstructured.Unstructured) bool {
	return u.GetLabels()[names.ManagedLabel] == names.True
}

// belongsTo reports whether an object is ours and no other Work's.
func belongsTo(u *unstructured.Unstructured, w *workv1alpha1.Work) bool {
	annotations := u.GetAnnotations()
	namespace, named := annotations[names.WorkNamespaceAnnotation]
	name, alsoNamed := annotations[names.WorkNameAnnotation]
	return isManaged(u) && (!named && !alsoNamed || namespace == w.Namespace && name == w.Name)
}

// overwrites reports whether a manifest may take over what is not ours.
func overwrites(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[names.ConflictResolutionAnnotation] == names.ConflictOverwrite
}

// carryOver puts into desired what the member has and the manifest does not
// say: identity and version, finalizers, owners, status, and the labels and
// annotations of others. A key that was ours and is not in the manifest any more
// is left out (spec: behaviour/01 1.5, 02 2.5); what kubectl remembers on the
// member never was.
func carryOver(desired, observed *unstructured.Unstructured) {
	desired.SetResourceVersion(observed.GetResourceVersion())
	desired.SetUID(observed.GetUID())
	desired.SetFinalizers(observed.GetFinalizers())
	desired.SetOwnerReferences(observed.GetOwnerReferences())
	annotations := observed.GetAnnotations()
	desired.SetLabels(retainKeys(desired.GetLabels(), observed.GetLabels(), annotations[names.ManagedLabelsAnnotation]))
	desired.SetAnnotations(retainKeys(desired.GetAnnotations(), annotations, annotations[names.ManagedAnnotationsAnnotation]))
	if status, ok := observed.Object["status"]; ok {
		desired.Object["status"] = runtime.DeepCopyJSONValue(status)
	} else {
		delete(desired.Object, "status")
	}
}

// retainKeys adds to desired what is observed, unless it is in ours, a list
// separated by commas.
func retainKeys(desired, observed map[string]string, ours string) map[string]string {
	desired = orEmpty(desired)
	set := strings.Split(ours, ",")
	for key, value := range observed {
		if _, ok := desired[key]; !ok && (!slices.Contains(set, key) || key == corev1.LastAppliedConfigAnnotation) {
			desired[key] = value
		}
	}
	if len(desired) == 0 {
		return nil
	}
	return desired
}

// releasedLabels and releasedAnnotations are what is taken off an object that
// stays on its member (spec: behaviour/01 1.4, 1.5, 02 2.5); the marks of cluster
// scope are among them.
func releasedLabels() []string {
	return append(names.ManagedLabels(), names.ClusterResourceBindingIDLabel,
		names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel)
}

func releasedAnnotations() []string {
	return append(names.ManagedAnnotations(), names.AdoptedAnnotation, names.ConflictResolutionAnnotation, names.ClusterResourceBindingNameAnnotation,
		names.PropagationPolicyNamespaceAnnotation, names.PropagationPolicyNameAnnotation, names.ClusterPropagationPolicyNameAnnotation)
}

// differs reports whether two states of an object differ in what is relevant.
func differs(a, b *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(binding.Relevant(a), binding.Relevant(b))
}

// holds reports whether observed has everything that desired says: more fields
// of an object, which are defaults or somebody else's, are no matter; a list is
// one value.
func holds(observed, desired any) bool {
	switch d := desired.(type) {
	case map[string]any:
		o, ok := observed.(map[string]any)
		if !ok {
			return observed == nil && isEmpty(d)
		}
		for key, value := range d {
			if !holds(o[key], value) {
				return false
			}
		}
		return true
	case []any:
		o, ok := observed.([]any)
		if !ok {
			return observed == nil && len(d) == 0
		}
		return slices.EqualFunc(o, d, holds)
	case nil:
		return observed == nil
	default:
		return reflect.DeepEqual(observed, desired)
	}
}

// overlay returns desired with the fields of observed that it does not set, but
// for metadata, which is complete. Lists are one value, unless their entries are
// the same by name.
func overlay(desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	result := desired.DeepCopy()
	for key, have := range observed.Object {
		if key != "metadata" {
			want, ok := result.Object[key]
			result.Object[key] = overlaid(want, have, ok)
		}
	}
	return result
}

func overlaid(want, have any, wanted bool) any {
	if !wanted {
		return runtime.DeepCopyJSONValue(have)
	}
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return want
		}
		for key, value := range h {
			inner, ok := w[key]
			w[key] = overlaid(inner, value, ok)
		}
	case []any:
		h, ok := have.([]any)
		if !ok || !slices.EqualFunc(w, h, func(a, b any) bool { return nameOf(a) != "" && nameOf(a) == nameOf(b) }) {
			return want
		}
		for i := range w {
			w[i] = overlaid(w[i], h[i], true)
		}
	}
	return want
}

// nameOf returns the name in an entry of a list, "" when there is none.
func nameOf(entry any) string {
	m, _ := entry.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// isEmpty reports whether an object says nothing.
func isEmpty(m map[string]any) bool {
	for _, value := range m {
		if !holds(nil, value) {
			return false
		}
	}
	return true
}
