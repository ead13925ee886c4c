package interpreter

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// keep copies a field, if there is one, from observed to desired.
func keep(desired, observed map[string]any, path ...string) error {
	value, found, err := unstructured.NestedFieldCopy(observed, path...)
	if err != nil || !found || value == nil {
		return err
	}
	if err := unstructured.SetNestedField(desired, value, path...); err != nil {
		return fmt.Errorf("keep the cluster's %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

// keepUnlessSet is keep for a field that the template may say itself.
func keepUnlessSet(desired, observed map[string]any, path ...string) error {
	value, _, err := unstructured.NestedFieldNoCopy(desired, path...)
	if err != nil || value != nil {
		return err
	}
	return keep(desired, observed, path...)
}

// mergeByName adds to a list what only observed has, by the names of entries.
func mergeByName(desired, observed map[string]any, field string) error {
	want, err := orZero[[]any](desired, field)
	if err != nil {
		return err
	}
	have, err := orZero[[]any](observed, field)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, entry := range want {
		known[entryName(entry)] = true
	}
	for _, entry := range have {
		if !known[entryName(entry)] {
			want = append(want, runtime.DeepCopyJSONValue(entry))
		}
	}
	if len(want) > 0 {
		desired[field] = want
	}
	return nil
}
