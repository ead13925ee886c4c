package dependencies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

func TestRecord(t *testing.T) {
	const c = `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"c"}]`
	empty := byLabel(configMap, "app", "x")
	empty.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{}
	cases := map[string]struct {
		reason  string
		before  string
		refs    []reference
		want    string
		changed bool
	}{
		"First":      {"What it depends on is written down.", "", []reference{byName(configMap, "c")}, c, true},
		"Same":       {"Once.", c, []reference{byName(configMap, "c")}, c, false},
		"Nothing":    {"That it depends on nothing need not be.", "", nil, "", false},
		"NoMore":     {"Unless it did before.", c, nil, "[]", true},
		"StillNot":   {"Then it stays so.", "[]", nil, "[]", false},
		"Null":       {"Or as somebody else writes nothing.", "null", nil, "null", false},
		"Order":      {"The order in which it was written down does not matter.", `[{"apiVersion":"v1","kind":"Secret","namespace":"default","name":"a"},` + c[1:], []reference{byName(configMap, "c"), {APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "a"}}, `[{"apiVersion":"v1","kind":"Secret","namespace":"default","name":"a"},` + c[1:], false},
		"Garbage":    {"What is no list is replaced.", "{", []reference{byName(configMap, "c")}, c, true},
		"EmptyLists": {"Nothing is as good as an empty list.", `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","labelSelector":{"matchLabels":{"app":"x"}}}]`, []reference{empty}, `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","labelSelector":{"matchLabels":{"app":"x"}}}]`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rb := &workv1alpha2.ResourceBinding{}
			if tc.before != "" {
				rb.Annotations = map[string]string{names.DependenciesAnnotation: tc.before}
			}
			changed, err := record(rb, tc.refs)
			if got := rb.Annotations[names.DependenciesAnnotation]; err != nil || changed != tc.changed || got != tc.want {
				t.Errorf("changed %v, %v, annotation %s\n%s", changed, err, got, tc.reason)
			}
		})
	}
}

func TestOrdered(t *testing.T) {
	a, b, x, y := byName(configMap, "a"), byName(configMap, "b"), byLabel(configMap, "k", "x"), byLabel(configMap, "k", "y")
	given := []reference{b, y, a, x, b}
	if diff := cmp.Diff([]reference{x, y, a, b}, ordered(given)); diff != "" {
		t.Errorf("in order, each once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]reference{b, y, a, x, b}, given); diff != "" {
		t.Errorf("what is given stays as it is (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		ref    reference
		want   string // in the error, "" for none
	}{
		"Name":     {"By name.", byName(configMap, "c"), ""},
		"Labels":   {"By labels.", byLabel(configMap, "a", "b"), ""},
		"Neither":  {"It means nothing.", reference{APIVersion: "v1", Kind: "Secret"}, "neither a name nor a label selector"},
		"NoKind":   {"Of what kind?", reference{APIVersion: "v1", Name: "x"}, "no apiVersion or no kind"},
		"Version":  {"Of what API?", reference{APIVersion: "a/b/c", Kind: "Secret", Name: "x"}, "a/b/c"},
		"Selector": {"A selector that cannot be read.", byLabel(configMap, "a b", "c"), "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := check(tc.ref)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q\n%s", err, tc.want, tc.reason)
			}
		})
	}
}
