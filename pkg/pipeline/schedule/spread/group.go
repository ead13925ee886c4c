package spread

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// A group are the candidates of one region, or with one value of a label.
type group struct {
	name     string
	clusters []candidate.Cluster
	// value is how many clusters it has, weight how much it is wanted.
	value, weight int64
	// held says that the binding is in a cluster of it.
	held bool
}

// selectByGroup chooses groups, takes the first cluster of each, even when that
// is more than there may be clusters, and fills up with the best of the others.
// Whether the replicas fit is not asked.
func (r request) selectByGroup(all []candidate.Cluster) ([]candidate.Cluster, error) {
	groups := r.group(all)
	if len(groups) < r.groups.least {
		return nil, fmt.Errorf("the number of feasible %s is less than spreadConstraint.MinGroups", r.kind)
	}
	chosen := choose(groups, r.groups, int64(r.clusters.least))
	if len(chosen) == 0 {
		return nil, errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	}
	var first, rest []candidate.Cluster
	for _, g := range chosen {
		first = append(first, g.clusters[0])
		rest = append(rest, g.clusters[1:]...)
	}
	slices.SortFunc(rest, candidate.Compare)
	more := r.clusters.limit(len(first)+len(rest)) - len(first)
	return append(first, rest[:max(0, more)]...), nil
}

// group groups candidates, in order. Those in no group are left out.
func (r request) group(all []candidate.Cluster) []group {
	at := map[string]int{}
	var groups []group
	for i := range all {
		name := r.groupOf(&all[i])
		if name == "" {
			continue
		}
		n, ok := at[name]
		if !ok {
			n = len(groups)
			at[name] = n
			groups = append(groups, group{name: name})
		}
		groups[n].clusters = append(groups[n].clusters, all[i])
		groups[n].value++
		groups[n].held = groups[n].held || all[i].Held
	}
	for i := range groups {
		groups[i].weight = r.weigh(groups[i].clusters)
	}
	return groups
}

// roomWeight makes room count for more than any score.
const roomWeight = 1000

// weigh says how much a group is wanted: by how many of its clusters hold all
// replicas, or by how much of its share it holds, and then by their scores.
func (r request) weigh(clusters []candidate.Cluster) int64 {
	var score, valid int64
	if r.duplicated {
		for i := range clusters {
			if clusters[i].Available() >= r.replicas {
				score += clusters[i].Score
				valid++
			}
		}
		if valid == 0 {
			return 0
		}
		return valid*roomWeight + score/valid
	}

	groups := int64(max(r.groups.least, 1))
	target := (r.replicas + groups - 1) / groups
	least := int64(max(r.clusters.least, r.groups.least))
	var holds int64
	for i := range clusters {
		if valid >= least && holds >= target {
			break
		}
		valid++
		holds += clusters[i].Available()
		score += clusters[i].Score
	}
	if holds < target {
		return holds*roomWeight + score/int64(len(clusters))
	}
	return target*roomWeight + score/max(valid, 1)
}

// compareGroups puts small groups first: large ones are added only where they
// are needed.
func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
}
