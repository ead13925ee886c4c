package validate

import (
	"testing"

	"k8s.io/component-base/featuregate"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
)

// gate has one feature set.
func gate(t testing.TB, feature featuregate.Feature, enabled bool) featuregate.FeatureGate {
	t.Helper()
	g, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetFromMap(map[string]bool{string(feature): enabled}); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBindings(t *testing.T) {
	const head = `
metadata: {namespace: shop, name: web-deployment}
`
	parts := func(list string) string {
		return `spec: {resource: {apiVersion: f.io/v1, kind: F, name: f}, components: [` + list + `]}`
	}
	same := parts(`{name: a, replicas: 1}, {name: a, replicas: 2}`)
	on, off := gate(t, features.MultiplePodTemplatesScheduling, true), gate(t, features.MultiplePodTemplatesScheduling, false)
	check(t, bindings(on), head, map[string]ruleCase{
		"None":      {reason: "Most have no components.", object: parts(``)},
		"Different": {reason: "Components have names.", object: parts(`{name: a, replicas: 1}, {name: b, replicas: 2}`)},
		"Same":      {reason: "Whose replicas are whose could not be told.", object: same, want: []string{`spec.components[1].name: Duplicate value: "a"`}},
		"NoName":    {reason: "Here, too.", object: parts(`{name: "", replicas: 1}, {name: "", replicas: 1}`), want: []string{`spec.components[0].name: Required value`, `spec.components[1].name: Required value`}},
	})
	check(t, bindings(off), head, map[string]ruleCase{
		"Same": {reason: "Without the feature nobody looks at them.", object: same},
	})
	noted := func(text string) string {
		return `{metadata: {annotations: {resourcebinding.karmada.io/dependencies: '` + text + `'}}, spec: {resource: {apiVersion: v1, kind: K, name: n}}}`
	}
	const at = `metadata.annotations[resourcebinding.karmada.io/dependencies]: Invalid value`
	check(t, bindings(off), "", map[string]ruleCase{
		"Dependencies": {reason: "A list of references.", object: noted(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"c"}]`)},
		"EmptyList":    {reason: "Of none as well.", object: noted(`[]`)},
		"NoList":       {reason: "Nothing else.", object: noted(`{"apiVersion":"v1"}`), want: []string{at}},
		"Text":         {reason: "Not that, either.", object: noted(`c`), want: []string{at}},
		"OtherList":    {reason: "A list of what is no reference is no list of references.", object: noted(`["c"]`), want: []string{at}},
	})

	wrong := object[workv1alpha2.ResourceBinding](t, noted(`c`))
	compare(t, "What was wrong before is nobody's fault now.", bindings(off).change(wrong, wrong.DeepCopy()), nil)
	right := object[workv1alpha2.ResourceBinding](t, noted(`[]`))
	compare(t, "It must not become wrong.", bindings(off).change(right, wrong), []string{at})
}
