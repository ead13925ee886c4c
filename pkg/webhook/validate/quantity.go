package validate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longestExponent is how many digits the exponent of a quantity may have. Reading
// and comparing quantities takes as many steps as the exponent says: a few
// characters, such as 1e-2000000000, would take hours and all memory there is.
const longestExponent = 3

// OutOfRange says which quantities of an object, as JSON, are so large or small
// that they must not even be read: whoever reads objects of users into types with
// quantities asks this before. Quantities are the fields of the given names, and
// what is below them.
func OutOfRange(raw []byte, fields ...string) field.ErrorList {
	if len(fields) == 0 || !suspicious(raw) {
		return nil
	}
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return nil // whoever reads it says so
	}
	delete(o, "metadata")
	var errs field.ErrorList
	var look func(v any, path *field.Path, quantity bool)
	look = func(v any, path *field.Path, quantity bool) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := path.Child(key)
				if quantity {
					at = path.Key(key)
				}
				look(v[key], at, quantity || slices.Contains(fields, key))
			}
		case []any:
			for i := range v {
				look(v[i], path.Index(i), quantity)
			}
		case json.Number:
			look(v.String(), path, quantity)
		case string:
			if quantity && suspicious([]byte(`"`+v+`"`)) {
				errs = append(errs, field.Invalid(path, v, "must be a quantity with an exponent of no more than three digits"))
			}
		}
	}
	look(o, nil, false)
	return errs
}

// suspicious says whether some value of a JSON text is a number with a long
// exponent, as a string or not. There hardly ever is one: finding that out costs
// little.
func suspicious(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != 'e' && raw[i] != 'E' {
			continue
		}
		// There need not be anything before it: that is read as a quantity as well.
		if !delimited(bytes.TrimRight(raw[:i], "0123456789.+-"), false) {
			continue
		}
		exponent := raw[i+1:]
		after := bytes.TrimLeft(bytes.TrimLeft(exponent, "+-"), "0123456789")
		exponent = bytes.TrimLeft(exponent[:len(exponent)-len(after)], "+-0")
		if len(exponent) > longestExponent && delimited(after, true) {
			return true
		}
	}
	return false
}

// delimited says whether a value could begin where a JSON text ends, or end where
// one begins.
func delimited(text []byte, ahead bool) bool {
	if len(text) == 0 {
		return true
	}
	c := text[len(text)-1]
	if ahead {
		c = text[0]
	}
	return strings.IndexByte("\"[]{}:, \t\r\n", c) >= 0
}
