package division

import (
	"testing"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason   string
		strategy *policyv1alpha1.ReplicaSchedulingStrategy
		want     Strategy
	}{
		"Nothing":    {"Without a strategy every cluster gets all.", nil, Duplicated},
		"Duplicated": {"A preference has no meaning with it.", &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Duplicated", ReplicaDivisionPreference: "Aggregated"}, Duplicated},
		"Divided":    {"Admission fills in a preference; without one nothing can be done.", &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided"}, Unknown},
		"Default":    {"Divided is what a strategy without a type is.", &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaDivisionPreference: "Weighted"}, StaticWeight},
		"Aggregated": {"By preference.", &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"}, Aggregated},
		"Dynamic": {"A dynamic weight makes static ones count for nothing.", &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted",
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: "AvailableReplicas", StaticWeightList: []policyv1alpha1.StaticClusterWeight{{Weight: 1}}},
		}, DynamicWeight},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Of(&policyv1alpha1.Placement{ReplicaScheduling: tc.strategy}); got != tc.want {
				t.Errorf("got %s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}
