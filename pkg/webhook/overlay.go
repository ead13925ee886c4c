package webhook

import "reflect"

// overlaid does to an object, as the user wrote it, what changed from before to
// after, two states of the same object as our types have it. What they do not
// know, and what they would write differently, such as an empty field, stays.
func overlaid(raw, before, after map[string]any) map[string]any {
	result := make(map[string]any, len(raw))
	for key, value := range raw {
		_, had := before[key]
		if _, has := after[key]; has || !had {
			result[key] = value
		}
	}
	for key, value := range after {
		if !reflect.DeepEqual(before[key], value) {
			result[key] = overlaidValue(raw[key], before[key], value)
		}
	}
	return result
}

func overlaidValue(raw, before, after any) any {
	switch a := after.(type) {
	case map[string]any:
		b, okB := before.(map[string]any)
		r, okR := raw.(map[string]any)
		if okB && okR {
			return overlaid(r, b, a)
		}
	case []any:
		b, okB := before.([]any)
		r, okR := raw.([]any)
		if okB && okR && len(a) == len(b) && len(a) == len(r) {
			list := make([]any, len(a))
			for i := range a {
				list[i] = overlaidValue(r[i], b[i], a[i])
			}
			return list
		}
	}
	if reflect.DeepEqual(before, after) {
		return raw
	}
	return after
}
