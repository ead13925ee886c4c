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

// A path is a combination of regions, the most wanted first.
type path struct {
	groups        []group
	weight, value int64
}

// choose returns the combination of regions, within bounds and with enough
// clusters in it, that is wanted most; of equal ones the one with more clusters,
// then the one found first. A shorter combination that the best one begins with,
// and that is enough by itself, is preferred. Nothing is returned when there is
// none.
func choose(groups []group, regions bounds, leastClusters int64) []group {
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
	})
	paths := feasible(sorted, regions, leastClusters)
	if len(paths) == 0 {
		return nil
	}
	slices.SortStableFunc(paths, func(a, b path) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.value, a.value))
	})
	best := paths[0]
	for _, p := range paths[1:] {
		if p.begins(best) {
			best = p
		}
	}
	return best.groups
}

func (p path) begins(other path) bool {
	if len(p.groups) >= len(other.groups) {
		return false
	}
	for i := range p.groups {
		if p.groups[i].name != other.groups[i].name {
			return false
		}
	}
	return true
}

// feasible returns the combinations that are enough, in the order in which they
// are found. One that is enough is not extended.
func feasible(sorted []group, regions bounds, leastClusters int64) []path {
	if len(sorted) == regions.least {
		return enough(sorted, leastClusters)
	}
	var (
		found []path
		taken []group
		steps int
		walk  func(from int, value int64)
	)
	walk = func(from int, value int64) {
		if steps++; steps > searchLimit {
			return
		}
		if len(taken) > 0 && len(taken) >= regions.least && value >= leastClusters {
			found = append(found, newPath(taken))
			return
		}
		if len(taken) >= regions.most {
			return
		}
		for i := from; i < len(sorted); i++ {
			taken = append(taken, sorted[i])
			walk(i+1, value+sorted[i].value)
			taken = taken[:len(taken)-1]
		}
	}
	walk(0, 0)
	return found
}

func enough(all []group, leastClusters int64) []path {
	p := newPath(all)
	if len(all) == 0 || p.value < leastClusters {
		return nil
	}
	return []path{p}
}

func newPath(groups []group) path {
	p := path{groups: slices.Clone(groups)}
	for _, g := range groups {
		p.weight += g.weight
		p.value += g.value
	}
	slices.SortStableFunc(p.groups, func(a, b group) int { return cmp.Compare(b.weight, a.weight) })
	return p
}
