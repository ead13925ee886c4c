package match

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// pol returns a policy of priority 0 with a selector for each of some shapes; a
// namespace makes it a PropagationPolicy.
func pol(namespace, name string, selectors ...policyv1alpha1.ResourceSelector) policy.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}
	spec := policyv1alpha1.PropagationSpec{ResourceSelectors: selectors}
	if namespace != "" {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: spec}
	}
	return &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta, Spec: spec}
}

func withPriority(p policy.Object, priority int32) policy.Object {
	p.PropagationSpec().Priority = &priority
	return p
}

func preempting(p policy.Object) policy.Object {
	p.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways
	return p
}

func deleted(p policy.Object) policy.Object {
	now := metav1.NewTime(time.Unix(1, 0))
	p.SetDeletionTimestamp(&now)
	return p
}

func withVersion(p policy.Object, version string) policy.Object {
	p.SetResourceVersion(version)
	return p
}

func deployments() policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
}

func named(name string) policyv1alpha1.ResourceSelector {
	s := deployments()
	s.Name = name
	return s
}

func labelled(label, value string) policyv1alpha1.ResourceSelector {
	s := deployments()
	s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	return s
}

func expressed(label string, op metav1.LabelSelectorOperator, values ...string) policyv1alpha1.ResourceSelector {
	s := deployments()
	s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: op, Values: values}}}
	return s
}

func in(namespace string, s policyv1alpha1.ResourceSelector) policyv1alpha1.ResourceSelector {
	s.Namespace = namespace
	return s
}

func web() policy.Subject {
	return policy.Subject{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Labels: map[string]string{"app": "web", "env": "prod"},
	}
}

func TestBest(t *testing.T) {
	tests := map[string]struct {
		reason   string
		policies []policy.Object
		subject  policy.Subject
		want     string // namespace/name, "" for none
	}{
		"Nothing": {reason: "Without policies nothing is claimed.", subject: web()},
		"HigherPriority": {
			reason:   "An explicit priority counts more than a close match (spec: 14.14).",
			policies: []policy.Object{pol("shop", "pp-a", named("web")), withPriority(pol("shop", "pp-b", labelled("app", "web")), 1)},
			subject:  web(), want: "shop/pp-b",
		},
		"NegativePriority": {
			reason:   "A priority may be less than the default.",
			policies: []policy.Object{withPriority(pol("shop", "pp-a", named("web")), -1), pol("shop", "pp-b", deployments())},
			subject:  web(), want: "shop/pp-b",
		},
		"NameBeatsLabels": {
			reason:   "Of equal priorities the name is closest (spec: 14.14).",
			policies: []policy.Object{pol("shop", "pp-a", labelled("app", "web")), pol("shop", "pp-b", named("web"))},
			subject:  web(), want: "shop/pp-b",
		},
		"LabelsBeatKind": {
			reason:   "Of equal priorities labels are closer than the kind alone (spec: 14.14).",
			policies: []policy.Object{pol("shop", "pp-a", deployments()), pol("shop", "pp-b", labelled("app", "web"))},
			subject:  web(), want: "shop/pp-b",
		},
		"LowerName": {
			reason:   "Of equals the one that sorts first (spec: 14.14).",
			policies: []policy.Object{pol("shop", "pp-b", named("web")), pol("shop", "pp-a", named("web"))},
			subject:  web(), want: "shop/pp-a",
		},
		"LowerNameAcrossLists": {
			reason:   "The order of names also counts between selectors by different labels.",
			policies: []policy.Object{pol("shop", "pp-b", labelled("app", "web")), pol("shop", "pp-a", labelled("env", "prod"))},
			subject:  web(), want: "shop/pp-a",
		},
		"NamespacedFirst": {
			reason:   "A PropagationPolicy wins whatever the priorities (spec: 14.14).",
			policies: []policy.Object{withPriority(pol("", "cpp", named("web")), 100), pol("shop", "pp", deployments())},
			subject:  web(), want: "shop/pp",
		},
		"ClusterPolicy": {
			reason:   "Where no PropagationPolicy selects it a ClusterPropagationPolicy does.",
			policies: []policy.Object{pol("shop", "pp", named("other")), pol("", "cpp", deployments())},
			subject:  web(), want: "/cpp",
		},
		"ClusterPolicyOfNamespace": {
			reason:   "A ClusterPropagationPolicy may be for one namespace, which makes it no closer.",
			policies: []policy.Object{pol("", "b", in("shop", deployments())), pol("", "a", deployments())},
			subject:  web(), want: "/a",
		},
		"ClusterPolicyOfNamespaceByName": {
			reason:   "The level counts between selectors with and without a namespace.",
			policies: []policy.Object{pol("", "b", in("shop", named("web"))), pol("", "a", deployments())},
			subject:  web(), want: "/b",
		},
		"ClusterPolicyOfOtherNamespace": {
			reason:   "A ClusterPropagationPolicy for another namespace is not for this one.",
			policies: []policy.Object{pol("", "cpp", in("bank", named("web")))},
			subject:  web(),
		},
		"PolicyOfOtherNamespace": {
			reason:   "A PropagationPolicy is for its own namespace.",
			policies: []policy.Object{pol("bank", "pp", named("web"))},
			subject:  web(),
		},
		"SelectorOfOtherNamespace": {
			reason:   "A PropagationPolicy cannot reach into another namespace, nor does it mean its own then.",
			policies: []policy.Object{pol("bank", "pp", in("shop", named("web"))), pol("shop", "pp", in("bank", named("web")))},
			subject:  web(),
		},
		"ClusterScoped": {
			reason:   "What is in no namespace is for ClusterPropagationPolicies without one.",
			policies: []policy.Object{pol("shop", "pp", role()), pol("", "a", in("shop", role())), pol("", "b", role())},
			subject:  policy.Subject{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"},
			want:     "/b",
		},
		"Deleting": {
			reason:   "A policy that is being deleted claims nothing.",
			policies: []policy.Object{deleted(pol("shop", "pp", named("web"))), pol("", "cpp", deployments())},
			subject:  web(), want: "/cpp",
		},
		"BadLabels": {
			reason:   "A selector that cannot be parsed matches nothing.",
			policies: []policy.Object{pol("shop", "pp", expressed("app", "Near", "web"))},
			subject:  web(),
		},
		"EmptyLabels": {
			reason: "An empty label selector matches everything, as a label selector.",
			policies: []policy.Object{
				pol("shop", "pp-a", deployments()),
				pol("shop", "pp-b", policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{}}),
			},
			subject: web(), want: "shop/pp-b",
		},
		"In": {
			reason:   "A list of values is found by each of them.",
			policies: []policy.Object{pol("shop", "pp", expressed("app", metav1.LabelSelectorOpIn, "db", "web", "web"))},
			subject:  web(), want: "shop/pp",
		},
		"NotIn": {
			reason:   "A selector that demands no value is looked at for everything.",
			policies: []policy.Object{pol("shop", "pp-a", expressed("app", metav1.LabelSelectorOpNotIn, "web")), pol("shop", "pp-b", expressed("env", metav1.LabelSelectorOpExists))},
			subject:  web(), want: "shop/pp-b",
		},
		"EveryRequirement": {
			reason: "The index finds candidates by one label; the others must match as well.",
			policies: []policy.Object{pol("shop", "pp", policyv1alpha1.ResourceSelector{
				APIVersion: "apps/v1", Kind: "Deployment",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "env": "test"}},
			})},
			subject: web(),
		},
		"SeveralSelectors": {
			reason:   "The closest selector of a policy is its level, wherever it stands.",
			policies: []policy.Object{pol("shop", "b", deployments(), named("web"), labelled("app", "web")), pol("shop", "a", labelled("app", "web"))},
			subject:  web(), want: "shop/b",
		},
		"OtherVersion": {
			reason:   "Another version of a kind is another kind to a policy.",
			policies: []policy.Object{pol("shop", "pp", policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta1", Kind: "Deployment"})},
			subject:  web(),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := NewIndex()
			for _, p := range tc.policies {
				x.Set(p)
			}
			if got := id(x.Best(tc.subject)); got != tc.want {
				t.Errorf("%s\nBest() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func role() policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}
}

func id(p policy.Object, ok bool) string {
	if !ok {
		return ""
	}
	return p.GetNamespace() + "/" + p.GetName()
}

func ids(all []policy.Object) []string {
	got := []string{}
	for _, p := range all {
		got = append(got, id(p, true))
	}
	return got
}

// TestChanges follows one template through changes of the policies.
func TestChanges(t *testing.T) {
	x := NewIndex()
	steps := []struct {
		reason string
		do     func()
		want   string
	}{
		{"A policy that comes selects.", func() { x.Set(withVersion(pol("shop", "a", named("web")), "5")) }, "shop/a"},
		{"A selector that goes selects no more.", func() { x.Set(withVersion(pol("shop", "a", named("db")), "10")) }, ""},
		{"News that are overtaken are no news.", func() { x.Set(withVersion(pol("shop", "a", named("web")), "9")) }, ""},
		{"A selector that comes back selects again.", func() { x.Set(withVersion(pol("shop", "a", named("web")), "11")) }, "shop/a"},
		{
			"A policy that was made anew is another one, whatever its version.",
			func() {
				p := withVersion(pol("shop", "a", named("db")), "2")
				p.SetUID("another")
				x.Set(p)
			}, "",
		},
		{"A policy of higher priority is chosen.", func() {
			x.Set(pol("shop", "b", deployments()))
			x.Set(withPriority(pol("shop", "c", deployments(), deployments()), 1))
		}, "shop/c"},
		{"A priority that falls counts.", func() { x.Set(pol("shop", "c", deployments(), deployments())) }, "shop/b"},
		{"A policy that is gone does not.", func() { x.Delete("shop", "b") }, "shop/c"},
		{"What is not there can be deleted.", func() { x.Delete("shop", "b"); x.Delete("", "c") }, "shop/c"},
		{"A deletion that has begun is enough.", func() { x.Set(deleted(pol("shop", "c", deployments(), deployments()))) }, ""},
		{"Informers may feed it.", func() { x.OnAdd(pol("", "d", deployments()), true) }, "/d"},
		{"Informers may feed it.", func() { x.OnUpdate(pol("", "d", deployments()), pol("", "d", named("db"))) }, ""},
		{"Informers may feed it.", func() { x.OnUpdate(nil, pol("", "d", named("web"))) }, "/d"},
		{"A deletion that an informer missed is one.", func() { x.OnDelete(cache.DeletedFinalStateUnknown{Key: "d", Obj: pol("", "d")}) }, ""},
		{"What is no policy is ignored.", func() { x.OnAdd(&metav1.Status{}, false); x.OnDelete(nil) }, ""},
	}
	for i, s := range steps {
		s.do()
		if got := id(x.Best(web())); got != s.want {
			t.Fatalf("step %d: %s\nBest() = %q, want %q", i, s.reason, got, s.want)
		}
	}
	x.Delete("shop", "a")
	x.Delete("shop", "c")
	if len(x.lists)+len(x.kinds)+len(x.policies)+len(x.preemptors) != 0 {
		t.Errorf("an index of nothing must keep nothing: %+v", x)
	}
}

func TestLookups(t *testing.T) {
	x := NewIndex()
	x.Set(deleted(pol("shop", "gone", role())))
	x.Set(pol("shop", "web", deployments(), named("web")))
	x.Set(pol("bank", "web", deployments()))
	x.Set(pol("", "all", deployments(), in("bank", deployments())))

	want := []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	}
	if diff := cmp.Diff(want, x.Kinds()); diff != "" {
		t.Errorf("a kind counts as long as a policy is there (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/all", "bank/web", "shop/web"}, ids(x.Selecting(want[0]))); diff != "" {
		t.Errorf("Selecting() (-want +got):\n%s", diff)
	}
	if got := x.Selecting(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); len(got) != 0 {
		t.Errorf("nothing selects Pods, got %v", ids(got))
	}
	if got := id(x.Get("shop", "gone")); got != "shop/gone" {
		t.Errorf("a policy that is being deleted is still there, got %q", got)
	}
	if got := id(x.Get("", "web")); got != "" {
		t.Errorf("there is no ClusterPropagationPolicy web, got %q", got)
	}
}

func TestPreemptors(t *testing.T) {
	x := NewIndex()
	for i, p := range []int32{0, 1, 2, 3, 4, 5} {
		x.Set(preempting(withPriority(pol("shop", fmt.Sprintf("p%d", i), named("web")), p)))
	}
	x.Set(preempting(withPriority(pol("shop", "o3", named("web")), 3)))
	x.Set(withPriority(pol("shop", "meek", named("web")), 3))
	x.Set(deleted(preempting(withPriority(pol("shop", "gone", named("web")), 3))))
	x.Set(preempting(withPriority(pol("bank", "other", named("web")), 3)))
	x.Set(preempting(withPriority(pol("", "cpp", named("web")), 3)))

	if diff := cmp.Diff([]string{"shop/p4", "shop/o3", "shop/p3", "shop/p2"}, ids(x.Preemptors("shop", 1, 5))); diff != "" {
		t.Errorf("strictly between, highest first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/cpp"}, ids(x.Preemptors("", 1, 5))); diff != "" {
		t.Errorf("those of cluster scope (-want +got):\n%s", diff)
	}
}

// TestBestIsTheRule compares the index with the rule, read from the
// specification word by word, on policies and templates made at random.
func TestBestIsTheRule(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, seed))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	selector := func() policyv1alpha1.ResourceSelector {
		s := deployments()
		s.Kind = pick("Deployment", "Deployment", "StatefulSet")
		s.Namespace = pick("", "", "shop", "bank")
		switch r.IntN(6) {
		case 0:
			s.Name = pick("web", "db")
		case 1:
			s.LabelSelector = labelled(pick("app", "env"), pick("web", "prod")).LabelSelector
		case 2:
			s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick("web", "db"), "env": pick("prod", "test")}}
		case 3:
			s.LabelSelector = expressed(pick("app", "env"), metav1.LabelSelectorOpIn, pick("web", "db"), pick("prod", "test")).LabelSelector
		case 4:
			s.LabelSelector = expressed(pick("app", "env"), metav1.LabelSelectorOperator(pick("NotIn", "Near")), "web").LabelSelector
		}
		return s
	}
	all := map[string]policy.Object{}
	x := NewIndex()
	for range 3000 {
		p := pol(pick("", "shop", "bank"), "p"+strconv.Itoa(r.IntN(12)))
		for range 1 + r.IntN(3) {
			p.PropagationSpec().ResourceSelectors = append(p.PropagationSpec().ResourceSelectors, selector())
		}
		withPriority(p, int32(r.IntN(3))-1)
		switch r.IntN(8) {
		case 0:
			x.Delete(p.GetNamespace(), p.GetName())
			delete(all, id(p, true))
			continue
		case 1:
			deleted(p)
		}
		x.Set(p)
		all[id(p, true)] = p

		s := policy.Subject{
			APIVersion: "apps/v1", Kind: pick("Deployment", "StatefulSet"), Namespace: pick("", "shop", "bank"), Name: pick("web", "db"),
			Labels: map[string]string{"app": pick("web", "db"), "env": pick("prod", "test")},
		}
		want := rule(all, s)
		if got := id(x.Best(s)); got != want {
			t.Fatalf("seed %d: Best(%+v) = %q, want %q", seed, s, got, want)
		}
	}
}

// rule walks all policies.
func rule(all map[string]policy.Object, s policy.Subject) string {
	for _, scope := range []string{s.Namespace, ""} {
		var best policy.Object
		var level policy.Level
		for _, p := range all {
			l := policy.LevelOf(p.PropagationSpec().ResourceSelectors, s)
			if p.GetNamespace() != scope || !p.GetDeletionTimestamp().IsZero() || l == policy.None {
				continue
			}
			better := best == nil
			if !better {
				a, b := policy.Priority(p.PropagationSpec()), policy.Priority(best.PropagationSpec())
				better = a > b || a == b && (l > level || l == level && p.GetName() < best.GetName())
			}
			if better {
				best, level = p, l
			}
		}
		if best != nil {
			return id(best, true)
		}
	}
	return ""
}

func TestConcurrently(t *testing.T) {
	x := NewIndex()
	x.Set(pol("shop", "stays", named("web")))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 200 {
				x.Set(pol("shop", fmt.Sprintf("z%d-%d", i, j%10), deployments()))
				if got := id(x.Best(web())); got != "shop/stays" {
					t.Errorf("Best() = %q while other policies come and go, want shop/stays", got)
					return
				}
				x.Kinds()
				x.Delete("shop", fmt.Sprintf("z%d-%d", i, j%10))
			}
		})
	}
	all.Wait()
}

// BenchmarkBest chooses for one template among policies that each select one
// template: by name, and by labels of which one is the same for all.
func BenchmarkBest(b *testing.B) {
	shapes := map[string]func(i int) policyv1alpha1.ResourceSelector{
		"Name": func(i int) policyv1alpha1.ResourceSelector { return named("web-" + strconv.Itoa(i)) },
		"Labels": func(i int) policyv1alpha1.ResourceSelector {
			s := labelled("env", "prod")
			s.LabelSelector.MatchLabels["app"] = "web-" + strconv.Itoa(i)
			return s
		},
		"Namespace": func(i int) policyv1alpha1.ResourceSelector { return in("shop-"+strconv.Itoa(i), deployments()) },
	}
	for name, shape := range shapes {
		for _, policies := range []int{1000, 5000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", name, policies), func(b *testing.B) {
				x := NewIndex()
				for i := range policies {
					x.Set(pol("", "p-"+strconv.Itoa(i), shape(i)))
				}
				s := policy.Subject{
					APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop-500", Name: "web-500",
					Labels: map[string]string{"app": "web-500", "env": "prod"},
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := x.Best(s); !ok {
						b.Fatal("no policy")
					}
				}
			})
		}
	}
}
