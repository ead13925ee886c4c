package spread

import (
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

func inRack(rack string, c candidate.Cluster) candidate.Cluster {
	c.Labels = map[string]string{"rack": rack}
	return c
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
		"None":           {reason: "Without constraints all are used.", strategy: divided, replicas: 100, all: three, want: []string{"m1", "m2", "m3"}},
		"Weights":        {reason: "Static weights ignore constraints.", constraints: constraints{by(cluster, 1, 1)}, strategy: weighted, all: three, want: []string{"m1", "m2", "m3"}},
		"14.6 first two": {reason: "The first two have room for all.", constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 10, all: three, want: []string{"m1", "m2"}},
		"14.6 locality": {
			reason:      "The cluster that it is in has too little room, so another one takes its place.",
			constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 10,
			all: clusters{one("m3", 1, 100), one("m1", 6, 0), one("m2", 5, 0)}, want: []string{"m2", "m1"},
		},
		"TooLittle": {
			reason: "Two clusters never have that much.", constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 12, all: three,
			err: "no enough resource when selecting 2 clusters",
		},
		"14.6 minGroups": {
			reason: "Fewer than the least are none.", constraints: constraints{by(cluster, 3, 5)}, strategy: divided, replicas: 1, all: three[:2],
			err: "the number of feasible clusters is less than spreadConstraint.MinGroups",
		},
		"Duplicated": {reason: "Room does not matter where all replicas go everywhere.", constraints: constraints{by(cluster, 1, 2)}, strategy: duplicated, replicas: 100, all: three, want: []string{"m1", "m2"}},
		"Default":    {reason: "Without a field it is the cluster.", constraints: constraints{by("", 1, 2)}, replicas: 1, all: three, want: []string{"m1", "m2"}},
		"NoMost": {
			reason: "Without a largest number all are used.", constraints: constraints{by(cluster, 1, 0)}, strategy: divided, replicas: 1, all: three,
			want: []string{"m1", "m2", "m3"},
		},
		"NoMostDuplicated": {
			reason: "Also where each has all replicas.", constraints: constraints{by(cluster, 2, 0)}, strategy: duplicated, replicas: 1, all: three,
			want: []string{"m1", "m2", "m3"},
		},
		"NoMostTooLittle": {
			reason: "All of them may still be too few.", constraints: constraints{by(cluster, 1, 0)}, strategy: divided, replicas: 13, all: three,
			err: "no enough resource when selecting 3 clusters",
		},
		"ExchangeBoth": {
			reason:      "The last one goes first, and the roomiest comes first.",
			constraints: constraints{by(cluster, 1, 2)}, strategy: divided, replicas: 15,
			all: clusters{one("m1", 1, 100), one("m2", 2, 100), one("m3", 7, 0), one("m4", 8, 0)}, want: []string{"m3", "m4"},
		},
		"Zone":    {reason: "Other fields need a cluster constraint beside them.", constraints: constraints{by(policyv1alpha1.SpreadByFieldZone, 1, 1)}, all: three, err: "just support cluster and region spread constraint"},
		"ZoneToo": {reason: "Beside one they only filter.", constraints: constraints{by(policyv1alpha1.SpreadByFieldZone, 1, 1), by(cluster, 1, 1)}, all: three, want: []string{"m1"}},
		"LabelAlone": {
			reason: "Without a number of clusters all those of the chosen groups are used.", constraints: constraints{{SpreadByLabel: "rack", MinGroups: 1, MaxGroups: 1}},
			strategy: duplicated, replicas: 1, all: clusters{inRack("r1", one("m1", 9, 0)), inRack("r2", one("m2", 9, 0)), inRack("r2", one("m3", 9, 0)), one("m4", 9, 0)},
			want: []string{"m2", "m3"},
		},
		"LabelAndCluster": {
			reason: "A cluster of each rack.", constraints: constraints{{SpreadByLabel: "rack", MinGroups: 2, MaxGroups: 2}, by(cluster, 2, 2)},
			strategy: divided, replicas: 4, all: clusters{inRack("r1", one("m1", 9, 0)), inRack("r1", one("m2", 9, 0)), inRack("r2", one("m3", 9, 0))},
			want: []string{"m3", "m1"},
		},
		"LabelTooFew": {
			reason: "The label is named, so that it can be looked for.", constraints: constraints{{SpreadByLabel: "rack", MinGroups: 2}},
			strategy: divided, replicas: 4, all: clusters{inRack("r1", one("m1", 9, 0))},
			err: "the number of feasible values of label rack is less than spreadConstraint.MinGroups",
		},
		"LabelAndRegion": {
			reason: "Which of the two counts more nobody said.", constraints: constraints{{SpreadByLabel: "rack"}, by(region, 1, 1), by(cluster, 1, 1)}, all: three,
			err: "spread constraints by region and by label, or by two labels, cannot be combined: keep one of them",
		},
		"14.7 regions 2..2": {
			reason:      "Two regions are chosen, and each has a cluster, although one cluster is the most.",
			constraints: constraints{by(cluster, 1, 1), by(region, 2, 2)}, strategy: duplicated, replicas: 1, all: regions, want: []string{"m1", "m2"},
		},
		"14.7 regions 1..1": {
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
		"NoMostRegions": {
			reason:      "Without largest numbers a group is added only where it is needed, and brings all its clusters.",
			constraints: constraints{by(cluster, 3, 0), by(region, 1, 0)}, strategy: duplicated, replicas: 1,
			all: clusters{one("a@1", 9, 0), one("b@1", 8, 0), one("c@2", 7, 0), one("d@2", 6, 0), one("e@3", 5, 0)}, want: []string{"a", "c", "b", "d"},
		},
		"NoRoomInRegions": {
			reason:      "Where no cluster holds all replicas the regions are equal.",
			constraints: constraints{by(cluster, 1, 1), by(region, 1, 1)}, strategy: duplicated, replicas: 100, all: regions, want: []string{"m1"},
		},
		"NoClusterLeft": {
			reason:      "Nor does it matter that there is none.",
			constraints: constraints{by(cluster, 0, 1), by(region, 0, 1)}, strategy: duplicated, replicas: 100,
			err: "the number of clusters is less than the cluster spreadConstraint.MinGroups",
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

// spec: behaviour/14 14.8
func TestWeigh(t *testing.T) {
	region := []candidate.Cluster{one("a", 5, 100), one("b", 4, 0), one("c", 1, 0)}
	cases := map[string]struct {
		request  request
		clusters []candidate.Cluster
		want     int64
	}{
		"14.8 Duplicated":             {request{replicas: 3, duplicated: true}, region, 2050},
		"14.8 Duplicated, none holds": {request{replicas: 30, duplicated: true}, region, 0},
		"14.8 Divided": {
			request{replicas: 10, groups: bounds{2, 2}, clusters: bounds{3, 9}},
			[]candidate.Cluster{one("a", 2, 100), one("b", 2, 0), one("c", 2, 0), one("d", 9, 0)}, 5033,
		},
		"14.8 Divided, too little": {
			request{replicas: 10, groups: bounds{2, 2}, clusters: bounds{3, 9}},
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
