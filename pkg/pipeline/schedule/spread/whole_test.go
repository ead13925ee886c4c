package spread

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// spec: behaviour/04 4.8 "Multi-component"
func TestSelectWhole(t *testing.T) {
	type constraints = []policyv1alpha1.SpreadConstraint
	type clusters = []candidate.Cluster
	const cluster, region = policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion
	here := func(c candidate.Cluster) candidate.Cluster {
		c.Assigned = 1
		return c
	}
	cases := map[string]struct {
		reason      string
		constraints constraints
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		all         clusters
		want        []string
		err         string
		one         bool
	}{
		"Room":       {reason: "It goes where there is room for a set.", constraints: constraints{by(cluster, 1, 1)}, strategy: divided, all: clusters{one("m1", 0, 0), one("m2", 2, 0)}, want: []string{"m2"}, one: true},
		"Stays":      {reason: "Where it is there is room for it.", constraints: constraints{by(cluster, 1, 1)}, strategy: divided, all: clusters{here(one("m1", 0, 100)), one("m2", 2, 0)}, want: []string{"m1"}, one: true},
		"NoRoom":     {reason: "Scripts wait for that message.", constraints: constraints{by(cluster, 1, 1)}, strategy: divided, all: clusters{one("m1", 0, 0)}, err: "no enough resource when selecting 1 clusters", one: true},
		"Duplicated": {reason: "A strategy that gives everything to each cluster does not look at room.", constraints: constraints{by(cluster, 1, 1)}, strategy: duplicated, all: clusters{one("m1", 0, 0)}, want: []string{"m1"}, one: true},
		"Region":     {reason: "A region does not change that it is one cluster; of regions the one with room is chosen.", constraints: constraints{by(cluster, 1, 1), by(region, 1, 1)}, strategy: divided, all: clusters{one("m1@1", 0, 0), one("m2@2", 2, 0)}, want: []string{"m2"}, one: true},
		"Several":    {reason: "Where each cluster gets a whole set, nothing is said of their sum.", constraints: constraints{by(cluster, 1, 2)}, strategy: divided, all: clusters{one("m1", 0, 0), one("m2", 0, 0), one("m3", 0, 0)}, want: []string{"m1", "m2"}},
		"Label":      {reason: "A label is not the cluster.", constraints: constraints{{SpreadByLabel: "rack", MinGroups: 1, MaxGroups: 1}}, strategy: divided, all: clusters{inRack("a", one("m1", 0, 0)), inRack("a", one("m2", 0, 0))}, want: []string{"m1", "m2"}},
		"Weighted":   {reason: "Static weights ignore constraints.", constraints: constraints{by(cluster, 1, 1)}, strategy: weighted, all: clusters{one("m1", 0, 0), one("m2", 0, 0)}, want: []string{"m1", "m2"}},
		"None":       {reason: "Without constraints it goes everywhere.", strategy: divided, all: clusters{one("m1", 0, 0), one("m2", 0, 0)}, want: []string{"m1", "m2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Components: []workv1alpha2.Component{{Name: "a", Replicas: 3}, {Name: "b", Replicas: 1}},
				Placement:  &policyv1alpha1.Placement{SpreadConstraints: tc.constraints, ReplicaScheduling: tc.strategy},
			}
			selected, err := Select(spec, tc.all)
			var got []string
			for _, c := range selected {
				got = append(got, c.Name)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || said != tc.err {
				t.Errorf("%s\nerror %q, want %q; clusters (-want +got):\n%s", tc.reason, said, tc.err, diff)
			}
			if IsOneCluster(spec.Placement) != tc.one {
				t.Errorf("one cluster: %t, want %t: %s", !tc.one, tc.one, tc.reason)
			}
		})
	}
}
