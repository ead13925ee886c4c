package spread

import (
	"fmt"
	"slices"
	"testing"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

func BenchmarkSelect(b *testing.B) {
	const cluster, region = policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion
	type constraints = []policyv1alpha1.SpreadConstraint
	for _, n := range []int{10, 100, 1000, 5000} {
		for name, spread := range map[string]constraints{
			// Nearly every cluster that was selected first has to be exchanged.
			"cluster": {by(cluster, 1, n/2)},
			// One region for every ten clusters, of different sizes.
			"region": {by(cluster, 10, n/2), by(region, min(5, n/10), 10)},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				all, total := make([]candidate.Cluster, 0, n), int64(0)
				for i := range n {
					c := one(fmt.Sprintf("m%05d@%d", i, i*i%max(1, n/10)), int64(i), int64(100*((n-i)*2/(n+1))))
					all = append(all, c)
					if i >= n/2 {
						total += c.Available()
					}
				}
				slices.SortFunc(all, candidate.Compare)
				spec := &workv1alpha2.ResourceBindingSpec{
					Replicas: int32(total), Placement: &policyv1alpha1.Placement{SpreadConstraints: spread, ReplicaScheduling: divided},
				}
				for b.Loop() {
					if _, err := Select(spec, all); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
