package promotion

import (
	"fmt"
	"maps"
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
			return path
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
			return path
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
	if have != want {
		return path
	}
	return ""
}

// isOfPods says whether a field is one of a workload's pods: were it different,
// they would be started anew.
func isOfPods(kind, path string) bool {
	switch kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		return strings.HasPrefix(path, "spec.template")
	case "Pod":
		return strings.HasPrefix(path, "spec")
	default:
		return false
	}
}
