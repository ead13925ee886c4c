package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

// identify says which object a manifest of a Work is, by its index there.
func identify(ordinal int, m workv1alpha1.Manifest) (workv1alpha1.ResourceIdentifier, error) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(m.Raw, &header); err != nil {
		return workv1alpha1.ResourceIdentifier{}, fmt.Errorf("read manifest: %w", err)
	}
	gv, err := schema.ParseGroupVersion(header.APIVersion)
	if err != nil {
		return workv1alpha1.ResourceIdentifier{}, fmt.Errorf("read manifest: %w", err)
	}
	if gv.Version == "" || header.Kind == "" || header.Metadata.Name == "" {
		return workv1alpha1.ResourceIdentifier{}, errors.New("read manifest: apiVersion, kind or name is missing")
	}
	return workv1alpha1.ResourceIdentifier{
		Ordinal: ordinal, Group: gv.Group, Version: gv.Version, Kind: header.Kind,
		Namespace: header.Metadata.Namespace, Name: header.Metadata.Name,
	}, nil
}

func gvkOf(id workv1alpha1.ResourceIdentifier) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
}

// find returns what a list says about an object, nil for nothing.
func find(list []workv1alpha1.ManifestStatus, id workv1alpha1.ResourceIdentifier) *workv1alpha1.ManifestStatus {
	for i := range list {
		known := list[i].Identifier
		known.Resource = id.Resource
		if known == id {
			return &list[i]
		}
	}
	return nil
}

// same reports whether two lists say the same, however it is written.
func same(a, b []workv1alpha1.ManifestStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		other := find(b, a[i].Identifier)
		if other == nil || other.Health != a[i].Health || !sameStatus(a[i].Status, other.Status) {
			return false
		}
	}
	return true
}

func sameStatus(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return isNone(a) && isNone(b)
	}
	if string(a.Raw) == string(b.Raw) {
		return true
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func isNone(status *runtime.RawExtension) bool {
	return status == nil || len(status.Raw) == 0 || string(status.Raw) == "null"
}

func decode(status *runtime.RawExtension) (any, error) {
	var value any
	err := utiljson.Unmarshal(status.Raw, &value)
	return value, err
}

// withoutNulls returns a status without fields that are null: a patch would drop
// them, and they would be written again each time.
func withoutNulls(status *runtime.RawExtension) (*runtime.RawExtension, error) {
	if isNone(status) {
		return nil, nil
	}
	value, err := decode(status)
	if err != nil {
		return nil, fmt.Errorf("read the status that was interpreted: %w", err)
	}
	if !dropNulls(value) {
		return status, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write the status that was interpreted: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

// dropNulls takes fields that are null out of a value, and reports whether there
// were any. Those of lists stay, as they count.
func dropNulls(value any) (dropped bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				dropped = true
			} else if dropNulls(inner) {
				dropped = true
			}
		}
	case []any:
		for _, inner := range v {
			if dropNulls(inner) {
				dropped = true
			}
		}
	}
	return dropped
}

// isHealthy reports whether all objects are.
func isHealthy(statuses []workv1alpha1.ManifestStatus) bool {
	return !slices.ContainsFunc(statuses, func(s workv1alpha1.ManifestStatus) bool { return s.Health != workv1alpha1.ResourceHealthy })
}

// isUnsettled reports whether an object is about to get a status that says more:
// its controller has not seen it as it is. Kinds without generation have no
// controllers that tell.
func isUnsettled(obj *unstructured.Unstructured) bool {
	if obj.GetGeneration() == 0 {
		return false
	}
	status, ok := obj.Object["status"].(map[string]any)
	if !ok {
		return obj.Object["status"] == nil
	}
	seen, tells, err := unstructured.NestedInt64(status, "observedGeneration")
	return len(status) == 0 || err == nil && tells && seen < obj.GetGeneration()
}
