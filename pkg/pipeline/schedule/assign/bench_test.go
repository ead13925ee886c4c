package assign

import (
	"fmt"
	"testing"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

func BenchmarkTargets(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 5000} {
		all, weights := make([]candidate.Cluster, 0, n), []policyv1alpha1.StaticClusterWeight{}
		for i := range n {
			c := one(fmt.Sprintf("m%05d", i), int64(1+i*7919%1000), int64(i%3))
			all = append(all, c)
			weights = append(weights, weight(int64(1+i%7), c.Name))
		}
		for name, strategy := range map[string]*policyv1alpha1.ReplicaSchedulingStrategy{
			"duplicated": duplicated, "static": static(weights...), "dynamic": dynamic, "aggregated": aggregated,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				r := Request{Selected: all, Spec: &workv1alpha2.ResourceBindingSpec{
					Replicas: int32(20 * n), Placement: &policyv1alpha1.Placement{ReplicaScheduling: strategy},
				}}
				for b.Loop() {
					if _, err := Targets(r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
