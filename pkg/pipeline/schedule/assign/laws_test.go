package assign

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// drawRequest returns a request with clusters that have some replicas, and room
// for some more.
func drawRequest(t *rapid.T, strategies ...*policyv1alpha1.ReplicaSchedulingStrategy) Request {
	var clusters []candidate.Cluster
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		now := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 20)).Draw(t, "assigned")
		clusters = append(clusters, one(fmt.Sprintf("m%d", i), rapid.Int64Range(0, 30).Draw(t, "room"), now))
	}
	return Request{
		Spec: &workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{UID: rapid.SampledFrom([]types.UID{"", "a", "b"}).Draw(t, "uid")},
			Replicas: rapid.Int32Range(0, 120).Draw(t, "replicas"), ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Placement: &policyv1alpha1.Placement{ReplicaScheduling: rapid.SampledFrom(strategies).Draw(t, "strategy")},
		},
		Selected: clusters, Fresh: rapid.Bool().Draw(t, "fresh"),
	}
}

// drawTargets is drawRequest, with what comes out; without room there is no more
// to say.
func drawTargets(t *rapid.T, r Request) map[string]int64 {
	before := slices.Clone(r.Selected)
	targets, err := Targets(r)
	if diff := cmp.Diff(before, r.Selected); diff != "" {
		t.Fatalf("the selected clusters are not to be changed (-before +after):\n%s", diff)
	}
	if noRoom := (*UnschedulableError)(nil); errors.As(err, &noRoom) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]int64{}
	for i, c := range targets {
		if i > 0 && targets[i-1].Name >= c.Name {
			t.Fatalf("%v is not sorted by name, each once", targets)
		}
		shares[c.Name] = int64(c.Replicas)
	}
	return shares
}

func sum(shares map[string]int64) (total int64) {
	for _, n := range shares {
		total += n
	}
	return total
}

// after returns the request once its result is in the clusters: what was added has
// taken room, what was taken away has given it back.
func after(r Request, shares map[string]int64) Request {
	r.Selected = slices.Clone(r.Selected)
	for i := range r.Selected {
		c := &r.Selected[i]
		c.Allocatable += c.Assigned - shares[c.Name]
		c.Assigned = shares[c.Name]
	}
	return r
}

// Dividing gives out all replicas, no more, and none to a cluster without room.
func TestSumsAndBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, dynamic, aggregated)
		shares := drawTargets(t, r)
		if got := sum(shares); got != int64(r.Spec.Replicas) {
			t.Fatalf("%d replicas became %v", r.Spec.Replicas, shares)
		}
		for _, c := range r.Selected {
			if shares[c.Name] > c.Available() {
				t.Fatalf("%s holds %d and got %d", c.Name, c.Available(), shares[c.Name])
			}
		}
	})
}

// Without being asked to begin anew nothing is moved: a workload that grows loses
// nowhere, one that shrinks wins nowhere, and one that stays stays.
func TestNothingMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, dynamic, aggregated)
		r.Fresh = false
		shares, assigned := drawTargets(t, r), int64(0)
		for _, c := range r.Selected {
			assigned += c.Assigned
		}
		for _, c := range r.Selected {
			if assigned <= int64(r.Spec.Replicas) && shares[c.Name] < c.Assigned || assigned >= int64(r.Spec.Replicas) && shares[c.Name] > c.Assigned {
				t.Fatalf("%d assigned of %d: %s goes from %d to %d", assigned, r.Spec.Replicas, c.Name, c.Assigned, shares[c.Name])
			}
		}
	})
}

// What has been decided is decided again, also from the beginning.
func TestStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, dynamic, aggregated, equal, duplicated, static(weight(2, "m0"), weight(1, "m1", "m2")))
		r.Overflow = rapid.Bool().Draw(t, "overflow")
		for i := range r.Selected {
			r.Selected[i].Tier = rapid.IntRange(0, 2).Draw(t, "tier")
		}
		shares := drawTargets(t, r)
		again := after(r, shares)
		if diff := cmp.Diff(shares, drawTargets(t, again)); diff != "" {
			t.Fatalf("once more (-before +after):\n%s", diff)
		}
	})
}

// A replica more takes none from any cluster.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := static()
		for i := range 8 {
			rule := weight(rapid.Int64Range(0, 9).Draw(t, "weight"), fmt.Sprintf("m%d", i))
			weights.WeightPreference.StaticWeightList = append(weights.WeightPreference.StaticWeightList, rule)
		}
		r := drawRequest(t, weights, equal)
		few := drawTargets(t, r)
		r.Spec.Replicas++
		many := drawTargets(t, r)
		if sum(many) != sum(few)+1 {
			t.Fatalf("%d replicas became %v", r.Spec.Replicas, many)
		}
		for name, n := range few {
			if many[name] < n {
				t.Fatalf("%s loses: %v, then %v", name, few, many)
			}
		}
	})
}

// Aggregated uses no more clusters than it takes, beginning with the roomiest.
func TestAggregatedIsFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, aggregated)
		r.Fresh = true
		shares := drawTargets(t, r)
		var rooms []int64
		for _, c := range r.Selected {
			rooms = append(rooms, c.Available())
		}
		slices.SortFunc(rooms, func(a, b int64) int { return int(b - a) })
		left, need := int64(r.Spec.Replicas), 0
		for ; left > 0; need++ {
			left -= rooms[need]
		}
		if len(shares) > need {
			t.Fatalf("%d clusters are enough, and %v are used", need, shares)
		}
	})
}

// No replica flows over while there is room before it.
func TestOverflowIsLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, dynamic, aggregated)
		r.Overflow = true
		for i := range r.Selected {
			r.Selected[i].Tier = rapid.IntRange(0, 3).Draw(t, "tier")
		}
		shares := drawTargets(t, r)
		if sum(shares) != int64(r.Spec.Replicas) {
			t.Fatalf("%d replicas became %v", r.Spec.Replicas, shares)
		}
		for _, late := range r.Selected {
			if shares[late.Name] == 0 {
				continue
			}
			for _, early := range r.Selected {
				if early.Tier < late.Tier && shares[early.Name] < early.Available() {
					t.Fatalf("%s of tier %d has room, and %s of tier %d got %d: %v", early.Name, early.Tier, late.Name, late.Tier, shares[late.Name], shares)
				}
			}
		}
	})
}

// Each cluster gets all replicas where they are duplicated.
func TestDuplicatedIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, duplicated, nil)
		shares := drawTargets(t, r)
		for _, c := range r.Selected {
			if shares[c.Name] != int64(r.Spec.Replicas) {
				t.Fatalf("%d replicas became %v", r.Spec.Replicas, shares)
			}
		}
	})
}
