// Package assign gives each selected cluster its share of a workload's replicas
// (spec: behaviour/04 4.10).
package assign

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/clusterset"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/division"
	"github.com/karmadactl/karmadactl/pkg/util/webster"
)

// A Request is what there is to share, and among whom.
type Request struct {
	// Spec is the binding's; its Placement is set.
	Spec *workv1alpha2.ResourceBindingSpec
	// Selected are the clusters.
	Selected []candidate.Cluster
	// Fresh forgets how replicas are assigned now.
	Fresh bool
	// Overflow fills the tiers of clusters one after the other.
	Overflow bool
	// KeepEmpty keeps clusters that get no replica.
	KeepEmpty bool
	// Components says of each cluster which components it gets.
	Components bool
}

// An UnschedulableError says that the clusters have no room.
type UnschedulableError struct{ Message string }

func (e *UnschedulableError) Error() string { return e.Message }

// Targets returns the shares, sorted by cluster. Clusters without a replica are
// not in it, unless that was asked for, or what is scheduled has none anyway.
func Targets(r Request) ([]workv1alpha2.TargetCluster, error) {
	if len(r.Selected) == 0 {
		return nil, errors.New("no clusters available to schedule")
	}
	if !binding.IsWorkload(r.Spec) || division.IsWhole(r.Spec) {
		return r.named(), nil
	}
	shares, err := r.shares()
	if err != nil {
		return nil, err
	}
	targets := make([]workv1alpha2.TargetCluster, 0, len(r.Selected))
	for _, c := range r.Selected {
		if n := shares[c.Name]; n > 0 || r.KeepEmpty {
			targets = append(targets, workv1alpha2.TargetCluster{Name: c.Name, Replicas: int32(n)})
		}
	}
	return sorted(targets), nil
}

// named are targets of something that has no replicas, or is not divided.
func (r Request) named() []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, 0, len(r.Selected))
	for _, c := range r.Selected {
		targets = append(targets, workv1alpha2.TargetCluster{Name: c.Name, Components: r.components()})
	}
	return sorted(targets)
}

// components are what each cluster gets; nil when it is not to be told.
func (r Request) components() []workv1alpha2.TargetComponent {
	if !r.Components || len(r.Spec.Components) < 2 {
		return nil
	}
	all := make([]workv1alpha2.TargetComponent, 0, len(r.Spec.Components))
	for _, c := range r.Spec.Components {
		all = append(all, workv1alpha2.TargetComponent{Name: c.Name, Replicas: c.Replicas})
	}
	return all
}

func sorted(targets []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	slices.SortFunc(targets, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	return targets
}

// shares are replicas by cluster.
type shares = map[string]int64

func (r Request) shares() (shares, error) {
	replicas := int64(r.Spec.Replicas)
	switch strategy := division.Of(r.Spec.Placement); strategy {
	case division.Duplicated:
		all := shares{}
		for _, c := range r.Selected {
			all[c.Name] = replicas
		}
		return all, nil
	case division.StaticWeight:
		weights, err := staticWeights(r.Spec.Placement.ReplicaScheduling.WeightPreference, r.Selected)
		if err != nil {
			return nil, err
		}
		return webster.Divide(replicas, weights, r.Spec.Resource.UID), nil
	case division.DynamicWeight, division.Aggregated:
		one := byRoom{aggregate: strategy == division.Aggregated, fresh: r.Fresh, uid: r.Spec.Resource.UID}
		if r.Overflow {
			return one.divideTiers(replicas, r.Selected)
		}
		return one.divide(replicas, r.Selected)
	default:
		s := r.Spec.Placement.ReplicaScheduling
		return nil, fmt.Errorf("unsupported replica scheduling strategy, replicaSchedulingType: %s, replicaDivisionPreference: %q: "+
			"set replicaDivisionPreference to Weighted or Aggregated", s.ReplicaSchedulingType, s.ReplicaDivisionPreference)
	}
}

// staticWeights returns the weights that the user gave; of several for one
// cluster the largest. Without any that counts all clusters weigh the same.
func staticWeights(p *policyv1alpha1.ClusterPreferences, clusters []candidate.Cluster) (map[string]int64, error) {
	weights := make(map[string]int64, len(clusters))
	if p != nil {
		at := make(map[string]int, len(clusters))
		for i := range clusters {
			at[clusters[i].Name] = i
		}
		for i := range p.StaticWeightList {
			if err := weigh(weights, &p.StaticWeightList[i], clusters, at); err != nil {
				return nil, fmt.Errorf("staticWeightList[%d]: %w", i, err)
			}
		}
	}
	if len(weights) == 0 {
		for i := range clusters {
			weights[clusters[i].Name] = 1
		}
	}
	return weights, nil
}

// weigh applies one rule. One that names clusters, as most do, looks at no others;
// at tells where a cluster is.
func weigh(weights map[string]int64, rule *policyv1alpha1.StaticClusterWeight, clusters []candidate.Cluster, at map[string]int) error {
	set, err := clusterset.Of(&rule.TargetCluster)
	if err != nil || rule.Weight <= 0 {
		return err
	}
	apply := func(c *candidate.Cluster) {
		if set.Has(c.Cluster) {
			weights[c.Name] = max(weights[c.Name], rule.Weight)
		}
	}
	if named := set.Names(); len(named) > 0 {
		for _, name := range named {
			if i, ok := at[name]; ok {
				apply(&clusters[i])
			}
		}
		return nil
	}
	for i := range clusters {
		apply(&clusters[i])
	}
	return nil
}

// byRoom divides replicas by the room that clusters have.
type byRoom struct {
	aggregate bool
	fresh     bool
	uid       types.UID
}

// A seat is the room of one cluster.
type seat struct {
	name string
	room int64
	held bool // it has replicas now
}

// divide keeps replicas where they are, and adds or removes the difference; with
// fresh it begins anew.
func (b byRoom) divide(replicas int64, clusters []candidate.Cluster) (shares, error) {
	now, assigned := shares{}, int64(0)
	for _, c := range clusters {
		if c.Assigned > 0 {
			now[c.Name] = c.Assigned
			assigned += c.Assigned
		}
	}
	switch {
	case b.fresh:
		added, err := b.fill(replicas, clusters, candidate.Cluster.Available)
		if err != nil {
			return nil, fmt.Errorf("failed to do fresh scale: %w", err)
		}
		return added, nil
	case assigned > replicas:
		left, err := b.fill(replicas, clusters, func(c candidate.Cluster) int64 { return c.Assigned })
		if err != nil {
			return nil, fmt.Errorf("failed to scale down: %w", err)
		}
		return left, nil
	case assigned < replicas:
		added, err := b.fill(replicas-assigned, clusters, func(c candidate.Cluster) int64 { return c.Allocatable })
		if err != nil {
			return nil, fmt.Errorf("failed to scale up: %w", err)
		}
		for name, n := range added {
			now[name] += n
		}
		return now, nil
	default:
		return now, nil
	}
}

// fill divides replicas by room; with aggregate, among as few clusters as have
// it, those first that have replicas already.
func (b byRoom) fill(replicas int64, clusters []candidate.Cluster, room func(candidate.Cluster) int64) (shares, error) {
	seats, total := make([]seat, 0, len(clusters)), int64(0)
	for _, c := range clusters {
		seats = append(seats, seat{name: c.Name, room: max(0, room(c)), held: c.Assigned > 0})
		total += max(0, room(c))
	}
	if total < replicas {
		return nil, &UnschedulableError{fmt.Sprintf("Clusters available replicas %d are not enough to schedule.", total)}
	}
	slices.SortFunc(seats, func(a, c seat) int {
		return cmp.Or(cmp.Compare(c.room, a.room), strings.Compare(a.name, c.name))
	})
	if b.aggregate {
		seats = b.fewest(replicas, seats)
	}
	votes := map[string]int64{}
	for _, s := range seats {
		votes[s.name] = s.room
	}
	return webster.Divide(replicas, votes, b.uid), nil
}

func (b byRoom) fewest(replicas int64, seats []seat) []seat {
	if !b.fresh {
		slices.SortStableFunc(seats, func(a, c seat) int {
			switch {
			case a.held == c.held:
				return 0
			case a.held:
				return -1
			default:
				return 1
			}
		})
	}
	for i := range seats {
		if replicas <= 0 {
			return seats[:i]
		}
		replicas -= seats[i].room
	}
	return seats
}

// divideTiers gives each tier what it holds, until nothing is left.
func (b byRoom) divideTiers(replicas int64, clusters []candidate.Cluster) (shares, error) {
	tiers := slices.Clone(clusters)
	slices.SortStableFunc(tiers, func(a, c candidate.Cluster) int { return cmp.Compare(a.Tier, c.Tier) })
	all := shares{}
	for len(tiers) > 0 {
		n := 1
		for n < len(tiers) && tiers[n].Tier == tiers[0].Tier {
			n++
		}
		room := int64(0)
		for _, c := range tiers[:n] {
			room += max(0, c.Available())
		}
		part, err := b.divide(min(replicas, room), tiers[:n])
		if err != nil {
			return nil, err
		}
		for name, share := range part {
			all[name] = share
		}
		replicas -= min(replicas, room)
		tiers = tiers[n:]
	}
	if replicas > 0 {
		return nil, &UnschedulableError{"Clusters available replicas are not enough to schedule."}
	}
	return all, nil
}
