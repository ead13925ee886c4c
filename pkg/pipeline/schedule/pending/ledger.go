package pending

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

const (
	// Life is how long an entry counts that nothing is learnt of
	// (spec: behaviour/15 15.3 "Assumption TTL").
	Life = 5 * time.Minute
	// summaryDelay is how much older than its arrival a summary may be.
	summaryDelay = 2 * time.Second
	// summaryPeriod is within which a cluster that is ready would have told of a
	// change: three times the default --cluster-status-update-frequency.
	summaryPeriod = 30 * time.Second
)

// A Ledger is what is pending in all clusters. A nil *Ledger has nothing, and takes
// note of nothing: that is how the feature is off. It is safe for concurrent use;
// for what a decision is made of, see Decide.
type Ledger struct {
	now func() time.Time

	mu       sync.Mutex
	clusters map[string]*estimate.Reserved
	bindings map[types.NamespacedName]*account
	summed   map[string]time.Time // when the summary of a cluster changed
}

// An account is what is pending of one binding.
type account struct {
	unit    unit
	written map[string]*entry // by cluster
	decided []*decided        // decisions that are on their way
}

// decided is a decision that the cache does not show yet.
type decided struct {
	uid        types.UID
	generation int64 // of the binding that it is about
	unit       unit
	added      map[string]int64
}

// An entry is what is pending of one binding in one cluster.
type entry struct {
	count int64 // replicas, or sets of components
	since time.Time
	// existing is when they were first seen to exist; zero before that.
	existing time.Time
	// fresh says that nothing of the binding was in the cluster before, or that it
	// was seen not to be healthy since: only then health says something of what is
	// pending.
	fresh bool
}

// A unit is what one replica asks for, or one set of components.
type unit []part

type part struct {
	request corev1.ResourceList
	count   int64
}

func (p part) equals(other part) bool {
	return p.count == other.count && equality.Semantic.DeepEqual(p.request, other.request)
}

// New returns an empty Ledger.
func New(now func() time.Time) *Ledger {
	return &Ledger{
		now: now, clusters: map[string]*estimate.Reserved{}, bindings: map[types.NamespacedName]*account{}, summed: map[string]time.Time{},
	}
}

// Decide calls decide with what is pending, by cluster, and notes what it returns:
// the clusters that b is to have, unless ok is false. Nobody else decides
// meanwhile, and what is pending does not change. It must not be kept.
func (l *Ledger) Decide(b binding.Object, decide func(map[string]*estimate.Reserved) (targets []workv1alpha2.TargetCluster, ok bool)) {
	if l == nil {
		decide(nil)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if targets, ok := decide(l.clusters); ok {
		l.place(b, targets)
	}
}

// place notes a decision. It counts until the cache shows a later generation of b,
// or until it is withdrawn or replaced: whoever fails to write it need not know
// whether the write has arrived.
func (l *Ledger) place(b binding.Object, targets []workv1alpha2.TargetCluster) {
	key, generation := client.ObjectKeyFromObject(b), b.GetGeneration()
	l.drop(key, func(d *decided) bool { return d.uid != b.GetUID() || d.generation >= generation })
	spec := b.BindingSpec()
	before, d := counts(spec, spec.Clusters), &decided{uid: b.GetUID(), generation: generation, unit: unitOf(spec), added: map[string]int64{}}
	for cluster, n := range counts(spec, targets) {
		if n > before[cluster] {
			d.added[cluster] = n - before[cluster]
			l.reserve(cluster, d.unit, n-before[cluster])
		}
	}
	if len(d.added) > 0 {
		a := l.account(key)
		a.decided = append(a.decided, d)
	}
}

// Withdraw takes back what was decided of b: it is not written, and will not be. It
// returns the clusters where less is pending than before.
func (l *Ledger) Withdraw(b binding.Object) []string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	held := l.heldBy(key)
	l.drop(key, func(d *decided) bool { return d.uid == b.GetUID() && d.generation == b.GetGeneration() })
	return lessThan(held, l.heldBy(key))
}

// drop forgets decisions that are on their way.
func (l *Ledger) drop(key types.NamespacedName, which func(*decided) bool) {
	a := l.bindings[key]
	if a == nil {
		return
	}
	a.decided = slices.DeleteFunc(a.decided, func(d *decided) bool {
		if !which(d) {
			return false
		}
		for cluster, n := range d.added {
			l.reserve(cluster, d.unit, -n)
		}
		return true
	})
	l.tidy(key)
}

// recall notes all that a binding has been given lately: a scheduler that has just
// begun finds it so, and how much of it was new is not known.
func (l *Ledger) recall(b binding.Object) {
	spec, status, now := b.BindingSpec(), b.BindingStatus(), l.now()
	since := now
	if last := status.LastScheduledTime; last != nil && status.SchedulerObservedGeneration == b.GetGeneration() {
		since = last.Time
	}
	if now.Sub(since) >= Life {
		return
	}
	key := client.ObjectKeyFromObject(b)
	unit := unitOf(spec)
	for cluster, n := range counts(spec, spec.Clusters) {
		if n > 0 {
			e := &entry{since: since, fresh: true}
			l.set(key, unit, cluster, e, n)
			e.look(b, cluster, now)
		}
	}
}

// Observe takes note of a change of a binding, in the order in which the cache
// shows it; before is nil for one that is new, and for every one that is there
// before anything is decided. It returns the clusters where less is pending than
// before.
func (l *Ledger) Observe(before, after binding.Object) []string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(after)
	if before == nil || before.GetUID() != after.GetUID() {
		l.forgetWritten(key)
		l.recall(after)
		l.arrived(key, after)
		return nil
	}
	a := l.bindings[key]
	old, spec := before.BindingSpec(), after.BindingSpec()
	moved := !equality.Semantic.DeepEqual(old.Clusters, spec.Clusters) || (len(spec.Components) > 0) != (len(old.Components) > 0)
	if a == nil && !moved {
		return nil
	}
	held := l.heldBy(key)
	now, unit := l.now(), unitOf(spec)
	was, is := counts(old, old.Clusters), counts(spec, spec.Clusters)
	if moved {
		for cluster := range union(was, is) {
			l.changed(key, unit, cluster, was[cluster], is[cluster], now)
		}
	}
	l.arrived(key, after)
	a = l.bindings[key]
	if a == nil {
		return lessThan(held, nil)
	}
	l.reprice(a, unit)
	for cluster, e := range a.written {
		e.look(after, cluster, now)
	}
	l.tidy(key)
	return lessThan(held, l.heldBy(key))
}

// changed notes that the share of a cluster is another than it was.
func (l *Ledger) changed(key types.NamespacedName, u unit, cluster string, was, is int64, now time.Time) {
	var e *entry
	if a := l.bindings[key]; a != nil {
		e = a.written[cluster]
	}
	count := is - was
	if e != nil {
		count += e.count
	}
	count = min(max(0, count), is)
	switch {
	case e == nil && count == 0:
		return
	case e == nil:
		e = &entry{since: now, fresh: was == 0}
	case is > was:
		e.since, e.existing, e.fresh = now, time.Time{}, e.fresh && e.existing.IsZero()
	}
	l.set(key, u, cluster, e, count)
}

// arrived forgets decisions once the cache has what they were written to.
func (l *Ledger) arrived(key types.NamespacedName, b binding.Object) {
	l.drop(key, func(d *decided) bool { return d.uid != b.GetUID() || d.generation < b.GetGeneration() })
}

// Forget takes note of a binding that is gone. It returns what Observe does.
func (l *Ledger) Forget(b binding.Object) []string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	held := l.heldBy(key)
	l.drop(key, func(*decided) bool { return true })
	l.forgetWritten(key)
	return lessThan(held, nil)
}

func (l *Ledger) forgetWritten(key types.NamespacedName) {
	a := l.bindings[key]
	if a == nil {
		return
	}
	for cluster := range a.written {
		l.end(key, cluster)
	}
}

// ObserveCluster takes note of a change of a Cluster; before is nil for a new one.
func (l *Ledger) ObserveCluster(before, after *clusterv1alpha1.Cluster) {
	if l == nil {
		return
	}
	if before != nil && equality.Semantic.DeepEqual(before.Status.ResourceSummary, after.Status.ResourceSummary) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summed[after.Name] = l.now()
}

// Settle ends what shows in the numbers of clusters by now, and what has had its
// time. cluster returns nil for one that is not there. It returns, sorted, the
// clusters where less is pending than before.
func (l *Ledger) Settle(cluster func(name string) *clusterv1alpha1.Cluster) []string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, less := l.now(), map[string]bool{}
	for key, a := range l.bindings {
		for name, e := range a.written {
			if e.over(cluster(name), l.summed[name], now) {
				less[name] = true
				l.end(key, name)
			}
		}
	}
	for name := range l.summed {
		if cluster(name) == nil {
			delete(l.summed, name)
		}
	}
	return slices.Sorted(maps.Keys(less))
}

// over reports whether an entry counts no more.
func (e *entry) over(c *clusterv1alpha1.Cluster, summed, now time.Time) bool {
	if c == nil {
		return true // and there is no room in it, either
	}
	if !e.existing.IsZero() && !summed.Before(e.existing.Add(summaryDelay)) {
		return true
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return false
	}
	since := func(t time.Time) time.Duration { return now.Sub(latest(t, ready.LastTransitionTime.Time)) }
	return !e.existing.IsZero() && since(e.existing) >= summaryPeriod || since(e.since) >= Life
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// look finds out whether what is pending is there by now.
func (e *entry) look(b binding.Object, cluster string, now time.Time) {
	if !e.existing.IsZero() {
		return
	}
	exists, known := exists(b, cluster)
	switch {
	case !known:
	case !exists:
		e.fresh = true
	case e.fresh:
		e.existing = now
	}
}

// set makes an entry that of a binding in a cluster, and count what it counts.
func (l *Ledger) set(key types.NamespacedName, u unit, cluster string, e *entry, count int64) {
	l.end(key, cluster)
	if count == 0 {
		return
	}
	a := l.account(key)
	l.reprice(a, u)
	e.count = count
	a.written[cluster] = e
	l.reserve(cluster, u, count)
}

// end removes an entry.
func (l *Ledger) end(key types.NamespacedName, cluster string) {
	a := l.bindings[key]
	if a == nil || a.written[cluster] == nil {
		return
	}
	l.reserve(cluster, a.unit, -a.written[cluster].count)
	delete(a.written, cluster)
	l.tidy(key)
}

// reprice makes all entries of a binding count with another unit.
func (l *Ledger) reprice(a *account, u unit) {
	if slices.EqualFunc(a.unit, u, part.equals) {
		return
	}
	for cluster, e := range a.written {
		l.reserve(cluster, a.unit, -e.count)
		l.reserve(cluster, u, e.count)
	}
	a.unit = u
}

// reserve changes what is counted in a cluster.
func (l *Ledger) reserve(cluster string, u unit, count int64) {
	r := l.clusters[cluster]
	if r == nil {
		r = &estimate.Reserved{}
		l.clusters[cluster] = r
	}
	for _, p := range u {
		if count > 0 {
			r.Add(p.request, p.count*count)
		} else {
			r.Remove(p.request, -p.count*count)
		}
	}
	if r.IsEmpty() {
		delete(l.clusters, cluster)
	}
}

func (l *Ledger) account(key types.NamespacedName) *account {
	a := l.bindings[key]
	if a == nil {
		a = &account{written: map[string]*entry{}}
		l.bindings[key] = a
	}
	return a
}

func (l *Ledger) tidy(key types.NamespacedName) {
	if a := l.bindings[key]; a != nil && len(a.written) == 0 && len(a.decided) == 0 {
		delete(l.bindings, key)
	}
}

// heldBy is how much of a binding is pending, by cluster.
func (l *Ledger) heldBy(key types.NamespacedName) map[string]int64 {
	held := map[string]int64{}
	a := l.bindings[key]
	if a == nil {
		return held
	}
	for cluster, e := range a.written {
		held[cluster] += e.count
	}
	for _, d := range a.decided {
		for cluster, n := range d.added {
			held[cluster] += n
		}
	}
	return held
}

func lessThan(before, after map[string]int64) []string {
	var less []string
	for cluster, n := range before {
		if after[cluster] < n {
			less = append(less, cluster)
		}
	}
	slices.Sort(less)
	return less
}

func union(a, b map[string]int64) map[string]int64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
