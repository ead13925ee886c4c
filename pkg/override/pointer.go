package override

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// pointerTo returns the JSON pointer (RFC 6901) to nested fields.
func pointerTo(fields ...string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(f, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// A stringField is a field that holds a string.
type stringField struct {
	value string
	set   func(string)
}

// stringAt finds the string that a JSON pointer leads to.
func stringAt(in map[string]any, pointer string) (stringField, error) {
	if !strings.HasPrefix(pointer, "/") {
		return stringField{}, errNoPointer()
	}
	var at any = in
	var set func(string)
	for part := range strings.SplitSeq(pointer[1:], "/") {
		name := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch parent := at.(type) {
		case map[string]any:
			v, ok := parent[name]
			if !ok {
				return stringField{}, fmt.Errorf("there is no field %q", name)
			}
			at, set = v, func(s string) { parent[name] = s }
		case []any:
			i, err := strconv.ParseUint(name, 10, 31)
			if err != nil {
				return stringField{}, fmt.Errorf("%q is no index of a list", name)
			}
			if i >= uint64(len(parent)) {
				return stringField{}, fmt.Errorf("there is no item %d in a list of %d", i, len(parent))
			}
			at, set = parent[i], func(s string) { parent[i] = s }
		default:
			return stringField{}, fmt.Errorf("there is no field %q", name)
		}
	}
	value, ok := at.(string)
	if !ok {
		return stringField{}, errors.New("it is not a string")
	}
	return stringField{value: value, set: set}, nil
}

func errNoPointer() error { return errors.New("a path must begin with a slash") }
