package estimate

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// sets returns how many sets of components fit into a cluster beside what is
// reserved there. Resource models can only lower the number: what fits into a sum
// need not fit into nodes (spec: behaviour/04 4.8 "Multi-component").
func (g General) sets(c *clusterv1alpha1.Cluster, r Request, held *Reserved) int64 {
	s := c.Status.ResourceSummary
	each, pods := r.unit()
	if pods == 0 {
		return math.MaxInt32 // it asks for nothing
	}
	room := held.leaves(podsOf(s), podsName) / pods
	for name, amount := range each {
		room = min(room, held.leaves(free(s, name), name)/amount)
	}
	if room > 0 && g.Models && len(s.AllocatableModelings) > 0 && len(c.Spec.ResourceModels) > 0 {
		return newSimulation(nodesBeside(c, held), r.Components).run(room)
	}
	return room
}

func requestOf(c workv1alpha2.Component) corev1.ResourceList {
	if c.ReplicaRequirements == nil {
		return nil
	}
	return c.ReplicaRequirements.ResourceRequest
}

// A simulation puts set after set on nodes: each component in turn, each of its
// replicas on the first node that has room for it (spec: behaviour/04 4.17).
//
// What a node has no room for it never has room for again, as nothing is taken
// away. So each component goes over the nodes once, whatever the number of sets.
type simulation struct {
	unopened []nodesAlike // nodes that no component has come to yet
	opened   []node       // the others, in order
	parts    []part
	sum      node // of wanted
}

// A node is what it has left: of the resources that are asked for, and of places
// for pods.
type node []int64

type nodesAlike struct {
	count int64
	left  node
}

// A part is what one component asks for.
type part struct {
	replicas int64
	each     node // for one replica
	at       int  // the first node that may have room for one more
}

func newSimulation(all nodes, components []workv1alpha2.Component) *simulation {
	asked := map[corev1.ResourceName]bool{}
	for _, c := range components {
		for name := range amountsOf(requestOf(c)) {
			asked[name] = true
		}
	}
	resources := slices.Sorted(maps.Keys(asked))
	line := func(a amounts, pods int64) node {
		n := make(node, 0, len(resources)+1)
		for _, name := range resources {
			n = append(n, a[name])
		}
		return append(n, pods)
	}
	s := &simulation{sum: make(node, len(resources)+1)}
	for _, class := range all {
		s.unopened = append(s.unopened, nodesAlike{count: class.count, left: line(class.left, class.pods)})
	}
	for _, c := range components {
		if c.Replicas > 0 {
			s.parts = append(s.parts, part{replicas: int64(c.Replicas), each: line(amountsOf(requestOf(c)), 1)})
		}
	}
	return s
}

// run returns how many whole sets find a place, most at most.
func (s *simulation) run(most int64) int64 {
	n := int64(0)
	for n < most {
		if many := s.putMany(most - n); many > 0 {
			n += many
			continue
		}
		if !s.putOne() {
			break
		}
		n++
	}
	return n
}

// putMany puts as many sets as fit as a whole on the nodes that the components are
// at, and returns their number. It is what putOne would do that often.
func (s *simulation) putMany(most int64) int64 {
	for i := range s.parts {
		if s.find(&s.parts[i]) == nil {
			return 0
		}
	}
	for i := range s.parts {
		if s.isFirstThere(i) {
			most = min(most, s.opened[s.parts[i].at].fits(s.wanted(i)))
		}
	}
	for i := range s.parts {
		if most > 0 && s.isFirstThere(i) {
			s.opened[s.parts[i].at].take(s.wanted(i), most)
		}
	}
	return most
}

// isFirstThere reports whether no component before is at the same node.
func (s *simulation) isFirstThere(i int) bool {
	for j := range i {
		if s.parts[j].at == s.parts[i].at {
			return false
		}
	}
	return true
}

// wanted returns what one set asks for of the node that a component is at. It is
// good until the next call.
func (s *simulation) wanted(i int) node {
	clear(s.sum)
	for j := i; j < len(s.parts); j++ {
		p := &s.parts[j]
		if p.at != s.parts[i].at {
			continue
		}
		for r, amount := range p.each {
			s.sum[r] = min(mostReserved, s.sum[r]+times(amount, p.replicas))
		}
	}
	return s.sum
}

// putOne puts one set on nodes, and reports whether it could. What it has put when
// it could not stays.
func (s *simulation) putOne() bool {
	for i := range s.parts {
		p := &s.parts[i]
		for left := p.replicas; left > 0; {
			at := s.find(p)
			if at == nil {
				return false
			}
			n := min(left, at.fits(p.each))
			at.take(p.each, n)
			left -= n
		}
	}
	return true
}

// find returns the first node that has room for one replica; nil when there is
// none.
func (s *simulation) find(p *part) node {
	for {
		if p.at == len(s.opened) && !s.open() {
			return nil
		}
		if n := s.opened[p.at]; n.fits(p.each) > 0 {
			return n
		}
		p.at++
	}
}

func (s *simulation) open() bool {
	if len(s.unopened) == 0 {
		return false
	}
	next := &s.unopened[0]
	s.opened = append(s.opened, slices.Clone(next.left))
	if next.count--; next.count == 0 {
		s.unopened = s.unopened[1:]
	}
	return true
}

// fits returns how often a node has each.
func (n node) fits(each node) int64 {
	most := int64(math.MaxInt64)
	for i, amount := range each {
		if amount > 0 {
			most = min(most, n[i]/amount)
		}
	}
	return most
}

func (n node) take(each node, times int64) {
	for i, amount := range each {
		n[i] -= amount * times
	}
}
