package clusterset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A set has the clusters that policy.MatchesCluster says. It is an error whenever
// that is one for any cluster, and only if the affinity is to blame.
func TestIsWhatPoliciesMatch(t *testing.T) {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"m1", "m2", "m3"}), 0, 2)
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		a := &policyv1alpha1.ClusterAffinity{ClusterNames: names.Draw(t, "names"), ExcludeClusters: names.Draw(t, "excluded")}
		if rapid.Bool().Draw(t, "labelled") {
			a.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "tier", Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "Near"}).Draw(t, "operator"), Values: values.Draw(t, "values"),
			}}}
		}
		if rapid.Bool().Draw(t, "fields") {
			a.FieldSelector = &policyv1alpha1.FieldSelector{}
			for range rapid.IntRange(0, 2).Draw(t, "expressions") {
				a.FieldSelector.MatchExpressions = append(a.FieldSelector.MatchExpressions, corev1.NodeSelectorRequirement{
					Key:      rapid.SampledFrom([]string{"provider", "region", "zone", "planet"}).Draw(t, "key"),
					Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt"}).Draw(t, "operator"), Values: values.Draw(t, "values"),
				})
			}
		}
		set, bad := Of(a)
		for range 10 {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(t, "name")}}
			if v := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "label"); v != "" {
				c.Labels = map[string]string{"tier": v}
			}
			c.Spec.Provider, c.Spec.Region = rapid.SampledFrom([]string{"", "a"}).Draw(t, "provider"), rapid.SampledFrom([]string{"", "b"}).Draw(t, "region")
			c.Spec.Zones = values.Draw(t, "zones")
			want, err := policy.MatchesCluster(a, c)
			if err != nil && bad == nil {
				t.Fatalf("no error, where there is one for %v: %v", c, err)
			}
			if bad == nil && set.Has(c) != want {
				t.Fatalf("%v of %v is %t", c, a, !want)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	fields := func(expressions ...corev1.NodeSelectorRequirement) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: expressions}}
	}
	cases := map[string]struct {
		reason   string
		affinity *policyv1alpha1.ClusterAffinity
		want     string
	}{
		"Nil":   {reason: "Nothing said is all clusters.", want: "<nil>"},
		"Empty": {reason: "So is an affinity that says nothing.", affinity: &policyv1alpha1.ClusterAffinity{}, want: "<nil>"},
		"Labels": {
			reason:   "It does not matter that no cluster is asked for its labels.",
			affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"none"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "/"}}},
			want:     `labelSelector: values[0][a]: Invalid value: "/": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		},
		"Field": {
			reason:   "A mistake after what does not match is one, too, and its place is told.",
			affinity: fields(corev1.NodeSelectorRequirement{Key: "region", Operator: "Exists"}, corev1.NodeSelectorRequirement{Key: "planet", Operator: "Exists"}),
			want:     `fieldSelector.matchExpressions[1]: unsupported key "planet", must be provider, region, or zone`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := Of(tc.affinity)
			if got := fmt.Sprint(err); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
			if err == nil && (!set.Has(&clusterv1alpha1.Cluster{}) || len(set.Names()) > 0) {
				t.Errorf("%s", tc.reason)
			}
		})
	}
}
