package assign

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// spec: behaviour/04 4.10, behaviour/14 14.9
func TestTargetsWhole(t *testing.T) {
	two := []workv1alpha2.Component{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 1}}
	cases := map[string]struct {
		reason     string
		components []workv1alpha2.Component
		tell       bool
		want       workv1alpha2.TargetCluster
	}{
		"Row14_9": {"14.9: the target tells what it gets, and no number of replicas.", two, true, workv1alpha2.TargetCluster{
			Name: "m1", Components: []workv1alpha2.TargetComponent{{Name: "jobmanager", Replicas: 1}, {Name: "taskmanager", Replicas: 1}},
		}},
		"Untold": {"Unless several clusters get it, or the gate is off.", two, false, workv1alpha2.TargetCluster{Name: "m1"}},
		"One":    {"A single component goes somewhere as well; there is nothing to tell apart.", two[:1], true, workv1alpha2.TargetCluster{Name: "m1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Targets(Request{
				Spec:     &workv1alpha2.ResourceBindingSpec{Components: tc.components, Placement: &policyv1alpha1.Placement{ReplicaScheduling: aggregated}},
				Selected: []candidate.Cluster{one("m1", 0, 0)}, Components: tc.tell,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]workv1alpha2.TargetCluster{tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
