package assign

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// one returns a cluster with room for more replicas than it has now.
func one(name string, room, now int64) candidate.Cluster {
	return candidate.Cluster{
		Cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, Allocatable: room, Assigned: now,
	}
}

func inTier(tier int, c candidate.Cluster) candidate.Cluster {
	c.Tier = tier
	return c
}

func weight(w int64, clusters ...string) policyv1alpha1.StaticClusterWeight {
	return policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: clusters}, Weight: w}
}

func static(weights ...policyv1alpha1.StaticClusterWeight) *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted",
		WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: weights},
	}
}

var (
	duplicated = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Duplicated"}
	equal      = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted"}
	dynamic    = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted",
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
	aggregated = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}
)

// spec: behaviour/14 14.2 to 14.5, and beyond.
func TestTargets(t *testing.T) {
	type clusters = []candidate.Cluster
	const even, odd = types.UID("a"), types.UID("b")
	two := clusters{one("m2", 0, 0), one("m1", 0, 0)}
	cases := map[string]struct {
		reason   string
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		replicas int32
		uid      types.UID
		clusters clusters
		change   func(*Request)
		want     string
		err      string
		noRoom   bool // the error is of that type
	}{
		"NoClusters": {reason: "There is nobody to share with.", strategy: duplicated, replicas: 1, err: "no clusters available to schedule"},
		"Duplicated": {reason: "Each cluster gets all.", strategy: duplicated, replicas: 3, clusters: two, want: "m1:3 m2:3"},
		"Default":    {reason: "That is also what is done when nothing is said.", replicas: 5, clusters: two, want: "m1:5 m2:5"},
		"NoWorkload": {
			reason: "What has no replicas goes to every cluster.", strategy: duplicated, clusters: two,
			change: func(r *Request) { r.Spec.ReplicaRequirements = nil }, want: "m1:0 m2:0",
		},
		"NoReplicas": {reason: "A workload without replicas goes nowhere.", strategy: duplicated, clusters: two, want: ""},
		"NoReplicasKept": {
			reason: "Unless that is asked for.", strategy: duplicated, clusters: two,
			change: func(r *Request) { r.KeepEmpty = true }, want: "m1:0 m2:0",
		},
		"Components": {
			reason: "Several components are not divided.", strategy: aggregated, clusters: two,
			change: func(r *Request) { r.Spec.Components = []workv1alpha2.Component{{Name: "a"}, {Name: "b"}} }, want: "m1:0 m2:0",
		},
		"Equal":     {reason: "Without weights all weigh the same.", strategy: equal, replicas: 5, uid: even, clusters: two, want: "m1:3 m2:2"},
		"EqualOdd":  {reason: "The template decides who gets what is left over.", strategy: equal, replicas: 5, uid: odd, clusters: two, want: "m1:2 m2:3"},
		"Static":    {reason: "By weights.", strategy: static(weight(1, "m1"), weight(2, "m2")), replicas: 9, clusters: two, want: "m1:3 m2:6"},
		"StaticMax": {reason: "Of several weights the largest counts.", strategy: static(weight(1), weight(3, "m2")), replicas: 9, clusters: two, want: "m1:2 m2:7"},
		"StaticNone": {
			reason: "A cluster without a weight gets nothing.", strategy: static(weight(1, "m1")), replicas: 9, clusters: two, want: "m1:9",
		},
		"StaticNoneKept": {
			reason: "It is kept when that is asked for.", strategy: static(weight(1, "m1")), replicas: 9, clusters: two,
			change: func(r *Request) { r.KeepEmpty = true }, want: "m1:9 m2:0",
		},
		"StaticNobody": {reason: "If none has a weight all weigh the same.", strategy: static(weight(1, "m9")), replicas: 4, clusters: two, want: "m1:2 m2:2"},
		"StaticLittle": {reason: "Who gets no replica is no target.", strategy: static(weight(1000, "m1"), weight(1, "m2")), replicas: 2, clusters: two, want: "m1:2"},
		"StaticForgets": {
			reason: "What was assigned before has no weight.", strategy: equal, replicas: 4, clusters: clusters{one("m1", 0, 3), one("m2", 0, 1)}, want: "m1:2 m2:2",
		},
		"StaticBad": {
			reason: "A rule that cannot be understood is named.",
			strategy: static(policyv1alpha1.StaticClusterWeight{Weight: 1, TargetCluster: policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
			}}}), replicas: 1, clusters: two,
			err: `staticWeightList[0]: labelSelector: "Near" is not a valid label selector operator`,
		},
		"Unknown": {
			reason: "A strategy without a preference is none.", strategy: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided"}, replicas: 1, clusters: two,
			err: `unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: "": set replicaDivisionPreference to Weighted or Aggregated`,
		},

		"DynamicFirst": {
			reason: "Weights are the room.", strategy: dynamic, replicas: 3, uid: even,
			clusters: clusters{one("m1", 10, 0), one("m2", 10, 0), one("m3", 1, 0)}, want: "m1:2 m2:1",
		},
		"DynamicUp": {reason: "What is added is divided.", strategy: dynamic, replicas: 10, clusters: clusters{one("m1", 10, 2), one("m2", 5, 3)}, want: "m1:5 m2:5"},
		"DynamicUpNoRoom": {
			reason: "Nothing is moved when there is too little room.", strategy: dynamic, replicas: 10, clusters: clusters{one("m1", 3, 2), one("m2", 1, 3)},
			err: "failed to scale up: Clusters available replicas 4 are not enough to schedule.", noRoom: true,
		},
		"DynamicSteady": {reason: "Replicas stay, even if the balance is poor.", strategy: dynamic, replicas: 5, clusters: clusters{one("m1", 10, 5), one("m2", 90, 0)}, want: "m1:5"},
		"DynamicFresh": {
			reason: "Who asks for it gets a new balance.", strategy: dynamic, replicas: 10, clusters: clusters{one("m1", 10, 2), one("m2", 5, 3)},
			change: func(r *Request) { r.Fresh = true }, want: "m1:6 m2:4",
		},
		"DynamicFreshNoRoom": {
			reason: "If there is one.", strategy: dynamic, replicas: 30, clusters: clusters{one("m1", 10, 2), one("m2", 5, 3)},
			change: func(r *Request) { r.Fresh = true }, err: "failed to do fresh scale: Clusters available replicas 20 are not enough to schedule.", noRoom: true,
		},
		"DynamicDown": {reason: "All shrink in proportion, whatever room there is.", strategy: dynamic, replicas: 9, clusters: clusters{one("m1", 0, 4), one("m2", 0, 8)}, want: "m1:3 m2:6"},

		"AggregatedFirst": {
			reason: "As few as have the room.", strategy: aggregated, replicas: 12,
			clusters: clusters{one("m1", 6, 0), one("m2", 8, 0), one("m3", 10, 0)}, want: "m2:5 m3:7",
		},
		"AggregatedDown":     {reason: "The largest stay.", strategy: aggregated, replicas: 9, clusters: clusters{one("m1", 0, 4), one("m2", 0, 8)}, want: "m1:3 m2:6"},
		"AggregatedDownMore": {reason: "One is enough.", strategy: aggregated, replicas: 7, clusters: clusters{one("m1", 0, 4), one("m2", 0, 8)}, want: "m2:7"},
		"AggregatedUp":       {reason: "Those that have replicas come first.", strategy: aggregated, replicas: 3, clusters: clusters{one("m1", 1, 2), one("m2", 50, 0)}, want: "m1:3"},
		"AggregatedUpMore":   {reason: "Others help.", strategy: aggregated, replicas: 5, clusters: clusters{one("m1", 1, 2), one("m2", 50, 0)}, want: "m1:2 m2:3"},
		"AggregatedZero":     {reason: "Scaled to nothing.", strategy: aggregated, clusters: clusters{one("m1", 1, 2)}, want: ""},

		"Overflow": {
			reason: "A tier is filled before the next one.", strategy: dynamic, replicas: 10,
			clusters: clusters{inTier(1, one("m2", 8, 0)), inTier(0, one("m1", 6, 0)), inTier(2, one("m3", 50, 0))},
			change:   func(r *Request) { r.Overflow = true }, want: "m1:6 m2:4",
		},
		"OverflowBack": {
			reason: "Room in an earlier tier counts what is there.", strategy: aggregated, replicas: 6,
			clusters: clusters{inTier(0, one("m1", 1, 4)), inTier(1, one("m2", 9, 1))},
			change:   func(r *Request) { r.Overflow = true }, want: "m1:5 m2:1",
		},
		"OverflowNoRoom": {
			reason: "All tiers together may be too small.", strategy: dynamic, replicas: 20, clusters: clusters{inTier(0, one("m1", 6, 0)), inTier(1, one("m2", 8, 0))},
			change: func(r *Request) { r.Overflow = true }, err: "Clusters available replicas are not enough to schedule.", noRoom: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Request{
				Spec: &workv1alpha2.ResourceBindingSpec{
					Resource: workv1alpha2.ObjectReference{UID: tc.uid}, Replicas: tc.replicas, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
					Placement: &policyv1alpha1.Placement{ReplicaScheduling: tc.strategy},
				},
				Selected: tc.clusters,
			}
			if tc.change != nil {
				tc.change(&r)
			}
			targets, err := Targets(r)
			var got []string
			for _, c := range targets {
				got = append(got, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			var noRoom *UnschedulableError
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" || said != tc.err || errors.As(err, &noRoom) != tc.noRoom {
				t.Errorf("%s\nerror %q, want %q; targets (-want +got):\n%s", tc.reason, said, tc.err, diff)
			}
		})
	}
}
