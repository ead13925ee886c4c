package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// fields are those of a JSON object, each as it is written. A nil one has none, and takes none.
type fields map[string]json.RawMessage

// object returns the fields of a field; none if it is not there, or null.
func (f fields) object(name string) (fields, error) {
	raw, ok := f[name]
	if !ok || isNull(raw) {
		return nil, nil
	}
	var o fields
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("read %s, which should be an object: %w", name, err)
	}
	return o, nil
}

// put sets a field.
func (f fields) put(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f[name] = raw
	return nil
}

// take moves fields of these names into a new set.
func (f fields) take(names ...string) fields {
	taken := f.only(names...)
	for name := range taken {
		delete(f, name)
	}
	return taken
}

// only is a copy of the fields of these names.
func (f fields) only(names ...string) fields {
	some := fields{}
	for _, name := range names {
		if value, ok := f[name]; ok {
			some[name] = value
		}
	}
	return some
}

// without is a copy of all other fields.
func (f fields) without(names ...string) fields {
	others := maps.Clone(f)
	for _, name := range names {
		delete(others, name)
	}
	if others == nil {
		return fields{}
	}
	return others
}

// equal reports whether the fields of these names are the same in both. Each is a string, or not there.
func (f fields) equal(g fields, names ...string) bool {
	for _, name := range names {
		if !bytes.Equal(f[name], g[name]) {
			return false
		}
	}
	return true
}

// An item is what the item of a list has beyond what both versions know, and where it belongs.
type item struct {
	Index  int             `json:"index"`
	Key    json.RawMessage `json:"key,omitempty"`
	Fields fields          `json:"fields"`
}

// putItems sets a field to a list with what both versions know of each item, and returns the rest. What is no list stays
// as it is.
func (f fields) putItems(name string, list json.RawMessage, key string, shared []string) ([]item, error) {
	if list == nil {
		return nil, nil
	}
	f[name] = list
	if isNull(list) {
		return nil, nil
	}
	var all []fields
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fmt.Errorf("read %s, which should be a list of objects: %w", name, err)
	}
	var left []item
	for i := range all {
		known := all[i].take(shared...)
		if len(all[i]) > 0 {
			left = append(left, item{Index: i, Key: known[key], Fields: all[i]})
		}
		all[i] = known
	}
	if len(left) == 0 {
		return nil, nil
	}
	return left, f.put(name, all)
}

// mergeItems sets a field to a list with what was left of its items. An item is found where it was, or else by its key:
// one that moved keeps what it had, one that is gone takes that along.
func (f fields) mergeItems(name string, list json.RawMessage, left []item, key string, shared []string) error {
	if list == nil {
		return nil
	}
	f[name] = list
	if isNull(list) || len(left) == 0 {
		return nil
	}
	var all []fields
	if err := json.Unmarshal(list, &all); err != nil {
		return fmt.Errorf("read %s, which should be a list of objects: %w", name, err)
	}
	byKey := make(map[string]int, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		byKey[string(all[i][key])] = i // the first one of several
	}
	taken := make([]bool, len(all))
	merge := func(i int, l item) {
		taken[i] = true
		for name, value := range l.Fields.without(shared...) {
			all[i][name] = value
		}
	}
	var moved []item
	for _, l := range left {
		if l.Index >= 0 && l.Index < len(all) && !taken[l.Index] && all[l.Index] != nil && bytes.Equal(all[l.Index][key], l.Key) {
			merge(l.Index, l)
			continue
		}
		moved = append(moved, l)
	}
	for _, l := range moved {
		if i, ok := byKey[string(l.Key)]; ok && !taken[i] && all[i] != nil {
			merge(i, l)
		}
	}
	return f.put(name, all)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
