package spread

import (
	"cmp"
	"slices"
	"strings"
)

// choose returns the combination of groups that is wanted most, its most wanted
// group first; of equal ones the one with more clusters, then the one whose
// groups come first. Nothing is returned when there is none.
//
// A combination has as many groups and clusters as are asked for, and would have
// too few without its last group by compareGroups: large groups are added only
// where they are needed. If one begins, by weight, with another, that is
// preferred (spec: behaviour/04 4.9 "By region"), unless the binding would leave a
// group for it: it makes a group wanted more to be in it, which must not be why
// others are given up.
func choose(groups []group, limits bounds, leastClusters int64) []group {
	s := search{sorted: slices.Clone(groups), limits: limits, leastClusters: leastClusters}
	slices.SortFunc(s.sorted, compareGroups)
	best := s.best()
	slices.SortStableFunc(best, func(a, b group) int { return cmp.Compare(b.weight, a.weight) })
	for n := 1; n < len(best); n++ {
		if s.isCombination(best[:n]) && !slices.ContainsFunc(best[n:], func(g group) bool { return g.held }) {
			return best[:n]
		}
	}
	return best
}

// A search looks for combinations of groups.
type search struct {
	sorted []group // by compareGroups
	limits bounds
	// leastClusters is how many clusters a combination must have.
	leastClusters int64
}

func (s search) enough(groups int, clusters int64) bool {
	return groups > 0 && groups >= s.limits.least && clusters >= s.leastClusters
}

// takesAll reports whether there is no choice: all groups are needed.
func (s search) takesAll() bool { return len(s.sorted) == s.limits.least }

// isCombination reports whether groups are enough, and would not be without the
// last one.
func (s search) isCombination(groups []group) bool {
	if s.takesAll() || len(groups) > s.limits.limit(len(groups)) {
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

// mostStates bounds the table that best makes: some milliseconds of work. It is
// far beyond what a fleet of thousands of clusters in hundreds of regions needs.
const mostStates = 1 << 22

// best returns the combination with the most weight, of those the one with the
// most clusters, of those the one that is first in the order of groups.
//
// It goes through the groups from the last to the first, and notes for every
// number of groups and clusters that may have been taken before whether to take
// this one, too. Numbers that are no different from each other are one: more
// clusters than are needed, and more groups where there is no limit to them.
func (s search) best() []group {
	n := len(s.sorted)
	if n == 0 || s.takesAll() {
		return s.all()
	}
	t := table{search: s, groups: max(s.limits.least, 1), clusters: max(s.leastClusters, 0)}
	if most := s.limits.limit(n); most < n {
		t.groups, t.limited = most, true
		if most < s.limits.least {
			return nil
		}
	}
	if t.clusters > s.total() {
		return nil
	}
	if t.width()*int64(n) > mostStates {
		return s.largest()
	}
	return t.solve()
}

func (s search) total() int64 {
	total := int64(0)
	for _, g := range s.sorted {
		total += g.value
	}
	return total
}

func (s search) all() []group {
	if s.enough(len(s.sorted), s.total()) {
		return slices.Clone(s.sorted)
	}
	return nil
}

// largest takes the largest groups until they are enough: if any combination is,
// they are. It is used where finding the best one would take too long.
func (s search) largest() []group {
	sorted := slices.SortedFunc(slices.Values(s.sorted), func(a, b group) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
	})
	value := int64(0)
	for i := range sorted[:s.limits.limit(len(sorted))] {
		value += sorted[i].value
		if s.enough(i+1, value) {
			return sorted[:i+1]
		}
	}
	return nil
}

// A table finds the best combination. A state is how many groups and clusters
// have been taken: not enough yet.
type table struct {
	search
	groups   int   // the largest number of groups of a state
	limited  bool  // it is also the largest number that may be taken
	clusters int64 // the largest number of clusters of a state
}

// A gain is what the groups from some point on can add; none is -1 in weight.
type gain struct{ weight, value int64 }

func (t table) width() int64 { return int64(t.groups+1) * (t.clusters + 1) }

func (t table) at(groups int, clusters int64) int64 { return int64(groups)*(t.clusters+1) + clusters }

// after returns the state once a group was taken.
func (t table) after(groups int, clusters int64, g *group) (int, int64) {
	return min(groups+1, t.groups), min(clusters+g.value, t.clusters)
}

func (t table) solve() []group {
	width := t.width()
	taken := make([]bool, width*int64(len(t.sorted)))
	next, gains := make([]gain, width), make([]gain, width)
	for i := range next {
		next[i] = gain{weight: -1}
	}
	for i := len(t.sorted) - 1; i >= 0; i-- {
		g, takes := &t.sorted[i], taken[int64(i)*width:]
		for groups := 0; groups <= t.groups; groups++ {
			for clusters := int64(0); clusters <= t.clusters; clusters++ {
				here := t.at(groups, clusters)
				gains[here] = next[here]
				if with := t.take(groups, clusters, g, next); with.weight >= 0 && !with.less(next[here]) {
					gains[here], takes[here] = with, true
				}
			}
		}
		next, gains = gains, next
	}
	if next[0].weight < 0 {
		return nil
	}
	return t.walk(taken)
}

// take returns the gain of taking a group in a state.
func (t table) take(groups int, clusters int64, g *group, next []gain) gain {
	if t.limited && groups == t.groups {
		return gain{weight: -1}
	}
	groups, clusters = t.after(groups, clusters, g)
	if t.enough(groups, clusters) {
		return gain{g.weight, g.value}
	}
	rest := next[t.at(groups, clusters)]
	if rest.weight < 0 {
		return rest
	}
	return gain{rest.weight + g.weight, rest.value + g.value}
}

func (g gain) less(other gain) bool {
	return cmp.Or(cmp.Compare(g.weight, other.weight), cmp.Compare(g.value, other.value)) < 0
}

// walk returns the groups that are taken.
func (t table) walk(taken []bool) []group {
	var found []group
	groups, clusters := 0, int64(0)
	for i := range t.sorted {
		if !taken[int64(i)*t.width()+t.at(groups, clusters)] {
			continue
		}
		found = append(found, t.sorted[i])
		groups, clusters = t.after(groups, clusters, &t.sorted[i])
		if t.enough(groups, clusters) {
			break
		}
	}
	return found
}
