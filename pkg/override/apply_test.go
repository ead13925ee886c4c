package override

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A shop has a ConfigMap to which policies append their name.
func shop() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"}},
		"data":     map[string]any{},
	}}
}

// trail returns overriders that leave a trail: each makes a list longer.
func trail(value string) policyv1alpha1.Overriders {
	return policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
		{Path: "/trail/-", Operator: add, Value: text(value)},
	}}
}

func text(s string) apiextensionsv1.JSON {
	return apiextensionsv1.JSON{Raw: []byte(fmt.Sprintf("%q", s))}
}

func rule(value string, clusters ...string) policyv1alpha1.RuleWithCluster {
	r := policyv1alpha1.RuleWithCluster{Overriders: trail(value)}
	if len(clusters) > 0 {
		r.TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	return r
}

func cop(name string, selectors []policyv1alpha1.ResourceSelector, rules ...policyv1alpha1.RuleWithCluster) policyv1alpha1.ClusterOverridePolicy {
	return policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1alpha1.OverrideSpec{ResourceSelectors: selectors, OverrideRules: rules},
	}
}

func op(namespace, name string, selectors []policyv1alpha1.ResourceSelector, rules ...policyv1alpha1.RuleWithCluster) policyv1alpha1.OverridePolicy {
	return policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1alpha1.OverrideSpec{ResourceSelectors: selectors, OverrideRules: rules},
	}
}

func selectors(change func(*policyv1alpha1.ResourceSelector)) []policyv1alpha1.ResourceSelector {
	s := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}
	change(&s)
	return []policyv1alpha1.ResourceSelector{s}
}

func TestApplyOrder(t *testing.T) {
	byName := selectors(func(s *policyv1alpha1.ResourceSelector) { s.Name = "web" })
	byLabel := selectors(func(s *policyv1alpha1.ResourceSelector) {
		s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	})
	byKind := selectors(func(*policyv1alpha1.ResourceSelector) {})
	otherName := selectors(func(s *policyv1alpha1.ResourceSelector) { s.Name = "db" })
	badLabels := selectors(func(s *policyv1alpha1.ResourceSelector) {
		s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	})
	deleting := func(p policyv1alpha1.OverridePolicy) policyv1alpha1.OverridePolicy {
		now := metav1.NewTime(time.Unix(1, 0))
		p.DeletionTimestamp = &now
		return p
	}
	deprecated := func(p policyv1alpha1.OverridePolicy, value string, clusters ...string) policyv1alpha1.OverridePolicy {
		r := rule(value, clusters...)
		p.Spec.TargetCluster, p.Spec.Overriders = r.TargetCluster, r.Overriders
		return p
	}

	tests := map[string]struct {
		reason        string
		clusterScoped bool
		cops          []policyv1alpha1.ClusterOverridePolicy
		ops           []policyv1alpha1.OverridePolicy
		want          []any
		cluster, own  []string // policies that are noted
	}{
		"Nothing": {reason: "Without policies nothing changes."},
		"Scopes": {
			reason:  "OverridePolicies come after ClusterOverridePolicies, however close these match.",
			cops:    []policyv1alpha1.ClusterOverridePolicy{cop("z", byName, rule("cop"))},
			ops:     []policyv1alpha1.OverridePolicy{op("shop", "a", nil, rule("op"))},
			want:    []any{"cop", "op"},
			cluster: []string{"z"}, own: []string{"a"},
		},
		"Levels": {
			reason: "The closer match comes later, and the notes are in the order of names.",
			ops: []policyv1alpha1.OverridePolicy{
				op("shop", "a", byName, rule("name")), op("shop", "b", byLabel, rule("label")), op("shop", "c", byKind, rule("kind")),
			},
			want: []any{"kind", "label", "name"}, own: []string{"a", "b", "c"},
		},
		"NoSelectors": {
			reason: "A policy without selectors is one for all.",
			ops:    []policyv1alpha1.OverridePolicy{op("shop", "b", byKind, rule("kind")), op("shop", "a", nil, rule("all")), op("shop", "c", nil, rule("all too"))},
			want:   []any{"all", "kind", "all too"}, own: []string{"a", "b", "c"},
		},
		"Rules": {
			reason: "Rules keep their order, and those for other clusters are left out.",
			cops:   []policyv1alpha1.ClusterOverridePolicy{cop("b", nil, rule("1"), rule("2", "m2"), rule("3", "m1"), rule("4")), cop("a", nil, rule("0"))},
			want:   []any{"0", "1", "3", "4"}, cluster: []string{"a", "b", "b", "b"},
		},
		"Deprecated": {
			reason: "The deprecated pair is one rule.",
			ops: []policyv1alpha1.OverridePolicy{
				deprecated(op("shop", "a", nil), "here", "m1"), deprecated(op("shop", "b", nil), "elsewhere", "m2"), deprecated(op("shop", "c", nil), "everywhere"),
			},
			want: []any{"here", "everywhere"}, own: []string{"a", "c"},
		},
		"DeprecatedBesideRules": {
			reason: "Rules exclude the deprecated pair.",
			ops:    []policyv1alpha1.OverridePolicy{deprecated(op("shop", "a", nil, rule("rule")), "pair")},
			want:   []any{"rule"}, own: []string{"a"},
		},
		"Empty": {
			reason: "A rule that changes nothing is not noted.",
			ops:    []policyv1alpha1.OverridePolicy{op("shop", "a", nil), op("shop", "b", nil, policyv1alpha1.RuleWithCluster{})},
		},
		"Unselected": {
			reason: "Selectors must match, and one that cannot be parsed does not.",
			cops:   []policyv1alpha1.ClusterOverridePolicy{cop("a", otherName, rule("1"))},
			ops:    []policyv1alpha1.OverridePolicy{op("shop", "a", badLabels, rule("2"))},
		},
		"OtherNamespace": {
			reason: "A policy is for its own namespace, whoever else is asked.",
			ops:    []policyv1alpha1.OverridePolicy{op("bank", "a", nil, rule("1"))},
		},
		"Deleting": {
			reason: "A policy counts until it is gone, as everything does in Kubernetes.",
			ops:    []policyv1alpha1.OverridePolicy{deleting(op("shop", "a", nil, rule("1")))},
			want:   []any{"1"}, own: []string{"a"},
		},
		"ClusterScoped": {
			reason:        "What is in no namespace is for ClusterOverridePolicies.",
			clusterScoped: true,
			cops:          []policyv1alpha1.ClusterOverridePolicy{cop("a", nil, rule("1"))},
			ops:           []policyv1alpha1.OverridePolicy{op("shop", "a", nil, rule("2")), op("", "b", nil, rule("3"))},
			want:          []any{"1"}, cluster: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := shop()
			if tc.clusterScoped {
				obj.SetNamespace("")
			}
			obj.Object["trail"] = []any{}
			before := obj.DeepCopy()
			got, err := Apply(obj, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, tc.cops, tc.ops)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object that was given has changed (-want +got):\n%s", diff)
			}
			want := tc.want
			if want == nil {
				want = []any{}
			}
			if diff := cmp.Diff(want, got.Object.Object["trail"]); diff != "" {
				t.Errorf("%s\norder (-want +got):\n%s", tc.reason, diff)
			}
			if same := got.Object == obj; same != (tc.want == nil) {
				t.Errorf("the object itself is returned: %t; it must be exactly when nothing applies", same)
			}
			if diff := cmp.Diff([][]string{tc.cluster, tc.own}, [][]string{policies(got.Cluster), policies(got.Namespaced)}); diff != "" {
				t.Errorf("%s\nnoted policies (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func policies(all []Applied) []string {
	var found []string
	for _, a := range all {
		found = append(found, a.PolicyName)
	}
	return found
}

func TestAnnotations(t *testing.T) {
	obj := shop()
	obj.Object["trail"] = []any{}
	cops := []policyv1alpha1.ClusterOverridePolicy{cop("a", nil, rule("1"), rule("2"))}
	r, err := Apply(obj, &clusterv1alpha1.Cluster{}, cops, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Annotations()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{names.AppliedClusterOverridesAnnotation: `[` +
		`{"policyName":"a","overriders":{"plaintext":[{"path":"/trail/-","operator":"add","value":"1"}]}},` +
		`{"policyName":"a","overriders":{"plaintext":[{"path":"/trail/-","operator":"add","value":"2"}]}}]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was not applied is not there (-want +got):\n%s", diff)
	}
	if got, err := (Result{Object: obj}).Annotations(); err != nil || len(got) != 0 {
		t.Errorf("Annotations() of nothing = %v, %v, want none", got, err)
	}
}

func TestApplyFails(t *testing.T) {
	good := rule("good")
	bad := policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{
		LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: add, Value: map[string]string{"a": "b"}}},
		Plaintext: []policyv1alpha1.PlaintextOverrider{
			{Path: "/data/x", Operator: add, Value: text("x")}, {Path: "/data/y/z", Operator: replace, Value: text("y")},
		},
	}}
	unclear := policyv1alpha1.RuleWithCluster{Overriders: trail("x"), TargetCluster: &policyv1alpha1.ClusterAffinity{
		FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "planet", Operator: corev1.NodeSelectorOpIn}}},
	}}
	deprecated := op("shop", "old", nil)
	deprecated.Spec.Overriders = bad.Overriders

	tests := map[string]struct {
		reason string
		cops   []policyv1alpha1.ClusterOverridePolicy
		ops    []policyv1alpha1.OverridePolicy
		want   string
	}{
		"Rule": {
			reason: "Policy, rule, overrider and path are named.",
			cops:   []policyv1alpha1.ClusterOverridePolicy{cop("mirror", nil, good, bad)},
			want:   "ClusterOverridePolicy mirror: spec.overrideRules[1].overriders.plaintext[1] at /data/y/z: there is nothing there to replace",
		},
		"Deprecated": {
			reason: "The deprecated pair is named by what it is.",
			ops:    []policyv1alpha1.OverridePolicy{deprecated},
			want:   "OverridePolicy shop/old: spec.overriders.plaintext[1] at /data/y/z: there is nothing there to replace",
		},
		"TargetCluster": {
			reason: "Where it cannot be said whether a rule applies, leaving it out could send the wrong thing to a cluster.",
			ops:    []policyv1alpha1.OverridePolicy{op("shop", "where", nil, unclear)},
			want: "OverridePolicy shop/where: spec.overrideRules[0].targetCluster: fieldSelector.matchExpressions[0]: " +
				`unsupported key "planet", must be provider, region, or zone`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := shop()
			obj.Object["trail"] = []any{}
			before := obj.DeepCopy()
			r, err := Apply(obj, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, tc.cops, tc.ops)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s\nApply() error %v, want an *Error", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, e.Error()); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if r.Object != nil || r.Cluster != nil || r.Namespaced != nil {
				t.Errorf("nothing may be made of half an override, got %+v", r)
			}
			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object that was given has changed (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkApply overrides one Deployment for one cluster, by the image and by
// a JSON patch, among policies that do not apply to it.
func BenchmarkApply(b *testing.B) {
	obj := workload("Deployment")
	obj.SetNamespace("shop")
	var ops []policyv1alpha1.OverridePolicy
	for i := range 100 {
		ops = append(ops, op("shop", fmt.Sprintf("other-%d", i), selectors(func(s *policyv1alpha1.ResourceSelector) { s.Name = "x" }), rule("x")))
	}
	for name, o := range map[string]policyv1alpha1.Overriders{
		"Image":     {ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: registry, Operator: replace, Value: "r.io"}}},
		"Plaintext": {Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/paused", Operator: add, Value: apiextensionsv1.JSON{Raw: []byte("true")}}}},
	} {
		b.Run(name, func(b *testing.B) {
			all := append(ops[:100:100], op("shop", "it", nil, policyv1alpha1.RuleWithCluster{Overriders: o}))
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Apply(obj, c, nil, all); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
