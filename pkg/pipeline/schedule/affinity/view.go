package affinity

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/binding"
)

// Names of the plugins (spec: cli/components.md 3, behaviour/04 4.6).
const (
	// Affinity keeps a workload with the others of its group.
	Affinity = "WorkloadAffinity"
	// AntiAffinity keeps a workload apart from the others of its group.
	AntiAffinity = "WorkloadAntiAffinity"
)

// Reasons that the plugins give (spec: behaviour/04 4.6).
const (
	reasonAway  = "ResourceBinding with the same affinity group does not target this cluster"
	reasonTaken = "cluster already has workload with the same anti-affinity group"
)

// A View is where the others are of the groups that one binding is in. It does
// not change. The zero View is that of a binding in no group.
type View struct {
	placed int            // others, somewhere, that it wants to be with
	with   map[string]int // how many of those are in a cluster
	apart  map[string]int // how many are there that it wants to be apart from
}

// View returns what b has to know. It costs what its groups have clusters.
func (x *Index) View(b binding.Object) View {
	var v View
	if x == nil || b.GetNamespace() == "" {
		return v
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	self := x.bindings[client.ObjectKeyFromObject(b)]
	for _, k := range groupsOf(b) {
		g := x.groups[k]
		if g == nil {
			continue
		}
		placed, clusters := g.placed, maps.Clone(g.clusters)
		if own := self.clusters(k.kind); len(own) > 0 && slices.Contains(self.groups, k) {
			placed--
			for _, c := range own {
				clusters[c]--
			}
		}
		switch k.kind {
		case together:
			v.placed, v.with = placed, clusters
		case apart:
			v.apart = clusters
		}
	}
	return v
}

// Together returns why the plugin WorkloadAffinity refuses a cluster that the
// binding is not in, "" when it does not: every other of the group that is
// somewhere must be there as well.
func (v View) Together(cluster string) string {
	if v.with[cluster] < v.placed {
		return reasonAway
	}
	return ""
}

// Apart returns why the plugin WorkloadAntiAffinity refuses a cluster that the
// binding is not in, "" when it does not: no other of the group may be there.
func (v View) Apart(cluster string) string {
	if v.apart[cluster] > 0 {
		return reasonTaken
	}
	return ""
}
