package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

const (
	ppID      = "propagationpolicy.karmada.io/permanent-id"
	ppSpace   = "propagationpolicy.karmada.io/namespace"
	ppName    = "propagationpolicy.karmada.io/name"
	cppID     = "clusterpropagationpolicy.karmada.io/permanent-id"
	cppName   = "clusterpropagationpolicy.karmada.io/name"
	something = "example.com/something"
)

func metaOf(labels, annotations map[string]string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Labels: labels, Annotations: annotations}
}

func TestClaimOf(t *testing.T) {
	cases := map[string]struct {
		reason              string
		labels, annotations map[string]string
		want                Claim
		ok                  bool
	}{
		"None": {reason: "Nobody has claimed it.", labels: map[string]string{something: "x"}},
		"Policy": {
			"All three marks are there.", map[string]string{ppID: "1"}, map[string]string{ppSpace: "shop", ppName: "p"},
			Claim{"shop", "p", "1"}, true,
		},
		"ClusterPolicy": {
			"Both marks are there.", map[string]string{cppID: "2"}, map[string]string{cppName: "c"}, Claim{"", "c", "2"}, true,
		},
		"Both": {
			"A PropagationPolicy comes before a ClusterPropagationPolicy.",
			map[string]string{ppID: "1", cppID: "2"}, map[string]string{ppSpace: "shop", ppName: "p", cppName: "c"}, Claim{"shop", "p", "1"}, true,
		},
		"Half": {reason: "A mark that is missing makes it no claim.", labels: map[string]string{ppID: "1"}, annotations: map[string]string{ppName: "p"}},
		"HalfBesideWhole": {
			"What is left of one does not hide another.",
			map[string]string{ppID: "1", cppID: "2"}, map[string]string{cppName: "c"}, Claim{"", "c", "2"}, true,
		},
		"NoID": {reason: "Without a permanent identity it is none.", annotations: map[string]string{cppName: "c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := ClaimOf(metaOf(tc.labels, tc.annotations))
			if got != tc.want || ok != tc.ok {
				t.Errorf("%s\ngot %+v, %t, want %+v, %t", tc.reason, got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestPutAndRemove(t *testing.T) {
	policy, cluster := Claim{"shop", "p", "1"}, Claim{"", "c", "2"}
	theirs := func(also map[string]string) map[string]string {
		m := map[string]string{something: "x"}
		for k, v := range also {
			m[k] = v
		}
		return m
	}
	policyLabels, policyAnnotations := theirs(map[string]string{ppID: "1"}), theirs(map[string]string{ppSpace: "shop", ppName: "p"})
	clusterLabels, clusterAnnotations := theirs(map[string]string{cppID: "2"}), theirs(map[string]string{cppName: "c"})
	cases := map[string]struct {
		reason              string
		labels, annotations map[string]string
		do                  func(metav1.Object)
		wantL, wantA        map[string]string
	}{
		"Put":            {"What others have put there stays.", theirs(nil), theirs(nil), policy.Put, policyLabels, policyAnnotations},
		"PutOverCluster": {"A PropagationPolicy takes what a ClusterPropagationPolicy had.", clusterLabels, clusterAnnotations, policy.Put, policyLabels, policyAnnotations},
		"PutCluster":     {"And the other way round.", policyLabels, policyAnnotations, cluster.Put, clusterLabels, clusterAnnotations},
		"PutAgain":       {"Nothing differs.", policyLabels, policyAnnotations, policy.Put, policyLabels, policyAnnotations},
		"PutAnew":        {"A policy that was made anew has another identity.", policyLabels, policyAnnotations, Claim{"shop", "p", "9"}.Put, theirs(map[string]string{ppID: "9"}), policyAnnotations},
		"Remove":         {"Only the claim goes.", policyLabels, policyAnnotations, policy.Remove, theirs(nil), theirs(nil)},
		"RemoveCluster":  {"Only the claim goes.", clusterLabels, clusterAnnotations, cluster.Remove, theirs(nil), theirs(nil)},
		"RemoveOther":    {"The claim of another identity stays.", policyLabels, policyAnnotations, Claim{"shop", "p", "9"}.Remove, policyLabels, policyAnnotations},
		"RemoveNoID":     {"Without an identity nothing is claimed.", theirs(nil), policyAnnotations, Claim{"shop", "p", ""}.Remove, theirs(nil), policyAnnotations},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := metaOf(tc.labels, tc.annotations)
			o := before.DeepCopy()
			shared := metaOf(o.Labels, o.Annotations)
			tc.do(o)
			if diff := cmp.Diff(metaOf(tc.wantL, tc.wantA), o); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, shared); diff != "" {
				t.Errorf("the maps, which a cache may share, were changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPutOnNothing(t *testing.T) {
	o := &metav1.ObjectMeta{}
	Claim{"", "c", "2"}.Put(o)
	if diff := cmp.Diff(metaOf(map[string]string{cppID: "2"}, map[string]string{cppName: "c"}), o); diff != "" {
		t.Errorf("an object without labels (-want +got):\n%s", diff)
	}
}

func TestBy(t *testing.T) {
	pp := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{ppID: "1", cppID: "2"}}}
	if got, want := By(pp), (Claim{"shop", "p", "1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	cpp := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{ppID: "1", cppID: "2"}}}
	if got, want := By(cpp), (Claim{"", "c", "2"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := By(pp).String() + " " + By(cpp).String(); got != "shop/p c" {
		t.Errorf("events name policies otherwise: %q", got)
	}
}
