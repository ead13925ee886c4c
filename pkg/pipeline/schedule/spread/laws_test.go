package spread

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// drawClusters returns candidates in order, in some of three regions.
func drawClusters(t *rapid.T) []candidate.Cluster {
	var all []candidate.Cluster
	for i := range rapid.IntRange(0, 12).Draw(t, "clusters") {
		region := rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(t, "region")
		c := one(fmt.Sprintf("m%02d@%s", i, region), rapid.Int64Range(0, 9).Draw(t, "room"), rapid.SampledFrom([]int64{0, 100}).Draw(t, "score"))
		c.Assigned = rapid.Int64Range(0, 3).Draw(t, "assigned")
		all = append(all, c)
	}
	slices.SortFunc(all, candidate.Compare)
	return all
}

func drawBounds(t *rapid.T, field policyv1alpha1.SpreadFieldValue) policyv1alpha1.SpreadConstraint {
	least := rapid.IntRange(1, 5).Draw(t, "least")
	return by(field, least, rapid.SampledFrom([]int{0, least, least + 1, least + 5}).Draw(t, "most"))
}

func drawSpec(t *rapid.T, constraints ...policyv1alpha1.SpreadConstraint) *workv1alpha2.ResourceBindingSpec {
	return &workv1alpha2.ResourceBindingSpec{Replicas: rapid.Int32Range(0, 60).Draw(t, "replicas"), Placement: &policyv1alpha1.Placement{
		SpreadConstraints: constraints, ReplicaScheduling: rapid.SampledFrom([]*policyv1alpha1.ReplicaSchedulingStrategy{divided, duplicated, nil}).Draw(t, "strategy"),
	}}
}

// areCandidates reports that what is chosen are candidates, each at most once.
func areCandidates(t *rapid.T, chosen, all []candidate.Cluster) {
	seen := map[string]bool{}
	for _, c := range chosen {
		if seen[c.Name] || !slices.ContainsFunc(all, func(a candidate.Cluster) bool { return a == c }) {
			t.Fatalf("%s is chosen twice, or out of nothing", c.Name)
		}
		seen[c.Name] = true
	}
}

// The number of clusters is as is asked for, they have room for all replicas, and
// nothing is chosen only if there is no such choice.
func TestClustersAreLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, limits := drawClusters(t), drawBounds(t, policyv1alpha1.SpreadByFieldCluster)
		spec := drawSpec(t, limits)
		chosen, err := Select(spec, all)
		rooms := make([]int64, 0, len(all))
		for _, c := range all {
			rooms = append(rooms, c.Available())
		}
		slices.SortFunc(rooms, func(a, b int64) int { return int(b - a) })
		most := bounds{most: limits.MaxGroups}.limit(len(all))
		roomiest := int64(0)
		for _, r := range rooms[:most] {
			roomiest += r
		}
		shared := spec.Placement.ReplicaScheduling == divided
		possible := len(all) >= limits.MinGroups && (!shared || roomiest >= int64(spec.Replicas))
		if (err == nil) != possible {
			t.Fatalf("got %v, though it is possible: %t", err, possible)
		}
		if err != nil {
			return
		}
		areCandidates(t, chosen, all)
		if len(chosen) != most || shared && room(chosen) < int64(spec.Replicas) {
			t.Fatalf("got %d clusters with room for %d, want %d with room for %d", len(chosen), room(chosen), most, spec.Replicas)
		}
	})
}

// The numbers of regions and of clusters are as is asked for; only that each region
// has one comes before the largest number of clusters.
func TestRegionsAreLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawClusters(t)
		clusters, regions := drawBounds(t, policyv1alpha1.SpreadByFieldCluster), drawBounds(t, policyv1alpha1.SpreadByFieldRegion)
		chosen, err := Select(drawSpec(t, clusters, regions), all)
		in := map[string]int{}
		for _, c := range all {
			if c.Spec.Region != "" {
				in[c.Spec.Region]++
			}
		}
		var sizes []int
		for _, n := range in {
			sizes = append(sizes, n)
		}
		slices.SortFunc(sizes, func(a, b int) int { return b - a })
		largest := 0
		for _, n := range sizes[:(bounds{most: regions.MaxGroups}).limit(len(sizes))] {
			largest += n
		}
		possible := len(in) > 0 && len(in) >= regions.MinGroups && largest >= clusters.MinGroups
		if (err == nil) != possible {
			t.Fatalf("got %v, though it is possible: %t", err, possible)
		}
		if err != nil {
			return
		}
		areCandidates(t, chosen, all)
		used := map[string]bool{}
		for _, c := range chosen {
			used[c.Spec.Region] = true
		}
		if used[""] || len(used) < regions.MinGroups || regions.MaxGroups > 0 && len(used) > regions.MaxGroups {
			t.Fatalf("regions are %v, want %d to %d", used, regions.MinGroups, regions.MaxGroups)
		}
		if len(chosen) < clusters.MinGroups || clusters.MaxGroups > 0 && len(chosen) > max(clusters.MaxGroups, len(used)) {
			t.Fatalf("got %d clusters, want %d to %d", len(chosen), clusters.MinGroups, clusters.MaxGroups)
		}
	})
}
