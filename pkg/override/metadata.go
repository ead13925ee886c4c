package override

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// overrideMetadata changes the labels, or the annotations, of an object
// (spec: behaviour/07 7.5).
func overrideMetadata(obj *unstructured.Unstructured, name, list string, overriders []policyv1alpha1.LabelAnnotationOverrider) *failure {
	for i, o := range overriders {
		if err := overrideMap(obj.Object, name, o); err != nil {
			return failed(list, i, pointerTo("metadata", name), err)
		}
	}
	return nil
}

func overrideMap(in map[string]any, name string, o policyv1alpha1.LabelAnnotationOverrider) error {
	metadata, isMap := in["metadata"].(map[string]any)
	if !isMap {
		return errors.New("the object has no metadata")
	}
	pairs, isMap := metadata[name].(map[string]any)
	if metadata[name] != nil && !isMap {
		return errors.New("it is not a map")
	}
	for k, v := range o.Value {
		_, exists := pairs[k]
		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd:
			if pairs == nil {
				pairs = map[string]any{}
				metadata[name] = pairs
			}
			pairs[k] = v
		case policyv1alpha1.OverriderOpReplace:
			if exists {
				pairs[k] = v
			}
		case policyv1alpha1.OverriderOpRemove:
			delete(pairs, k)
		default:
			return unknownOperator(o.Operator)
		}
	}
	return nil
}
