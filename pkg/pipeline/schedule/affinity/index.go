// Package affinity knows where the workloads of each group are that want to be
// together, or apart (spec: behaviour/04 4.6 "Gate WorkloadAffinity").
//
// An Index follows the bindings, one event at a time, and counts what has been
// decided before the cache has it: two bindings that must stay apart and are
// scheduled one right after the other see each other. What one binding has to know
// of its groups is a View, by which the two filter plugins are pure.
package affinity

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// An Index knows in which clusters the bindings of every group are. Only bindings
// of a namespace are in groups. A nil *Index knows of none, and takes note of
// nothing: that is how the feature is off.
//
// It is safe for concurrent use. What is to hold for two decisions, that each
// knows of the other, is for the caller to see to: View and Decide must not be
// interleaved with those of another binding.
type Index struct {
	mu       sync.RWMutex
	bindings map[types.NamespacedName]entry
	groups   map[groupKey]*group
}

// New returns an Index that knows of no binding yet.
func New() *Index {
	return &Index{bindings: map[types.NamespacedName]entry{}, groups: map[groupKey]*group{}}
}

// A kind is what the workloads of a group want.
type kind string

const (
	together kind = "together"
	apart    kind = "apart"
)

// A groupKey identifies a group.
type groupKey struct {
	kind            kind
	namespace, name string
}

// A group counts its bindings, those that are somewhere by cluster.
type group struct {
	placed   int
	clusters map[string]int
	waiting  map[types.NamespacedName]bool // those that are nowhere
}

// An entry is one binding that is in a group, or was when its clusters were
// decided.
type entry struct {
	uid        types.UID
	generation int64 // of what was observed last
	groups     []groupKey
	observed   []string // its clusters, sorted
	// decided are the clusters that it is to have, which the cache does not show
	// yet; they were decided from the generation observed.
	decided []string
	pending bool
	// unseen says that it has been decided about, but not yet observed.
	unseen bool
}

// clusters are those that count for a group, sorted. While a decision is on its
// way others are to be where it goes, and must not be where it may still be.
func (e entry) clusters(k kind) []string {
	switch {
	case !e.pending:
		return e.observed
	case k == together || len(e.observed) == 0:
		return e.decided
	default:
		all := slices.Concat(e.observed, e.decided)
		slices.Sort(all)
		return slices.Compact(all)
	}
}

// Observe takes note of a binding as the cache has it, whoever schedules it. It
// must be called for every one that there is before anything is decided, and then
// for every change, in order. It returns the bindings, sorted, that are nowhere
// and may fit now because of it: they should be scheduled again.
func (x *Index) Observe(b binding.Object) []types.NamespacedName {
	if x == nil || b.GetNamespace() == "" {
		return nil
	}
	key, groups := client.ObjectKeyFromObject(b), groupsOf(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	before, known := x.bindings[key]
	if len(groups) == 0 {
		return x.replace(key, before, entry{})
	}
	after := entry{uid: b.GetUID(), generation: b.GetGeneration(), groups: groups, observed: clustersOf(b.BindingSpec().Clusters)}
	if known && before.uid == after.uid && before.pending && before.generation == after.generation {
		// Something else has changed; what was decided is on its way.
		after.decided, after.pending = before.decided, true
	}
	return x.replace(key, before, after)
}

// Forget takes note of a binding that is gone, whichever had the name when uid is
// "". It returns what Observe does.
func (x *Index) Forget(key types.NamespacedName, uid types.UID) []types.NamespacedName {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.bindings[key]
	if uid != "" && uid != before.uid {
		return nil // its successor is known already
	}
	return x.replace(key, before, entry{})
}

// Decide takes note of the clusters that a binding, as it is in the cache, is to
// have. They count until the cache shows a later generation of it, or one of the
// other methods says otherwise. So it need not be known whether a write that
// failed has arrived: then the binding is scheduled again, or is gone.
func (x *Index) Decide(b binding.Object, targets []workv1alpha2.TargetCluster) {
	if x == nil || b.GetNamespace() == "" {
		return
	}
	key := client.ObjectKeyFromObject(b)
	after := entry{
		uid: b.GetUID(), generation: b.GetGeneration(), groups: groupsOf(b),
		observed: clustersOf(b.BindingSpec().Clusters), decided: clustersOf(targets),
	}
	after.pending = !slices.Equal(after.observed, after.decided)
	x.mu.Lock()
	defer x.mu.Unlock()
	before, known := x.bindings[key]
	same := known && before.uid == after.uid
	switch {
	case len(after.groups) == 0:
		return
	case same && before.generation > after.generation:
		return // it has changed since, and cannot be written
	case !same && !after.pending:
		return // nothing is new but that it is there, which will be observed
	}
	after.unseen = !same || before.unseen
	x.replace(key, before, after)
}

// Withdraw takes back what was decided for a binding: it is not written, and will
// not be. It returns what Observe does.
func (x *Index) Withdraw(b binding.Object) []types.NamespacedName {
	if x == nil {
		return nil
	}
	key := client.ObjectKeyFromObject(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.bindings[key]
	if !before.pending || before.uid != b.GetUID() {
		return nil
	}
	after := before
	after.decided, after.pending = nil, false
	if before.unseen {
		after = entry{}
	}
	return x.replace(key, before, after)
}

// replace makes after the entry of a binding, which before was. An entry without
// groups is none.
func (x *Index) replace(key types.NamespacedName, before, after entry) []types.NamespacedName {
	released := map[types.NamespacedName]bool{}
	for _, k := range before.groups {
		g := x.groups[k]
		g.remove(key, before.clusters(k.kind))
		var now []string
		if slices.Contains(after.groups, k) {
			now = after.clusters(k.kind)
		}
		if k.kind.releases(before.clusters(k.kind), now) {
			maps.Copy(released, g.waiting)
		}
		if g.placed == 0 && len(g.waiting) == 0 {
			delete(x.groups, k)
		}
	}
	if len(after.groups) == 0 {
		delete(x.bindings, key)
	} else {
		x.bindings[key] = after
	}
	for _, k := range after.groups {
		g := x.groups[k]
		if g == nil {
			g = &group{clusters: map[string]int{}, waiting: map[types.NamespacedName]bool{}}
			x.groups[k] = g
		}
		g.add(key, after.clusters(k.kind))
	}
	delete(released, key)
	return slices.SortedFunc(maps.Keys(released), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// releases reports whether others of the group may fit somewhere once one of them
// has moved, where they did not before.
func (k kind) releases(before, after []string) bool {
	without := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(c string) bool { _, found := slices.BinarySearch(b, c); return !found })
	}
	if k == apart {
		return without(before, after) // it has left a cluster
	}
	// It asks for no cluster any more, or for one more that will do.
	return len(before) > 0 && (len(after) == 0 || without(after, before))
}

func (g *group) add(key types.NamespacedName, clusters []string) {
	if len(clusters) == 0 {
		g.waiting[key] = true
		return
	}
	g.placed++
	for _, c := range clusters {
		g.clusters[c]++
	}
}

func (g *group) remove(key types.NamespacedName, clusters []string) {
	if len(clusters) == 0 {
		delete(g.waiting, key)
		return
	}
	g.placed--
	for _, c := range clusters {
		if g.clusters[c]--; g.clusters[c] == 0 {
			delete(g.clusters, c)
		}
	}
}

// groupsOf returns the groups that a binding is in.
func groupsOf(b binding.Object) []groupKey {
	w := b.BindingSpec().WorkloadAffinityGroups
	if w == nil {
		return nil
	}
	var all []groupKey
	if w.AffinityGroup != "" {
		all = append(all, groupKey{together, b.GetNamespace(), w.AffinityGroup})
	}
	if w.AntiAffinityGroup != "" {
		all = append(all, groupKey{apart, b.GetNamespace(), w.AntiAffinityGroup})
	}
	return all
}

// clustersOf returns names, sorted, each once.
func clustersOf(targets []workv1alpha2.TargetCluster) []string {
	all := make([]string, 0, len(targets))
	for _, t := range targets {
		all = append(all, t.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
