package apply

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// decode reads a manifest.
func decode(m workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(m.Raw); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if u.GetName() == "" {
		return nil, errors.New("read manifest: it has no metadata.name")
	}
	return u, nil
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
// is left out (spec: behaviour/01 1.5, 02 2.5).
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
		if _, ok := desired[key]; !ok && !slices.Contains(set, key) {
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
	return append(names.ManagedAnnotations(), names.AdoptedAnnotation, names.ClusterResourceBindingNameAnnotation,
		names.PropagationPolicyNamespaceAnnotation, names.PropagationPolicyNameAnnotation, names.ClusterPropagationPolicyNameAnnotation)
}

// relevant returns an object without what differs between the control plane and
// a member, or changes by itself (spec: behaviour/02 2.9). The result shares what
// it can with the object: do not change it.
func relevant(u *unstructured.Unstructured) map[string]any {
	if hasOwnPruning(u.GroupVersionKind().GroupKind()) {
		u = u.DeepCopy()
		pruneKind(u)
	}
	object := maps.Clone(u.Object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{
			"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
			"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
		} {
			delete(metadata, field)
		}
		object["metadata"] = metadata
	}
	return object
}

func hasOwnPruning(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ServiceAccount"}, schema.GroupKind{Kind: "Service"},
		schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return true
	}
	return false
}

func pruneKind(u *unstructured.Unstructured) {
	object := u.Object
	switch u.GetKind() {
	case "Deployment":
		remove(object, "metadata", "annotations", "deployment.kubernetes.io/revision")
		remove(object, "metadata", "annotations", "deployment.kubernetes.io/revision-history")
	case "Job":
		remove(object, "spec", "ttlSecondsAfterFinished")
		if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); !manual {
			for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
				remove(object, "spec", "selector", "matchLabels", key)
			}
			for _, key := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
				remove(object, "spec", "template", "metadata", "labels", key)
			}
		}
	case "Secret":
		if object["type"] == "kubernetes.io/service-account-token" {
			remove(object, "metadata", "annotations", "kubernetes.io/service-account.uid")
			delete(object, "data")
		}
	case "ServiceAccount":
		if secrets, ok := object["secrets"].([]any); ok {
			object["secrets"] = slices.DeleteFunc(secrets, func(s any) bool {
				return strings.HasPrefix(nameOf(s), u.GetName()+"-token-")
			})
		}
	case "Service":
		if ip, _, _ := unstructured.NestedString(object, "spec", "clusterIP"); ip != "None" {
			remove(object, "spec", "clusterIP")
			remove(object, "spec", "clusterIPs")
		}
	case "PersistentVolumeClaim":
		remove(object, "metadata", "annotations", "volume.kubernetes.io/selected-node")
	}
}

func remove(object map[string]any, path ...string) { unstructured.RemoveNestedField(object, path...) }

// nameOf returns the name in an entry of a list, "" when there is none.
func nameOf(entry any) string {
	m, _ := entry.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// differs reports whether two states of an object differ in what is relevant.
func differs(a, b *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(relevant(a), relevant(b))
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

// isEmpty reports whether an object says nothing.
func isEmpty(m map[string]any) bool {
	for _, value := range m {
		if !holds(nil, value) {
			return false
		}
	}
	return true
}
