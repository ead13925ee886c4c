package affinity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

func targets(clusters string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for _, name := range strings.Fields(clusters) {
		all = append(all, workv1alpha2.TargetCluster{Name: name})
	}
	return all
}

// bound returns a binding in the default namespace, of generation 1. Groups are
// "with" and "apart from", each may be "".
func bound(name, with, from, clusters string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1}}
	if with != "" || from != "" {
		b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: with, AntiAffinityGroup: from}
	}
	b.Spec.Clusters = targets(clusters)
	return b
}

// later returns the binding in other clusters, after a change of its spec.
func later(b *workv1alpha2.ResourceBinding, clusters string) *workv1alpha2.ResourceBinding {
	b = b.DeepCopy()
	b.Generation++
	b.Spec.Clusters = targets(clusters)
	return b
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// passes returns the clusters that a binding may go to, of four.
func passes(x *Index, b binding.Object) string {
	v := x.View(b)
	var all []string
	for _, c := range []string{"m1", "m2", "m3", "m4"} {
		if v.Together(c) == "" && v.Apart(c) == "" {
			all = append(all, c)
		}
	}
	return strings.Join(all, " ")
}

// observing returns an Index that has seen bindings.
func observing(all ...*workv1alpha2.ResourceBinding) *Index {
	x := New()
	for _, b := range all {
		x.Observe(b)
	}
	return x
}

// TestView has the rules of the two plugins (spec: behaviour/04 4.6).
func TestView(t *testing.T) {
	elsewhere := bound("b", "", "x", "m1")
	elsewhere.Namespace = "other"
	cases := map[string]struct {
		reason string
		others []*workv1alpha2.ResourceBinding
		self   *workv1alpha2.ResourceBinding
		want   string
	}{
		"NoGroup":        {"What is in no group may go anywhere.", []*workv1alpha2.ResourceBinding{bound("b", "x", "x", "m1")}, bound("a", "", "", ""), "m1 m2 m3 m4"},
		"First":          {"So may the first of a group.", nil, bound("a", "x", "x", ""), "m1 m2 m3 m4"},
		"Together":       {"Every other must be there as well.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", "m1 m2"), bound("c", "x", "", "m2 m3")}, bound("a", "x", "", ""), "m2"},
		"TogetherNoneIs": {"One that is nowhere yet asks for nothing.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", ""), bound("c", "x", "", "m3")}, bound("a", "x", "", ""), "m3"},
		"TogetherSplit":  {"Others that are nowhere together leave no place.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", "m1"), bound("c", "x", "", "m2")}, bound("a", "x", "", ""), ""},
		"Apart":          {"No other may be there.", []*workv1alpha2.ResourceBinding{bound("b", "", "x", "m1 m2"), bound("c", "", "x", "m2 m3")}, bound("a", "", "x", ""), "m4"},
		"Itself":         {"A binding does not stand in its own way.", []*workv1alpha2.ResourceBinding{bound("a", "x", "y", "m1"), bound("b", "x", "", "m2")}, bound("a", "x", "y", "m1"), "m2"},
		"ItselfBefore":   {"Nor does it where it was when it was in another group.", []*workv1alpha2.ResourceBinding{bound("a", "", "y", "m1"), bound("b", "", "x", "m1")}, bound("a", "", "x", "m1"), "m2 m3 m4"},
		"Both":           {"Both rules hold at once.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", "m1 m2"), bound("c", "", "y", "m2")}, bound("a", "x", "y", ""), "m1"},
		"KindsDiffer":    {"A group to be with is not one to be apart from, though it has the name.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", "m1")}, bound("a", "", "x", ""), "m1 m2 m3 m4"},
		"OtherNamespace": {"A group is of one namespace.", []*workv1alpha2.ResourceBinding{elsewhere}, bound("a", "", "x", ""), "m1 m2 m3 m4"},
		"NamedTwice":     {"A cluster that is named twice counts once.", []*workv1alpha2.ResourceBinding{bound("b", "x", "", "m1 m1"), bound("c", "x", "", "m2")}, bound("a", "x", "", ""), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := passes(observing(tc.others...), tc.self); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	v := observing(bound("b", "x", "y", "m1")).View(bound("a", "x", "y", ""))
	if got, want := v.Together("m2"), "ResourceBinding with the same affinity group does not target this cluster"; got != want {
		t.Errorf("got %q, want %q: scripts match it", got, want)
	}
	if got, want := v.Apart("m1"), "cluster already has workload with the same anti-affinity group"; got != want {
		t.Errorf("got %q, want %q: scripts match it", got, want)
	}
}

func TestViewStays(t *testing.T) {
	x, a := observing(bound("b", "", "x", "m1")), bound("a", "", "x", "")
	before := x.View(a)
	x.Observe(later(bound("b", "", "x", "m1"), "m2"))
	if before.Apart("m1") == "" || before.Apart("m2") != "" {
		t.Error("a view has changed with the index: a decision must be made on one state of things")
	}
}

func TestClusterScoped(t *testing.T) {
	b := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "x"}
	x := New()
	x.Decide(b, targets("m1"))
	b.Spec.Clusters = targets("m1")
	x.Observe(b)
	if len(x.bindings) > 0 || x.View(b).Apart("m1") != "" {
		t.Error("a ClusterResourceBinding is in a group: groups are of a namespace")
	}
}

func TestNil(t *testing.T) {
	var x *Index
	b := bound("a", "", "x", "m1")
	x.Decide(b, targets("m2"))
	if x.Observe(b) != nil || x.Withdraw(b) != nil || x.Forget(key("a"), "") != nil || passes(x, bound("b", "", "x", "")) != "m1 m2 m3 m4" {
		t.Error("a feature that is off has an effect")
	}
}

// TestDecide follows two bindings, a and b, that must stay apart. What a does is
// told in steps; want is where b may go then.
func TestDecide(t *testing.T) {
	a := bound("a", "", "x", "")
	again := a.DeepCopy()
	again.UID = "again"
	type step = func(*Index)
	observe := func(b *workv1alpha2.ResourceBinding) step { return func(x *Index) { x.Observe(b) } }
	decide := func(b *workv1alpha2.ResourceBinding, clusters string) step {
		return func(x *Index) { x.Decide(b, targets(clusters)) }
	}
	withdraw := func(b *workv1alpha2.ResourceBinding) step { return func(x *Index) { x.Withdraw(b) } }
	forget := func(uid types.UID) step { return func(x *Index) { x.Forget(key("a"), uid) } }
	cases := map[string]struct {
		reason string
		steps  []step
		want   string
	}{
		"Decided":         {"What has been decided counts before the cache has it.", []step{observe(a), decide(a, "m1")}, "m2 m3 m4"},
		"StatusChanged":   {"A change that is not of the spec is not that of the clusters.", []step{observe(a), decide(a, "m1"), observe(a)}, "m2 m3 m4"},
		"Written":         {"Then what is there counts.", []step{observe(a), decide(a, "m1"), observe(later(a, "m1"))}, "m2 m3 m4"},
		"Moves":           {"Where it is and where it goes are both taken until it has moved: it may be refused.", []step{observe(later(a, "m1")), decide(later(a, "m1"), "m2")}, "m3 m4"},
		"Moved":           {"Then it has left.", []step{observe(later(a, "m1")), decide(later(a, "m1"), "m2"), observe(later(later(a, "m1"), "m2"))}, "m1 m3 m4"},
		"OtherChange":     {"What others have written instead counts: the decision was not.", []step{observe(a), decide(a, "m1"), observe(later(a, ""))}, "m1 m2 m3 m4"},
		"Refused":         {"A decision that is not written does not count.", []step{observe(a), decide(a, "m1"), withdraw(a)}, "m1 m2 m3 m4"},
		"RefusedThere":    {"Then it is where it was.", []step{observe(later(a, "m2")), decide(later(a, "m2"), "m1"), withdraw(later(a, "m2"))}, "m1 m3 m4"},
		"DecidedAgain":    {"The last decision counts.", []step{observe(a), decide(a, "m1"), decide(a, "m2")}, "m1 m3 m4"},
		"Outdated":        {"A decision about what was there before cannot be written.", []step{observe(later(a, "")), decide(a, "m1")}, "m1 m2 m3 m4"},
		"Gone":            {"A binding that is gone is nowhere, whatever was decided.", []step{observe(a), decide(a, "m1"), forget("a")}, "m1 m2 m3 m4"},
		"GoneUnseen":      {"One that is gone before the decision neither, once that is known.", []step{observe(a), forget("a"), decide(a, "m1"), forget("")}, "m1 m2 m3 m4"},
		"GoneRefused":     {"The same when the write says so.", []step{observe(a), forget("a"), decide(a, "m1"), withdraw(a)}, "m1 m2 m3 m4"},
		"GoneUnchanged":   {"A decision that changes nothing does not bring it back.", []step{observe(a), forget("a"), decide(later(a, "m1"), "m1")}, "m1 m2 m3 m4"},
		"Unseen":          {"The cache may be ahead of what was observed.", []step{decide(a, "m1"), observe(a)}, "m2 m3 m4"},
		"Successor":       {"The end of a binding is not that of the next of its name.", []step{observe(a), decide(again, "m1"), forget("a"), observe(again)}, "m2 m3 m4"},
		"SuccessorSeen":   {"What was decided for another of the name does not count.", []step{observe(a), decide(a, "m1"), observe(again)}, "m1 m2 m3 m4"},
		"OtherWithdrawn":  {"Nor is it the other's to take back.", []step{observe(again), decide(again, "m1"), withdraw(a)}, "m2 m3 m4"},
		"LeftTheGroup":    {"A binding that is in the group no more does not count.", []step{observe(a), decide(a, "m1"), observe(later(bound("a", "", "", ""), "m1"))}, "m1 m2 m3 m4"},
		"OutsideTheGroup": {"Nor does one that is in none.", []step{observe(bound("a", "", "", "")), decide(bound("a", "", "", ""), "m1")}, "m1 m2 m3 m4"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := New()
			for _, do := range tc.steps {
				do(x)
			}
			if got := passes(x, bound("b", "", "x", "")); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestReleased says who is to be scheduled again.
func TestReleased(t *testing.T) {
	waiting := func(group ...string) []*workv1alpha2.ResourceBinding {
		w, v := bound("w", "", "", ""), bound("v", "", "", "")
		for _, b := range []*workv1alpha2.ResourceBinding{w, v} {
			b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: group[0], AntiAffinityGroup: group[1]}
		}
		return []*workv1alpha2.ResourceBinding{w, v}
	}
	both := []types.NamespacedName{key("v"), key("w")}
	cases := map[string]struct {
		reason string
		before *workv1alpha2.ResourceBinding
		groups []string
		do     func(*Index, *workv1alpha2.ResourceBinding) []types.NamespacedName
		want   []types.NamespacedName
	}{
		"ApartLeaves": {
			"A cluster that is left may be used.", bound("a", "", "x", "m1 m2"), []string{"", "x"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m2"))
			}, both,
		},
		"ApartEnters": {
			"Nothing is gained by one that is taken.", bound("a", "", "x", "m1"), []string{"", "x"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m1 m2"))
			}, nil,
		},
		"ApartGone": {
			"One that is gone is in no cluster.", bound("a", "", "x", "m1"), []string{"", "x"},
			func(x *Index, _ *workv1alpha2.ResourceBinding) []types.NamespacedName { return x.Forget(key("a"), "a") }, both,
		},
		"ApartRefused": {
			"Nor is one that was refused.", bound("a", "", "x", ""), []string{"", "x"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				x.Decide(b, targets("m1"))
				return x.Withdraw(b)
			}, both,
		},
		"ApartLeavesGroup": {
			"One that is in the group no more is in nobody's way.", bound("a", "", "x", "m1"), []string{"", "x"},
			func(x *Index, _ *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(bound("a", "", "", ""), "m1"))
			}, both,
		},
		"OtherGroup": {
			"That is nothing to other groups.", bound("a", "", "y", "m1"), []string{"", "x"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName { return x.Observe(later(b, "")) }, nil,
		},
		"TogetherEnters": {
			"A cluster more that will do.", bound("a", "x", "", "m1"), []string{"x", ""},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m1 m2"))
			}, both,
		},
		"TogetherFirst": {
			"The first one that is somewhere only narrows the choice.", bound("a", "x", "", ""), []string{"x", ""},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m1"))
			}, nil,
		},
		"TogetherLeaves": {
			"A cluster less does nobody good.", bound("a", "x", "", "m1 m2"), []string{"x", ""},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m1"))
			}, nil,
		},
		"TogetherGone": {
			"One that is nowhere asks for nothing.", bound("a", "x", "", "m1"), []string{"x", ""},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName { return x.Observe(later(b, "")) }, both,
		},
		"Same": {
			"A change of something else is nothing.", bound("a", "x", "x", "m1"), []string{"x", "x"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName {
				return x.Observe(later(b, "m1"))
			}, nil,
		},
		"Itself": {
			"One that has been placed nowhere is not told of its own end.", bound("a", "", "x", "m1"), []string{"", "y"},
			func(x *Index, b *workv1alpha2.ResourceBinding) []types.NamespacedName { return x.Observe(later(b, "")) }, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := observing(append(waiting(tc.groups...), tc.before, bound("placed", tc.groups[0], tc.groups[1], "m4"))...)
			if d := cmp.Diff(tc.want, tc.do(x, tc.before)); d != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, d)
			}
		})
	}
}

// TestBackToBack schedules workloads that must stay apart one right after the
// other, while the cache shows none of it.
func TestBackToBack(t *testing.T) {
	x, all := New(), []*workv1alpha2.ResourceBinding{}
	for i := range 5 {
		b := bound(fmt.Sprintf("b%d", i), "", "x", "")
		all = append(all, b)
		x.Observe(b)
	}
	var got []string
	for _, b := range all {
		free := strings.Fields(passes(x, b))
		if len(free) == 0 {
			got = append(got, "none")
			continue
		}
		x.Decide(b, targets(free[0]))
		got = append(got, free[0])
	}
	if d := cmp.Diff([]string{"m1", "m2", "m3", "m4", "none"}, got); d != "" {
		t.Errorf("Two of the group are in one cluster, or one found no place.\n-want +got\n%s", d)
	}
}

// TestCounts holds what is counted against what a look at all bindings says,
// through random changes, and that nothing is left of what is gone.
func TestCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	somewhere := func() string { return pick("", "m1", "m2", "m1 m2", "m3", "m2 m3 m4", "m4 m4") }
	x, truth, cached := New(), map[string]*workv1alpha2.ResourceBinding{}, map[string]*workv1alpha2.ResourceBinding{}
	for range 20000 {
		name := fmt.Sprintf("b%d", random.IntN(8))
		b := cached[name]
		switch n := random.IntN(10); {
		case b == nil:
			b = bound(name, pick("", "g", "h"), pick("", "g", "h"), somewhere())
			b.UID = types.UID(fmt.Sprint(random.Uint64()))
			cached[name], truth[name] = b, b
			x.Observe(b)
		case n == 0:
			delete(cached, name)
			delete(truth, name)
			x.Forget(key(name), b.UID)
		case n < 4:
			next := later(b, somewhere())
			if n == 1 {
				next.Spec.WorkloadAffinityGroups = bound("", pick("", "g"), pick("", "h"), "").Spec.WorkloadAffinityGroups
			}
			cached[name], truth[name] = next, next
			x.Observe(next)
		case n < 5:
			x.Observe(b)
		case n < 6:
			x.Withdraw(b)
			truth[name] = b
		default:
			where := somewhere()
			x.Decide(b, targets(where))
			decided := b.DeepCopy()
			decided.Spec.Clusters = targets(where)
			truth[name] = decided
		}
		for name, b := range cached {
			if got, want := passes(x, b), looked(truth, cached, name, b); got != want {
				t.Fatalf("%s may go to %q, want %q", name, got, want)
			}
		}
	}
	for name, b := range cached {
		x.Forget(key(name), b.UID)
	}
	if len(x.bindings)+len(x.groups) > 0 {
		t.Errorf("%d bindings and %d groups are left of nothing", len(x.bindings), len(x.groups))
	}
}

// looked is passes by looking at all bindings, as they are to be and as the cache
// has them, and the rules as they are written.
func looked(all, cached map[string]*workv1alpha2.ResourceBinding, self string, b *workv1alpha2.ResourceBinding) string {
	groups := func(b *workv1alpha2.ResourceBinding) workv1alpha2.WorkloadAffinityGroups {
		if b.Spec.WorkloadAffinityGroups == nil {
			return workv1alpha2.WorkloadAffinityGroups{}
		}
		return *b.Spec.WorkloadAffinityGroups
	}
	var passing []string
	for _, c := range []string{"m1", "m2", "m3", "m4"} {
		ok := true
		for name, other := range all {
			if name == self {
				continue
			}
			is := func(t workv1alpha2.TargetCluster) bool { return t.Name == c }
			there := slices.ContainsFunc(other.Spec.Clusters, is)
			if g := groups(b).AffinityGroup; g != "" && g == groups(other).AffinityGroup && len(other.Spec.Clusters) > 0 && !there {
				ok = false
			}
			if g := groups(b).AntiAffinityGroup; g != "" && g == groups(other).AntiAffinityGroup && (there || slices.ContainsFunc(cached[name].Spec.Clusters, is)) {
				ok = false
			}
		}
		if ok {
			passing = append(passing, c)
		}
	}
	return strings.Join(passing, " ")
}

// BenchmarkObserve measures an event, by how many there are of a group.
func BenchmarkObserve(b *testing.B) {
	for _, count := range []int{10, 1000, 100000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			x := New()
			for i := range count {
				x.Observe(bound(fmt.Sprintf("b%d", i), "x", "x", fmt.Sprintf("m%d", i%100)))
			}
			one := bound("b0", "x", "x", "m0")
			two := later(one, "m1")
			for b.Loop() {
				x.Observe(one)
				x.Observe(two)
			}
		})
	}
}

// BenchmarkView measures a decision, by how many clusters a group is in.
func BenchmarkView(b *testing.B) {
	for _, count := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			x := New()
			for i := range count {
				x.Observe(bound(fmt.Sprintf("b%d", i), "", "x", fmt.Sprintf("m%d", i)))
			}
			self := bound("self", "", "x", "")
			for b.Loop() {
				if x.View(self).Apart("m1") == "" {
					b.Fatal("the cluster is free")
				}
			}
		})
	}
}
