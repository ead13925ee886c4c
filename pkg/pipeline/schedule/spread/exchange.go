package spread

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
)

// exchange replaces clusters of chosen, the last one first, by the roomiest of
// rest, until the replicas fit. A cluster that had to go may come back for one
// with still less room. Both slices are changed.
func exchange(chosen, rest []candidate.Cluster, replicas int64) error {
	total := room(chosen)
	if total >= replicas {
		return nil
	}
	spare := &spares{clusters: rest, order: make([]int, len(rest))}
	for i := range rest {
		spare.order[i] = i
	}
	heap.Init(spare)
	for i := len(chosen) - 1; i >= 0 && total < replicas && len(rest) > 0; i-- {
		best := &rest[spare.order[0]]
		if best.Available() <= chosen[i].Available() {
			continue
		}
		total += best.Available() - chosen[i].Available()
		chosen[i], *best = *best, chosen[i]
		heap.Fix(spare, 0)
	}
	if total < replicas {
		return fmt.Errorf("no enough resource when selecting %d clusters", len(chosen))
	}
	return nil
}

func room(clusters []candidate.Cluster) int64 {
	total := int64(0)
	for i := range clusters {
		total += clusters[i].Available()
	}
	return total
}

// spares is a heap of positions in clusters, that of the roomiest first.
type spares struct {
	clusters []candidate.Cluster
	order    []int
}

func (s *spares) Len() int      { return len(s.order) }
func (s *spares) Swap(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] }
func (s *spares) Push(any)      {} // nothing is added
func (s *spares) Pop() any      { return nil }

func (s *spares) Less(i, j int) bool {
	a, b := s.order[i], s.order[j]
	return cmp.Or(cmp.Compare(s.clusters[b].Available(), s.clusters[a].Available()), cmp.Compare(a, b)) < 0
}
