package validate

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// A ruleCase is an object and what is wrong with it: the beginning of each error, and after an ellipsis what else it
// says. Without any the object is accepted.
type ruleCase struct {
	reason string
	object string // YAML
	want   []string
}

// check asks the rules of a kind about a new object, head and the rest of its text, for each case.
func check[T any](t *testing.T, r rules[T], head string, cases map[string]ruleCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := object[T](t, head+c.object)
			var errs field.ErrorList
			if r.change != nil {
				errs = r.change(nil, o)
			}
			more, err := r.spec(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c.reason, append(errs, more...), c.want)
			if r.content(o) == nil {
				t.Error("an object without content is never looked at again")
			}
		})
	}
}

// object reads an object strictly, so that a typing error of a test is one.
func object[T any](t testing.TB, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return o
}

func compare(t *testing.T, reason string, errs field.ErrorList, want []string) {
	t.Helper()
	for i, err := range errs {
		if i >= len(want) {
			t.Errorf("unexpected: %v: %s", err, reason)
			continue
		}
		text := err.Error()
		for j, part := range strings.Split(want[i], "…") {
			if at := strings.Index(text, part); at < 0 || j == 0 && at > 0 {
				t.Errorf("got %q, want %q: %s", err.Error(), want[i], reason)
				break
			}
		}
	}
	for _, missing := range want[min(len(errs), len(want)):] {
		t.Errorf("accepted, want %q: %s", missing, reason)
	}
}

// advise returns the warnings about an object.
func advise[T any](t *testing.T, r rules[T], text string) []string {
	t.Helper()
	return r.advice(context.Background(), object[T](t, text))
}
