package spread

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// A group are the candidates of one region.
type group struct {
	name     string
	clusters []candidate.Cluster
	// value is how many clusters it has, weight how much it is wanted.
	value, weight int64
}

// selectByRegion chooses regions, takes the first cluster of each, even when
// that is more than there may be clusters, and fills up with the best of the
// others. Whether the replicas fit is not asked.
func (r request) selectByRegion(all []candidate.Cluster) ([]candidate.Cluster, error) {
	groups := r.regionsOf(all)
	if len(groups) < r.regions.least {
		return nil, errors.New("the number of feasible region is less than spreadConstraint.MinGroups")
	}
	chosen := choose(groups, r.regions, int64(r.clusters.least))
	if len(chosen) == 0 {
		return nil, errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	}
	var first, rest []candidate.Cluster
	for _, g := range chosen {
		first = append(first, g.clusters[0])
		rest = append(rest, g.clusters[1:]...)
	}
	slices.SortFunc(rest, candidate.Compare)
	more := min(len(first)+len(rest), r.clusters.most) - len(first)
	return append(first, rest[:max(0, more)]...), nil
}

// regionsOf groups candidates, in order, by their region. Those without one are
// in no group.
func (r request) regionsOf(all []candidate.Cluster) []group {
	at := map[string]int{}
	var groups []group
	for _, c := range all {
		region := c.Spec.Region
		if region == "" {
			continue
		}
		i, ok := at[region]
		if !ok {
			i = len(groups)
			at[region] = i
			groups = append(groups, group{name: region})
		}
		groups[i].clusters = append(groups[i].clusters, c)
		groups[i].value++
	}
	for i := range groups {
		groups[i].weight = r.weigh(groups[i].clusters)
	}
	return groups
}

// roomWeight makes room count for more than any score.
const roomWeight = 1000

// weigh says how much a region is wanted: by how many of its clusters hold all
// replicas, or by how much of its share it holds, and then by their scores.
func (r request) weigh(clusters []candidate.Cluster) int64 {
	var score, valid int64
	if r.duplicated {
		for _, c := range clusters {
			if c.Available() >= r.replicas {
				score += c.Score
				valid++
			}
		}
		if valid == 0 {
			return 0
		}
		return valid*roomWeight + score/valid
	}

	regions := int64(max(r.regions.least, 1))
	target := (r.replicas + regions - 1) / regions
	least := int64(max(r.clusters.least, r.regions.least))
	var holds int64
	for _, c := range clusters {
		if valid >= least && holds >= target {
			break
		}
		valid++
		holds += c.Available()
		score += c.Score
	}
	if holds < target {
		return holds*roomWeight + score/int64(len(clusters))
	}
	return target*roomWeight + score/max(valid, 1)
}

// searchLimit bounds how many combinations of regions are looked at. It is far
// beyond what tens of regions make, and keeps hundreds from taking hours.
const searchLimit = 1 << 20

// compareGroups puts small groups first: large ones are added only where they
// are needed.
func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
}

// A search looks for combinations of regions that are enough.
type search struct {
	sorted  []group // by compareGroups
	regions bounds
	// leastClusters is how many clusters a combination must have.
	leastClusters int64
}

// choose returns the combination that is wanted most, its most wanted region
// first; of equal ones the one with more clusters, then the one found first. A
// shorter combination that it begins with, and that was found as well, is
// preferred. Nothing is returned when there is none.
func choose(groups []group, regions bounds, leastClusters int64) []group {
	s := search{slices.Clone(groups), regions, leastClusters}
	slices.SortFunc(s.sorted, compareGroups)
	var best []group
	var bestWeight, bestValue int64
	s.each(func(found []group, weight, value int64) {
		if best == nil || weight > bestWeight || weight == bestWeight && value > bestValue {
			best, bestWeight, bestValue = slices.Clone(found), weight, value
		}
	})
	slices.SortStableFunc(best, func(a, b group) int { return cmp.Compare(b.weight, a.weight) })
	for n := 1; n < len(best); n++ {
		if s.finds(best[:n]) {
			return best[:n]
		}
	}
	return best
}

// each visits the combinations that are enough, with their weight and value. One
// that is enough is not extended. What is visited is valid until visit returns.
func (s search) each(visit func(found []group, weight, value int64)) {
	if len(s.sorted) == s.regions.least {
		var weight, value int64
		for _, g := range s.sorted {
			weight += g.weight
			value += g.value
		}
		if len(s.sorted) > 0 && value >= s.leastClusters {
			visit(s.sorted, weight, value)
		}
		return
	}
	var (
		taken []group
		steps int
		walk  func(from int, weight, value int64)
	)
	walk = func(from int, weight, value int64) {
		if s.enough(len(taken), value) {
			visit(taken, weight, value)
			return
		}
		if len(taken) >= s.regions.most {
			return
		}
		for i := from; i < len(s.sorted); i++ {
			if steps++; steps > searchLimit {
				return
			}
			g := s.sorted[i]
			taken = append(taken, g)
			walk(i+1, weight+g.weight, value+g.value)
			taken = taken[:len(taken)-1]
		}
	}
	walk(0, 0, 0)
}

func (s search) enough(regions int, clusters int64) bool {
	return regions > 0 && regions >= s.regions.least && clusters >= s.leastClusters
}

// finds reports whether each visits a combination: it is enough, and would not be
// without its last region.
func (s search) finds(groups []group) bool {
	if len(s.sorted) == s.regions.least || len(groups) > s.regions.most {
		return false
	}
	value := int64(0)
	for i, g := range slices.SortedFunc(slices.Values(groups), compareGroups) {
		value += g.value
		if s.enough(i+1, value) {
			return i+1 == len(groups)
		}
	}
	return false
}
