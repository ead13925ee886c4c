package match

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// An Index has the propagation policies of both scopes. It is safe for
// concurrent use. Policies are kept as they were given, and returned so: nobody
// may change them.
//
// It can be fed as the event handler of informers for the two kinds, by Set and
// Delete, or by both.
type Index struct {
	mu       sync.RWMutex
	policies map[types.NamespacedName]*record
	// lists has the selectors of policies that are not being deleted.
	lists map[key]*list
	// kinds has, for every kind, the policies that select it.
	kinds map[schema.GroupVersionKind]map[*record]struct{}
	// preemptors has, by namespace, the policies that take templates from others.
	preemptors map[string]map[*record]struct{}
}

var _ cache.ResourceEventHandler = (*Index)(nil)

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{
		policies:   map[types.NamespacedName]*record{},
		lists:      map[key]*list{},
		kinds:      map[schema.GroupVersionKind]map[*record]struct{}{},
		preemptors: map[string]map[*record]struct{}{},
	}
}

// A record is a policy, and where the index has it.
type record struct {
	policy   policy.Object
	priority int32
	keys     []key
	kinds    []schema.GroupVersionKind
}

// A key is what a selector asks of a template: all templates that the selector
// matches have the key, but not all that have it match.
type key struct {
	scope            string // the policy's namespace
	namespace        string // the selector's, "" when it means any
	apiVersion, kind string
	level            policy.Level
	label, value     string // at level Name the name is the value; at level Label both may be empty
}

// A list has the selectors with one key, those of the policies that win first.
type list struct {
	entries []entry
}

type entry struct {
	*record
	labels labels.Selector // at level Label
}

// Set adds a policy, or puts it in the place of what the index has of that
// name, unless that is as new.
func (x *Index) Set(p policy.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()

	name := types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
	if now := x.policies[name]; now != nil {
		if !isNewer(p, now.policy) {
			return
		}
		x.remove(name, now)
	}

	spec := p.PropagationSpec()
	r := &record{policy: p, priority: policy.Priority(spec)}
	x.policies[name] = r
	for i := range spec.ResourceSelectors {
		s := &spec.ResourceSelectors[i]
		x.addKind(schema.FromAPIVersionAndKind(s.APIVersion, s.Kind), r)
		if p.GetDeletionTimestamp().IsZero() {
			x.addSelector(s, r)
		}
	}
	if spec.Preemption == policyv1alpha1.PreemptAlways && p.GetDeletionTimestamp().IsZero() {
		put(x.preemptors, name.Namespace, r)
	}
}

// Delete takes a policy out; namespace is empty for a ClusterPropagationPolicy.
func (x *Index) Delete(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := types.NamespacedName{Namespace: namespace, Name: name}
	if r := x.policies[n]; r != nil {
		x.remove(n, r)
	}
}

// isNewer says whether p is not the same policy as now in the same state, or an
// earlier one. What cannot be found out is taken for newer.
func isNewer(p, now policy.Object) bool {
	if p.GetUID() != now.GetUID() {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(p.GetResourceVersion(), now.GetResourceVersion())
	return err != nil || order > 0
}

func (x *Index) addKind(gvk schema.GroupVersionKind, r *record) {
	if put(x.kinds, gvk, r) {
		r.kinds = append(r.kinds, gvk)
	}
}

func (x *Index) addSelector(s *policyv1alpha1.ResourceSelector, r *record) {
	k := key{
		scope: r.policy.GetNamespace(), namespace: s.Namespace,
		apiVersion: s.APIVersion, kind: s.Kind,
	}
	if k.scope != "" {
		// A PropagationPolicy means its own namespace, and can mean no other.
		if k.namespace != "" && k.namespace != k.scope {
			return
		}
		k.namespace = k.scope
	}
	switch {
	case s.Name != "":
		k.level, k.value = policy.Name, s.Name
		x.addEntry(k, entry{record: r})
	case s.LabelSelector == nil:
		k.level = policy.All
		x.addEntry(k, entry{record: r})
	default:
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return // it matches nothing
		}
		k.level = policy.Label
		for _, k := range x.labelKeys(k, s.LabelSelector) {
			x.addEntry(k, entry{record: r, labels: selector})
		}
	}
}

// labelKeys returns the keys for a label selector: those for the values of the
// one label of it that fewest others ask for, so that a label which every
// template has does not put every policy into one list. A template has at most
// one of them. A selector that demands no value has a key of its own.
func (x *Index) labelKeys(k key, s *metav1.LabelSelector) []key {
	var best []key
	fewest := -1
	consider := func(label string, values ...string) {
		var keys []key
		others := 0
		for _, v := range values {
			k.label, k.value = label, v
			keys = append(keys, k)
			if l := x.lists[k]; l != nil {
				others += len(l.entries)
			}
		}
		if fewest < 0 || others < fewest {
			best, fewest = keys, others
		}
	}
	for label, v := range s.MatchLabels {
		consider(label, v)
	}
	for _, e := range s.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn {
			consider(e.Key, slices.Compact(slices.Sorted(slices.Values(e.Values)))...)
		}
	}
	if best == nil {
		return []key{k}
	}
	return best
}

func (x *Index) addEntry(k key, e entry) {
	l := x.lists[k]
	if l == nil {
		l = &list{}
		x.lists[k] = l
	}
	at, _ := slices.BinarySearchFunc(l.entries, e, func(a, b entry) int { return compare(a.record, b.record) })
	l.entries = slices.Insert(l.entries, at, e)
	e.keys = append(e.keys, k)
}

// remove takes out everything of a record.
func (x *Index) remove(name types.NamespacedName, r *record) {
	for _, k := range r.keys {
		l := x.lists[k]
		if l == nil {
			continue // two selectors of the policy had this key
		}
		l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.record == r })
		if len(l.entries) == 0 {
			delete(x.lists, k)
		}
	}
	for _, gvk := range r.kinds {
		drop(x.kinds, gvk, r)
	}
	drop(x.preemptors, name.Namespace, r)
	delete(x.policies, name)
}

// compare orders the policies of one scope: the higher priority first, then the
// lower name (spec: behaviour/03 3.4).
func compare(a, b *record) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.policy.GetName(), b.policy.GetName()))
}

// Best returns the policy that a template is to be claimed by. For one in a
// namespace that is a PropagationPolicy of it if any selects the template, and
// only else, as for one of cluster scope, a ClusterPropagationPolicy. Of several
// the one with the highest priority wins, then the closest, then the one of the
// lowest name. Policies that are being deleted do not count.
func (x *Index) Best(s policy.Subject) (policy.Object, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()

	var c choice
	if s.Namespace != "" {
		x.choose(&c, s.Namespace, s.Namespace, s)
	}
	if c.record == nil {
		x.choose(&c, "", "", s)
		if s.Namespace != "" {
			x.choose(&c, "", s.Namespace, s)
		}
	}
	if c.record == nil {
		return nil, false
	}
	return c.policy, true
}

// A choice is the best policy seen so far.
type choice struct {
	*record
	level policy.Level
}

// losesTo says whether a record, at a level, comes before what was chosen.
func (c *choice) losesTo(r *record, level policy.Level) bool {
	if c.record == nil {
		return true
	}
	return cmp.Or(
		cmp.Compare(r.priority, c.priority),
		cmp.Compare(level, c.level),
		strings.Compare(c.policy.GetName(), r.policy.GetName()),
	) > 0
}

// choose considers the policies of one scope that have selectors for one
// namespace, or for any when that is empty.
func (x *Index) choose(c *choice, scope, namespace string, s policy.Subject) {
	k := key{scope: scope, namespace: namespace, apiVersion: s.APIVersion, kind: s.Kind}

	k.level, k.value = policy.Name, s.Name
	x.first(c, k, s)
	k.level, k.value = policy.All, ""
	x.first(c, k, s)

	k.level = policy.Label
	x.first(c, k, s)
	for label, value := range s.Labels {
		k.label, k.value = label, value
		x.first(c, k, s)
	}
}

// first considers the selectors with one key. They are in order, so the first
// that matches is the best of them.
func (x *Index) first(c *choice, k key, s policy.Subject) {
	l := x.lists[k]
	if l == nil {
		return
	}
	for _, e := range l.entries {
		if !c.losesTo(e.record, k.level) {
			return
		}
		if e.labels == nil || e.labels.Matches(labels.Set(s.Labels)) {
			c.record, c.level = e.record, k.level
			return
		}
	}
}

// Get returns a policy, also one that is being deleted; namespace is empty for
// a ClusterPropagationPolicy.
func (x *Index) Get(namespace, name string) (policy.Object, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.policies[types.NamespacedName{Namespace: namespace, Name: name}]
	if r == nil {
		return nil, false
	}
	return r.policy, true
}

// Kinds returns the kinds that some policy selects, sorted. A policy that is
// being deleted still counts: what it has claimed must be found.
func (x *Index) Kinds() []schema.GroupVersionKind {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]schema.GroupVersionKind, 0, len(x.kinds))
	for gvk := range x.kinds {
		all = append(all, gvk)
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Selecting returns the policies that select objects of a kind, those that are
// being deleted too, sorted by namespace and name.
func (x *Index) Selecting(gvk schema.GroupVersionKind) []policy.Object {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]policy.Object, 0, len(x.kinds[gvk]))
	for r := range x.kinds[gvk] {
		all = append(all, r.policy)
	}
	slices.SortFunc(all, func(a, b policy.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// Preemptors returns the policies of a namespace, or those of cluster scope when
// it is empty, that take templates from others (`preemption: Always`) and whose
// priority is higher than above and lower than below: those that may now take
// what a policy has whose priority fell from below to above. The highest
// priority comes first (spec: behaviour/03 3.9).
func (x *Index) Preemptors(namespace string, above, below int32) []policy.Object {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*record
	for r := range x.preemptors[namespace] {
		if r.priority > above && r.priority < below {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, compare)
	all := make([]policy.Object, 0, len(found))
	for _, r := range found {
		all = append(all, r.policy)
	}
	return all
}

// OnAdd sets a policy that an informer tells of.
func (x *Index) OnAdd(obj any, _ bool) {
	if p, ok := obj.(policy.Object); ok {
		x.Set(p)
	}
}

// OnUpdate sets a policy that an informer tells of.
func (x *Index) OnUpdate(_, obj any) { x.OnAdd(obj, false) }

// OnDelete deletes a policy that an informer tells of.
func (x *Index) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if p, ok := obj.(policy.Object); ok {
		x.Delete(p.GetNamespace(), p.GetName())
	}
}

// put adds a record to one of several sets, and says whether that was new.
func put[K comparable](sets map[K]map[*record]struct{}, k K, r *record) bool {
	set := sets[k]
	if set == nil {
		set = map[*record]struct{}{}
		sets[k] = set
	}
	before := len(set)
	set[r] = struct{}{}
	return len(set) > before
}

// drop takes a record out of one of several sets.
func drop[K comparable](sets map[K]map[*record]struct{}, k K, r *record) {
	delete(sets[k], r)
	if len(sets[k]) == 0 {
		delete(sets, k)
	}
}
