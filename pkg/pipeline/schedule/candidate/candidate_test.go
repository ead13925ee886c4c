package candidate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// spec: behaviour/04 4.7 and 4.9
func TestNew(t *testing.T) {
	affinity := func(names ...string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
	term := &policyv1alpha1.ClusterAffinityTerm{
		ClusterAffinity: affinity("m3"),
		OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{
			{ClusterAffinity: affinity("m2")}, {ClusterAffinity: affinity("m1", "m2")},
		},
	}
	cases := map[string]struct {
		reason   string
		term     *policyv1alpha1.ClusterAffinityTerm
		locality bool
		now      []workv1alpha2.TargetCluster
		room     map[string]int64
		want     []string // name tier score allocatable+assigned
	}{
		"Name": {reason: "Equals are in the order of names.", want: []string{"m1 0 0 0+0", "m2 0 0 0+0", "m3 0 0 0+0", "m4 0 0 0+0"}},
		"Room": {
			reason: "Those with more room come first; what is there counts as room.", room: map[string]int64{"m2": 1, "m3": 2},
			now:  []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}, {Name: "gone", Replicas: 9}},
			want: []string{"m2 0 0 1+2", "m3 0 0 2+0", "m1 0 0 0+0", "m4 0 0 0+0"},
		},
		"Locality": {
			reason: "Where it is comes before all room.", locality: true, room: map[string]int64{"m1": 9},
			now:  []workv1alpha2.TargetCluster{{Name: "m2"}},
			want: []string{"m2 0 100 0+0", "m1 0 0 9+0", "m3 0 0 0+0", "m4 0 0 0+0"},
		},
		"Tiers": {
			reason: "And a tier before that; the first affinity that matches counts.", term: term, locality: true,
			now:  []workv1alpha2.TargetCluster{{Name: "m2"}},
			want: []string{"m3 0 0 0+0", "m2 1 100 0+0", "m1 2 0 0+0", "m4 1000 0 0+0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var fit []*clusterv1alpha1.Cluster
			for _, name := range []string{"m4", "m2", "m1", "m3"} {
				fit = append(fit, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			r := Request{
				Spec: &workv1alpha2.ResourceBindingSpec{Clusters: tc.now}, Term: tc.term, Clusters: fit,
				Estimate: func(c *clusterv1alpha1.Cluster) (int64, string) { return tc.room[c.Name], "" },
			}
			if tc.locality {
				r.Scorers = Scorers()
			}
			all, err := New(r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range all {
				got = append(got, fmt.Sprintf("%s %d %d %d+%d", c.Name, c.Tier, c.Score, c.Allocatable, c.Assigned))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
