package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHolds(t *testing.T) {
	cases := map[string]struct {
		reason            string
		observed, desired string
		want              bool
	}{
		"Same":             {"It is there.", `{"a":1}`, `{"a":1}`, true},
		"Default":          {"The API server filled in b.", `{"a":1,"b":2}`, `{"a":1}`, true},
		"DefaultInList":    {"Also within entries.", `{"l":[{"a":1,"b":2}]}`, `{"l":[{"a":1}]}`, true},
		"Missing":          {"a was removed.", `{}`, `{"a":1}`, false},
		"Changed":          {"a was changed.", `{"a":2}`, `{"a":1}`, false},
		"ListLonger":       {"Arguments are one value.", `{"l":["a","b"]}`, `{"l":["a"]}`, false},
		"ListShorter":      {"As well.", `{"l":["a"]}`, `{"l":["a","b"]}`, false},
		"ListOtherOrder":   {"As well.", `{"l":["b","a"]}`, `{"l":["a","b"]}`, false},
		"NullIsAbsent":     {"null asks for nothing.", `{}`, `{"a":null}`, true},
		"NullIsNotZero":    {"but not for something.", `{"a":1}`, `{"a":null}`, false},
		"EmptyIsAbsent":    {"API servers drop what is empty.", `{}`, `{"a":{},"l":[],"n":{"m":{}}}`, true},
		"NotEmptyIsThere":  {"and nothing else.", `{}`, `{"n":{"m":{"a":0}}}`, false},
		"AnotherType":      {"1 is not a map.", `{"a":1}`, `{"a":{"b":1}}`, false},
		"AnotherTypeEmpty": {"Nor an empty one.", `{"a":1}`, `{"a":{}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrap := func(s string) any { return obj(`{"apiVersion":"v1","kind":"X","spec":` + s + `}`).Object["spec"] }
			if got := holds(wrap(tc.observed), wrap(tc.desired)); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestCarryOver(t *testing.T) {
	cases := map[string]struct{ reason, desired, observed, want string }{
		"Member": {
			reason:   "Identity, finalizers, owners and status are the member's.",
			desired:  `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","finalizers":["mine"]},"status":{"x":1}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","resourceVersion":"7","uid":"u","finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"u"}]},"status":{"x":2}}`,
			want:     `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","resourceVersion":"7","uid":"u","finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"u"}]},"status":{"x":2}}`,
		},
		"Keys": {
			reason: "What others added stays, what was ours and is gone goes, what is ours has our value.",
			desired: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"new"},
				"annotations":{"ours":"new"}}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"old","gone":"1","theirs":"1"},
				"annotations":{"ours":"old","gone":"1","theirs":"1",
				"resourcetemplate.karmada.io/managed-labels":"gone,ours","resourcetemplate.karmada.io/managed-annotations":"gone,ours,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels"}}}`,
			want: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"new","theirs":"1"},
				"annotations":{"ours":"new","theirs":"1"}}}`,
		},
		"LastApplied": {
			reason:  "What kubectl remembers on the member is a user's, even if an earlier version copied it from the template.",
			desired: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}",
				"resourcetemplate.karmada.io/managed-annotations":"kubectl.kubernetes.io/last-applied-configuration,resourcetemplate.karmada.io/managed-annotations"}}}`,
			want: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`,
		},
		"KeysWithoutBookkeeping": {
			reason:   "Where nobody knows what was ours, everything stays.",
			desired:  `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}}}`,
			want:     `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, observed := obj(tc.desired), obj(tc.observed)
			carryOver(desired, observed)
			if diff := cmp.Diff(obj(tc.want).Object, desired.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(obj(tc.observed).Object, observed.Object); diff != "" {
				t.Errorf("what is cached must not be changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	cases := map[string]struct{ reason, desired, observed, want string }{
		"Fields": {
			reason:   "What the member has stays, what is wanted is.",
			desired:  `{"apiVersion":"v1","kind":"X","spec":{"a":1,"m":{"x":1}}}`,
			observed: `{"apiVersion":"v1","kind":"X","spec":{"a":2,"b":2,"m":{"y":2}},"other":1}`,
			want:     `{"apiVersion":"v1","kind":"X","spec":{"a":1,"b":2,"m":{"x":1,"y":2}},"other":1}`,
		},
		"Metadata": {
			reason:   "Which labels stay was decided already.",
			desired:  `{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":"1"}}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"labels":{"gone":"1"}}}`,
			want:     `{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":"1"}}}`,
		},
		"Lists": {
			reason:   "Entries that are the same are merged, other lists are one value.",
			desired:  `{"apiVersion":"v1","kind":"X","named":[{"name":"a","x":1}],"other":[{"name":"b"}],"shorter":[{"name":"a"}],"plain":["a"],"map":[1]}`,
			observed: `{"apiVersion":"v1","kind":"X","named":[{"name":"a","y":2}],"other":[{"name":"a","y":2}],"shorter":[{"name":"a","y":1},{"name":"b"}],"plain":["b"],"map":{"a":1}}`,
			want:     `{"apiVersion":"v1","kind":"X","named":[{"name":"a","x":1,"y":2}],"other":[{"name":"b"}],"shorter":[{"name":"a"}],"plain":["a"],"map":[1]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, observed := obj(tc.desired), obj(tc.observed)
			if diff := cmp.Diff(obj(tc.want).Object, overlay(desired, observed).Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]any{obj(tc.desired), obj(tc.observed)}, []any{desired, observed}); diff != "" {
				t.Errorf("nothing is changed (-want +got):\n%s", diff)
			}
		})
	}
}
