package estimate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// podsPerNode is how many pods a node of a resource model is taken to hold.
const podsPerNode = 110

// nodes are the nodes that a cluster is taken to have: as many of each class of
// its resource models as its status counts, each with the least that nodes of the
// class have left (spec: behaviour/04 4.17). Nodes that have the same left are
// kept as one, so that it does not matter how many there are.
type nodes []nodeClass

type nodeClass struct {
	count int64
	left  amounts // never changed in place
	pods  int64
}

// nodesOf returns the nodes of a cluster, those of the lowest class first. Classes
// that no model describes are left out.
func nodesOf(c *clusterv1alpha1.Cluster) nodes {
	modelings := slices.Clone(c.Status.ResourceSummary.AllocatableModelings)
	slices.SortStableFunc(modelings, func(a, b clusterv1alpha1.AllocatableModeling) int { return int(a.Grade) - int(b.Grade) })
	var all nodes
	for _, m := range modelings {
		i := slices.IndexFunc(c.Spec.ResourceModels, func(model clusterv1alpha1.ResourceModel) bool { return model.Grade == m.Grade })
		if i < 0 || m.Count <= 0 {
			continue
		}
		left := amounts{}
		for _, r := range c.Spec.ResourceModels[i].Ranges {
			left[r.Name] = amountOf(r.Name, r.Min)
		}
		all = append(all, nodeClass{count: int64(m.Count), left: left, pods: podsPerNode})
	}
	return all
}

// fits returns how many replicas fit on one such node.
func (n nodeClass) fits(each amounts) int64 {
	most := n.pods
	for name, amount := range each {
		most = min(most, n.left[name]/amount)
	}
	return max(0, most)
}

// room returns how many replicas fit on all nodes.
func (ns nodes) room(each amounts) int64 {
	total := int64(0)
	for _, n := range ns {
		total += n.count * n.fits(each)
	}
	return total
}

// place puts replicas on nodes, as many as fit on each before the next, and
// returns what the nodes have left then, and how many replicas found no place.
func (ns nodes) place(each amounts, replicas int64) (after nodes, homeless int64) {
	for i, n := range ns {
		if replicas == 0 {
			return append(after, ns[i:]...), 0
		}
		fits := n.fits(each)
		if fits == 0 {
			after = append(after, n)
			continue
		}
		full := min(n.count, replicas/fits)
		replicas -= full * fits
		after = after.with(n.less(each, fits), full)
		if full == n.count {
			continue
		}
		if replicas > 0 {
			after = after.with(n.less(each, replicas), 1)
			full, replicas = full+1, 0
		}
		after = after.with(n, n.count-full)
	}
	return after, replicas
}

func (ns nodes) with(n nodeClass, count int64) nodes {
	if count == 0 {
		return ns
	}
	n.count = count
	return append(ns, n)
}

func (n nodeClass) less(each amounts, replicas int64) nodeClass {
	left := maps.Clone(n.left)
	for name, amount := range each {
		left[name] -= amount * replicas
	}
	return nodeClass{left: left, pods: n.pods - replicas}
}

// nodesBeside returns the nodes of a cluster once what is reserved has found its
// place there.
func nodesBeside(c *clusterv1alpha1.Cluster, held *Reserved) nodes {
	all := nodesOf(c)
	if held != nil {
		for _, key := range slices.Sorted(maps.Keys(held.alike)) {
			one := held.alike[key]
			all, _ = all.place(one.each, one.replicas)
		}
	}
	return all
}

// inModels counts the replicas that fit on the nodes of a cluster beside what is
// reserved.
func inModels(c *clusterv1alpha1.Cluster, request corev1.ResourceList, held *Reserved) int64 {
	return nodesBeside(c, held).room(amountsOf(request))
}
