package interpreter

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// at returns a field of an object, found false when it is not there or null. The
// value is the object's own: it must not be changed. A field of another type is
// an error, and so is one above it that is no object.
func at[T int64 | string | bool | map[string]any | []any](object map[string]any, path ...string) (value T, found bool, err error) {
	raw, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || raw == nil {
		return value, false, err
	}
	value, ok := raw.(T)
	if !ok {
		return value, false, fmt.Errorf("%s has the wrong type: %v is no %s", strings.Join(path, "."), raw, jsonType(value))
	}
	return value, true, nil
}

func jsonType(v any) string {
	switch v.(type) {
	case int64:
		return "integer"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	default:
		return "string"
	}
}

// orZero is at for fields where absent and zero are the same.
func orZero[T int64 | string | bool | map[string]any | []any](object map[string]any, path ...string) (T, error) {
	value, _, err := at[T](object, path...)
	return value, err
}

// integers reads several fields of one object, absent ones as 0.
func integers(object map[string]any, names ...string) (map[string]int64, error) {
	values := make(map[string]int64, len(names))
	for _, name := range names {
		value, err := orZero[int64](object, name)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// objects returns a list whose entries are objects.
func objects(object map[string]any, path ...string) ([]map[string]any, error) {
	list, err := orZero[[]any](object, path...)
	if err != nil {
		return nil, err
	}
	entries := make([]map[string]any, 0, len(list))
	for i, raw := range list {
		entry, ok := raw.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s[%d] has the wrong type: %v is no object", strings.Join(path, "."), i, raw)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// entryName returns the name in an entry of a list, "" when there is none.
func entryName(entry any) string {
	m, _ := entry.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// isTrue reports whether a list of conditions has one of a type that is True.
func isTrue(conditions []map[string]any, conditionType string) bool {
	return trueCondition(conditions, conditionType) != nil
}

// trueCondition returns the condition of a type, if it is True, otherwise nil.
func trueCondition(conditions []map[string]any, conditionType string) map[string]any {
	for _, c := range conditions {
		if c["type"] == conditionType && c["status"] == "True" {
			return c
		}
	}
	return nil
}

// same reports whether two values mean the same to a server: what is zero may be
// left out.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok {
			return isZero(a) && isZero(b)
		}
		for key, value := range a {
			if !same(value, other[key]) {
				return false
			}
		}
		for key, value := range other {
			if _, ok := a[key]; !ok && !isZero(value) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		if !ok || len(a) != len(other) {
			return isZero(a) && isZero(b)
		}
		for i := range a {
			if !same(a[i], other[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return isZero(a) && isZero(b)
	}
	return a == b || isZero(a) && isZero(b)
}

func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, value := range v {
			if !isZero(value) {
				return false
			}
		}
		return true
	}
	return false
}
