package bind

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// policy1 reconciles a policy as it is in the control plane.
func (w *world) policy1(t *testing.T, p policy.Object) error {
	t.Helper()
	if err := w.control.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	return w.policies.reconcile(t.Context(), p)
}

func (w *world) exists(t *testing.T, o client.Object) bool {
	t.Helper()
	err := w.control.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func TestPolicyDeleted(t *testing.T) {
	p := aPolicy("p", deleting)
	live := aPolicy("p")
	b := boundBy(t, live, aTemplate())
	w := newWorld(t, p, b, aTemplate(claimedBy(live)), aTemplate(named("free")), aTemplate(named("pending"), claimedBy(live)),
		aTemplate(named("other"), claimedBy(aPolicy("other"))))
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	wantWrites(t, w, "First the binding, then the template, then the policy.",
		"patch Deployment pending", "patch ResourceBinding web-deployment", "patch Deployment web", "patch PropagationPolicy p")
	now := w.bound(t, "shop", "web-deployment")
	if !isClaimedBy(now, nil) || clusterOf(now) != "p-cluster" || now.GetDeletionTimestamp() != nil {
		t.Errorf("what runs goes on, claimed by nobody: %v, %s", now.GetLabels(), clusterOf(now))
	}
	if !isClaimedBy(w.template(t, web), nil) || !isClaimedBy(w.template(t, keyIn(deployments, "shop", "other")), aPolicy("other")) {
		t.Error("its own claims go, and no others")
	}
	if w.exists(t, p) {
		t.Error("the policy did not go")
	}
	w.done(t, web)
	wantWrites(t, w, "It claims nothing any more.")
}

func TestClusterPolicyDeleted(t *testing.T) {
	p, live := aClusterPolicy("c", deleting), aClusterPolicy("c")
	k := keyIn(roles, "", "reader")
	w := newWorld(t, p, boundBy(t, live, aTemplate(role)), boundBy(t, live, aTemplate()), aTemplate(role, claimedBy(live)), aTemplate(claimedBy(live)))
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	for _, o := range []metav1.Object{w.template(t, k), w.template(t, web), w.bound(t, "", "reader-clusterrole"), w.bound(t, "shop", "web-deployment")} {
		if !isClaimedBy(o, nil) {
			t.Errorf("%s is still claimed", o.GetName())
		}
	}
	if w.exists(t, p) {
		t.Error("the policy did not go")
	}
}

func TestPolicyDeletedFails(t *testing.T) {
	both := selecting(policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Deployment"}, selector())
	cases := map[string]struct {
		reason string
		setUp  func(*world)
		err    error
		freed  bool // the template of the kind that answers
		gone   bool // the policy
	}{
		"Unserved": {"A kind that is not served has no templates.", func(w *world) { w.fakes.errs[foreign] = noMatchErr }, nil, true, true},
		"Silent":   {"A kind that cannot be asked for keeps the policy, and no other kind.", func(w *world) { w.fakes.errs[foreign] = errBoom }, errBoom, true, false},
		"Refused": {
			"What cannot be released keeps the policy.",
			func(w *world) {
				w.before = func(write string) error {
					if write == "patch Deployment web" {
						return errBoom
					}
					return nil
				}
			}, errBoom, false, false,
		},
		"Conflict": {
			"What has changed in between is read again.",
			func(w *world) {
				first := true
				w.before = func(write string) error {
					if write == "patch Deployment web" && first {
						first = false
						return apierrors.NewConflict(schema.GroupResource{}, "web", errBoom)
					}
					return nil
				}
			}, nil, true, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, live := aPolicy("p", deleting, both), aPolicy("p", both)
			w := newWorld(t, p, boundBy(t, live, aTemplate()), aTemplate(claimedBy(live)))
			tc.setUp(w)
			if err := w.policy1(t, p); !errors.Is(err, tc.err) {
				t.Errorf("%s\n%v", tc.reason, err)
			}
			if isClaimedBy(w.template(t, web), nil) != tc.freed || w.exists(t, p) == tc.gone {
				t.Errorf("%s\nfreed %t, gone %t", tc.reason, !tc.freed, !tc.gone)
			}
			w.before, w.fakes.errs = nil, map[schema.GroupVersionKind]error{}
			if w.exists(t, p) {
				if err := w.policy1(t, p); err != nil || w.exists(t, p) || !isClaimedBy(w.template(t, web), nil) {
					t.Errorf("%s\nit is not made up for later: %v", tc.reason, err)
				}
			}
		})
	}
}

func TestDeletedPolicyOfOldSelectors(t *testing.T) {
	live := aPolicy("p")
	p := aPolicy("p", deleting, selecting(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}))
	w := newWorld(t, p, boundBy(t, live, aTemplate()), aTemplate(claimedBy(live)))
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	if !isClaimedBy(w.template(t, web), nil) || w.exists(t, p) {
		t.Error("what a policy has bound by selectors that it has no longer is claimed by nobody, too")
	}
}

func TestPolicySends(t *testing.T) {
	p := aPolicy("p", selecting(
		selector(byLabel("web")), selector(byName("named")), policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}))
	w := newWorld(t, p,
		boundBy(t, aPolicy("p"), aTemplate(named("bound"))), aTemplate(named("bound"), claimedBy(p)),
		aTemplate(named("pending"), claimedBy(p)),
		aTemplate(named("waits")),
		aTemplate(named("named"), func(u *unstructured.Unstructured) { u.SetLabels(nil) }),
		aTemplate(named("no-match"), func(u *unstructured.Unstructured) { u.SetLabels(nil) }),
		aTemplate(named("elsewhere"), in("bank")),
		aTemplate(named("other"), claimedBy(aPolicy("other"))),
	)
	for _, k := range []Key{keyIn(deployments, "shop", "waits"), keyIn(deployments, "shop", "named"), keyIn(deployments, "shop", "no-match"), keyIn(deployments, "bank", "elsewhere")} {
		w.ledger.wait(k)
	}
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	want := []string{"Deployment shop/bound", "Deployment shop/named", "Deployment shop/pending", "Deployment shop/waits"}
	if diff := cmp.Diff(want, w.keys.take()); diff != "" {
		t.Errorf("what it has claimed, and what waits for it (-want +got):\n%s", diff)
	}
	wantWrites(t, w, "It writes nothing itself.")
	if !slices.Contains(w.fakes.followed, deployments) || !slices.Contains(w.fakes.followed, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		t.Errorf("the kinds that it selects are followed: %v", w.fakes.followed)
	}

	w.fakes.errs[deployments] = errBoom
	if err := w.policy1(t, p); err != nil {
		t.Errorf("a kind that is not known yet comes by itself: %v", err)
	}
}

func TestIdentify(t *testing.T) {
	p := aClusterPolicy("c", func(p policy.Object) { p.SetLabels(nil); p.SetFinalizers(nil) })
	w := newWorld(t, p)
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	wantWrites(t, w, "What admission did not give it.", "patch ClusterPropagationPolicy c")
	now := &policyv1alpha1.ClusterPropagationPolicy{}
	if err := w.control.Get(t.Context(), client.ObjectKeyFromObject(p), now); err != nil {
		t.Fatal(err)
	}
	if policy.By(now).ID == "" || !slices.Contains(now.Finalizers, names.ClusterPropagationPolicyFinalizer) {
		t.Errorf("labels %v, finalizers %v", now.Labels, now.Finalizers)
	}
	if known, ok := w.index.Get("", "c"); !ok || policy.By(known).ID != policy.By(now).ID {
		t.Error("those who match know the identity")
	}
	if err := w.policy1(t, p); err != nil {
		t.Fatal(err)
	}
	wantWrites(t, w, "Once.")
}

func TestPreempt(t *testing.T) {
	webByName := selecting(selector(byName("web")))
	inShop := selecting(selector(byName("web"), func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "shop" }))
	low, high := aPolicy("low", priority(1)), aPolicy("high", priority(9))
	lowC, highC := aClusterPolicy("low-c", priority(1)), aClusterPolicy("high-c", priority(9))
	gone := aPolicy("gone")
	cases := map[string]struct {
		reason string
		by     policy.Object
		from   policy.Object // who has claimed the template; nil: nobody
		wins   bool
		err    bool
	}{
		"Higher":         {"A higher priority takes.", aPolicy("p", preempting, webByName, priority(5)), low, true, false},
		"Lower":          {"A lower one does not.", aPolicy("p", preempting, webByName, priority(5)), high, false, false},
		"Equal":          {"Nor does the same, however closely it selects.", aPolicy("p", preempting, webByName, priority(1)), low, false, false},
		"OverCluster":    {"A PropagationPolicy takes from a ClusterPropagationPolicy of any priority.", aPolicy("p", preempting, webByName, priority(-5)), highC, true, false},
		"Cluster":        {"A ClusterPropagationPolicy of a higher priority takes from one of a lower.", aClusterPolicy("c", preempting, inShop, priority(5)), lowC, true, false},
		"ClusterAnyRoom": {"Also when it means the template of any namespace.", aClusterPolicy("c", preempting, webByName, priority(5)), lowC, true, false},
		"ClusterLower":   {"Of a lower one not.", aClusterPolicy("c", preempting, inShop, priority(5)), highC, false, false},
		"OverPolicy":     {"And never from a PropagationPolicy.", aClusterPolicy("c", preempting, inShop, priority(100)), low, false, false},
		"Never":          {"It has to be asked for.", aPolicy("p", webByName, priority(5)), low, false, false},
		"Labels":         {"A template that is not named is not taken.", aPolicy("p", preempting, selecting(selector(byLabel("web"))), priority(5)), low, false, false},
		"Unclaimed":      {"What nobody has claimed is for the usual way.", aPolicy("p", preempting, webByName, priority(5)), nil, false, false},
		"PolicyGone":     {"A policy that is not there has no priority to compare.", aPolicy("p", preempting, webByName, priority(5)), gone, false, true},
		"NoTemplate":     {"There is nothing to take.", aPolicy("p", preempting, selecting(selector(byName("none"))), priority(5)), low, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := aTemplate()
			if tc.from != nil {
				claimedBy(tc.from)(u)
			}
			w := newWorld(t, low, high, lowC, highC, u, tc.by.DeepCopyObject().(client.Object))
			p := tc.by.DeepCopyObject().(policy.Object)
			err := w.policy1(t, p)
			if (err != nil) != tc.err {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			want := tc.from
			var events []string
			if tc.wins {
				want = tc.by
				events = []string{fmt.Sprintf("Normal PreemptPolicySucceed: Policy(%s) preempted policy(%s) succeed", policy.By(tc.by), policy.By(tc.from))}
				wantWrites(t, w, tc.reason, "patch Deployment web")
			} else {
				wantWrites(t, w, tc.reason)
			}
			if !isClaimedBy(w.template(t, web), want) {
				t.Errorf("%s\nclaimed: %v", tc.reason, w.template(t, web).GetLabels())
			}
			if !tc.err {
				wantEvents(t, w, tc.reason, events...)
			}
			w.policies.preemption = false
			if err := w.policy1(t, p); err != nil {
				t.Errorf("without the feature nothing is taken: %v", err)
			}
		})
	}
}

func TestPolicyChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(policy.Object)
		want   bool
	}{
		"Spec":     {"Its templates may be bound otherwise.", func(p policy.Object) { p.SetGeneration(2) }, true},
		"Deleted":  {"It has to let go.", deleting, true},
		"Identity": {"It can claim now.", func(p policy.Object) { p.SetLabels(map[string]string{names.PropagationPolicyIDLabel: "new"}) }, true},
		"Labels":   {"They mean nothing here.", func(p policy.Object) { p.SetAnnotations(map[string]string{"a": "b"}) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policyChanged().Update(event.UpdateEvent{ObjectOld: aPolicy("p"), ObjectNew: aPolicy("p", tc.change)}); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
	if policyChanged().Delete(event.DeleteEvent{Object: aPolicy("p")}) || !policyChanged().Create(event.CreateEvent{Object: aPolicy("p")}) {
		t.Error("a policy that comes is worked on; one that is gone has let go before")
	}
}

type requestQueue struct {
	fakeRequests
	got []string
}

func (q *requestQueue) Add(r reconcile.Request) { q.got = append(q.got, r.String()) }

func TestLowered(t *testing.T) {
	w := newWorld(t, aPolicy("p", priority(1)), aPolicy("above", preempting, priority(9)), aPolicy("between", preempting, priority(5)),
		aPolicy("second", preempting, priority(3)), aPolicy("never", priority(4)), aClusterPolicy("cluster", preempting, priority(5)))
	cases := map[string]struct {
		reason string
		before int32
		now    int32
		want   []string
	}{
		"Lowered": {"Those that it was above of, and is no longer, may take what it has: the highest first.", 7, 1, []string{"shop/between", "shop/second"}},
		"Raised":  {"Then it loses nothing.", 1, 7, nil},
		"Same":    {"Nor when only something else has changed.", 7, 7, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := &requestQueue{}
			lowered(w.index).Update(t.Context(), event.UpdateEvent{ObjectOld: aPolicy("p", priority(tc.before)), ObjectNew: aPolicy("p", priority(tc.now))}, q)
			if diff := cmp.Diff(tc.want, q.got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDependents(t *testing.T) {
	needs := func(p policy.Object) { p.PropagationSpec().DependentOverrides = []string{"o"} }
	bank := func(p policy.Object) { p.SetNamespace("bank") }
	w := newWorld(t, aPolicy("p", needs), aPolicy("q"), aPolicy("p", needs, bank), aClusterPolicy("c", needs), aClusterPolicy("d"))
	requests := func(o client.Object) []string {
		var got []string
		for _, r := range dependents(w.control)(t.Context(), o) {
			got = append(got, r.String())
		}
		return got
	}
	op, cop := &policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{}
	op.Namespace, op.Name, cop.Name = "shop", "o", "o"
	if diff := cmp.Diff([]string{"shop/p"}, requests(op)); diff != "" {
		t.Errorf("an OverridePolicy is waited for in its namespace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/c"}, requests(cop)); diff != "" {
		t.Errorf("a ClusterOverridePolicy by policies of cluster scope (-want +got):\n%s", diff)
	}
}

func TestNewPolicy(t *testing.T) {
	if p, err := newPolicy[*policyv1alpha1.ClusterPropagationPolicy](); err != nil || p.GetNamespace() != "" {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := newPolicy[policy.Object](); err == nil {
		t.Error("there are two kinds")
	}
}

func TestPlaces(t *testing.T) {
	got := places(aClusterPolicy("c", selecting(selector(byName("a")), selector(byName("b")),
		selector(func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "shop" }))))
	want := []place{{deployments, ""}, {deployments, "shop"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("each place once (-want +got):\n%s", diff)
	}
}
