package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// difference returns the path of the first field of want that have lacks, or
// has another value for; "" when have has all of want. What have has beyond it,
// as a server fills in defaults, is no difference.
func difference(have, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return cmp.Or(path, ".")
		}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			below := strings.TrimPrefix(path+"."+k, ".")
			value, ok := have[k]
			if !ok && want[k] != nil {
				return below
			}
			if at := difference(value, want[k], below); at != "" {
				return at
			}
		}
		return ""
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return cmp.Or(path, ".")
		}
		for i := range want {
			if at := difference(have[i], want[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	case int64:
		if f, ok := have.(float64); ok && f == float64(want) {
			return ""
		}
	case float64:
		if i, ok := have.(int64); ok && float64(i) == want {
			return ""
		}
	}
	if !reflect.DeepEqual(have, want) {
		return cmp.Or(path, ".")
	}
	return ""
}

// A Field is a field of an object that changes. Have is nil when it comes, Want
// when it goes.
type Field struct {
	Path       string
	Have, Want any
}

// fields returns where two values differ, in order. A list of another length is
// one field.
func fields(have, want any, path string) []Field {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(h)
		maps.Copy(keys, w)
		var all []Field
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, fields(h[k], w[k], step(path, k))...)
		}
		return all
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			break
		}
		var all []Field
		for i := range w {
			all = append(all, fields(h[i], w[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return all
	}
	if difference(have, want, "") == "" && difference(want, have, "") == "" {
		return nil
	}
	return []Field{{Path: path, Have: have, Want: want}}
}

// step returns the path of what a map has under a key.
func step(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return strings.TrimPrefix(path+"."+key, ".")
}
