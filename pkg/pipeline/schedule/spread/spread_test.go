package spread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// one returns a candidate: name@region, what it has room for, and its score.
func one(at string, room, score int64) candidate.Cluster {
	name, region, _ := strings.Cut(at, "@")
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Region = region
	return candidate.Cluster{Cluster: c, Allocatable: room, Score: score}
}

func by(field policyv1alpha1.SpreadFieldValue, least, most int) policyv1alpha1.SpreadConstraint {
	return policyv1alpha1.SpreadConstraint{SpreadByField: field, MinGroups: least, MaxGroups: most}
}

var (
	divided    = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}
	weighted   = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted"}
	duplicated = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Duplicated"}
)

// spec: behaviour/14 14.6 and 14.7, and beyond.
func TestSelect(t *testing.T) {
	type constraints = []policyv1alpha1.SpreadConstraint
	type clusters = []candidate.Cluster
	const cluster, region = policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion
	three := clusters{one("m1", 6, 0), one("m2", 5, 0), one("m3", 1, 0)}
	regions := clusters{one("m1@1", 9, 0), one("m2@2", 9, 0), one("m3", 9, 0)}
	cases := map[string]struct {
		reason      string
		constraints constraints
		strategy    *policyv1alpha1.ReplicaSchedulingStrategy
		replicas    int32
		all         clusters
		want        []string
		err         string
	}{
		"None":    {reason: "Without constraints all are used.", strategy: divided, replicas: 100, all: three, want: []string{"m1", "m2", "m3"}},
		"Weights": {reason: "Static weights ignore constraints.", constraints: constraints{by(cluster, 1, 1)}, strategy: weighted, all: three, want: []string{"m1", "m2", "m3"}},
		"First":   {reason: "The first two have room for all.", constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 10, all: three, want: []string{"m1", "m2"}},
		"Exchange": {
			reason:      "The cluster that it is in has too little room, so another one takes its place.",
			constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 10,
			all: clusters{one("m3", 1, 100), one("m1", 6, 0), one("m2", 5, 0)}, want: []string{"m2", "m1"},
		},
		"TooLittle": {
			reason: "Two clusters never have that much.", constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 12, all: three,
			err: "no enough resource when selecting 2 clusters",
		},
		"TooFew": {
			reason: "Fewer than the least are none.", constraints: constraints{by(cluster, 3, 5)}, strategy: divided, replicas: 1, all: three[:2],
			err: "the number of feasible clusters is less than spreadConstraint.MinGroups",
		},
		"Duplicated": {reason: "Room does not matter where all replicas go everywhere.", constraints: constraints{by(cluster, 1, 2)}, strategy: duplicated, replicas: 100, all: three, want: []string{"m1", "m2"}},
		"Default":    {reason: "Without a field it is the cluster.", constraints: constraints{by("", 1, 2)}, replicas: 1, all: three, want: []string{"m1", "m2"}},
		"NoMost":     {reason: "A largest number of zero selects nothing.", constraints: constraints{by(cluster, 1, 0)}, strategy: divided, replicas: 1, all: three, err: "no enough resource when selecting 0 clusters"},
		"Zone":       {reason: "Other fields need a cluster constraint beside them.", constraints: constraints{by(policyv1alpha1.SpreadByFieldZone, 1, 1)}, all: three, err: "just support cluster and region spread constraint"},
		"ZoneToo":    {reason: "Beside one they only filter.", constraints: constraints{by(policyv1alpha1.SpreadByFieldZone, 1, 1), by(cluster, 1, 1)}, all: three, want: []string{"m1"}},
		"Label":      {reason: "Labels are not supported.", constraints: constraints{{SpreadByLabel: "a", MaxGroups: 1}}, all: three, err: "just support cluster and region spread constraint"},
		"EveryRegion": {
			reason:      "Two regions are chosen, and each has a cluster, although one cluster is the most.",
			constraints: constraints{by(cluster, 1, 1), by(region, 2, 2)}, strategy: duplicated, replicas: 1, all: regions, want: []string{"m1", "m2"},
		},
		"OneRegion": {
			reason:      "One region is chosen, so one cluster.",
			constraints: constraints{by(cluster, 1, 1), by(region, 1, 1)}, strategy: duplicated, replicas: 1, all: regions, want: []string{"m1"},
		},
		"FillUp": {
			reason:      "What is left of the largest number comes from all chosen regions, in order.",
			constraints: constraints{by(cluster, 2, 3), by(region, 2, 2)}, strategy: duplicated, replicas: 1,
			all: clusters{one("a@1", 9, 0), one("b@1", 8, 0), one("c@2", 7, 0), one("d@2", 6, 0)}, want: []string{"a", "c", "b"},
		},
		"TooFewRegions": {
			reason: "Regions are counted by clusters that may be used.", constraints: constraints{by(cluster, 1, 3), by(region, 3, 3)}, all: regions,
			err: "the number of feasible region is less than spreadConstraint.MinGroups",
		},
		"TooFewInRegions": {
			reason: "All regions together have too few.", constraints: constraints{by(cluster, 3, 3), by(region, 1, 2)}, all: regions,
			err: "the number of clusters is less than the cluster spreadConstraint.MinGroups",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Replicas: tc.replicas, Placement: &policyv1alpha1.Placement{SpreadConstraints: tc.constraints, ReplicaScheduling: tc.strategy},
			}
			before := slices.Clone(tc.all)
			chosen, err := Select(spec, tc.all)
			var got []string
			for _, c := range chosen {
				got = append(got, c.Name)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || said != tc.err {
				t.Errorf("%s\nerror %q, want %q; clusters (-want +got):\n%s", tc.reason, said, tc.err, diff)
			}
			if diff := cmp.Diff(before, tc.all); diff != "" {
				t.Errorf("the candidates are not to be changed (-before +after):\n%s", diff)
			}
		})
	}
}

// spec: behaviour/14 14.7
func TestChoose(t *testing.T) {
	g := func(name string, value, weight int64) group { return group{name: name, value: value, weight: weight} }
	cases := map[string]struct {
		groups   []group
		regions  bounds
		least    int64
		feasible string
		want     string
	}{
		"Many": {
			groups: []group{g("A", 2, 2000), g("B", 3, 3000), g("C", 6, 1000), g("D", 7, 500)}, regions: bounds{1, 3}, least: 7,
			feasible: "BAC BAD AC AD BC BD CD D", want: "BAC",
		},
		"EqualWeights": {groups: []group{g("A", 1, 1100), g("B", 1, 1000), g("C", 1, 1000)}, regions: bounds{2, 2}, least: 1, feasible: "AB AC BC", want: "AB"},
		"NoneForced":   {groups: []group{g("A", 1, 1100), g("B", 1, 1000)}, regions: bounds{1, 2}, least: 1, feasible: "A B", want: "A"},
		"TwoOfThree":   {groups: []group{g("A", 2, 2010), g("B", 2, 2050), g("C", 1, 1100)}, regions: bounds{2, 3}, least: 3, feasible: "BC AC BA", want: "BA"},
		"Prefix": {
			// Of BAC the part B is enough by itself.
			groups: []group{g("A", 1, 10), g("B", 2, 20), g("C", 1, 5)}, regions: bounds{1, 3}, least: 2, feasible: "AC BA BC B", want: "B",
		},
		"All": {groups: []group{g("A", 1, 1), g("B", 1, 2)}, regions: bounds{2, 2}, least: 1, feasible: "BA", want: "BA"},
	}
	text := func(groups []group) string {
		var b strings.Builder
		for _, g := range groups {
			b.WriteString(g.name)
		}
		return b.String()
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := text(choose(tc.groups, tc.regions, tc.least)); got != tc.want {
				t.Errorf("chose %s, want %s", got, tc.want)
			}
			s := search{slices.Clone(tc.groups), tc.regions, tc.least}
			slices.SortFunc(s.sorted, compareGroups)
			var found []string
			s.each(func(path []group, _, _ int64) {
				byWeight := slices.Clone(path)
				slices.SortStableFunc(byWeight, func(a, b group) int { return int(b.weight - a.weight) })
				found = append(found, text(byWeight))
			})
			if diff := cmp.Diff(strings.Fields(tc.feasible), found); diff != "" {
				t.Errorf("feasible (-want +got):\n%s", diff)
			}
		})
	}
}

// Hundreds of regions must not stop the scheduler.
func TestChooseEnds(t *testing.T) {
	var groups []group
	for i := range 200 {
		groups = append(groups, group{name: fmt.Sprint(i), value: 1, weight: 1})
	}
	if got := choose(groups, bounds{20, 20}, 20); len(got) != 20 {
		t.Errorf("got %d regions, want 20", len(got))
	}
}

// spec: behaviour/14 14.8
func TestWeigh(t *testing.T) {
	region := []candidate.Cluster{one("a", 5, 100), one("b", 4, 0), one("c", 1, 0)}
	cases := map[string]struct {
		request  request
		clusters []candidate.Cluster
		want     int64
	}{
		"Duplicated": {request{replicas: 3, duplicated: true}, region, 2050},
		"NoneHolds":  {request{replicas: 30, duplicated: true}, region, 0},
		"Divided": {
			request{replicas: 10, regions: bounds{2, 2}, clusters: bounds{3, 9}},
			[]candidate.Cluster{one("a", 2, 100), one("b", 2, 0), one("c", 2, 0), one("d", 9, 0)}, 5033,
		},
		"DividedTooLittle": {
			request{replicas: 10, regions: bounds{2, 2}, clusters: bounds{3, 9}},
			[]candidate.Cluster{one("a", 2, 100), one("b", 2, 0)}, 4050,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.request.weigh(tc.clusters); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
