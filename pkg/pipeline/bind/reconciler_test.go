package bind

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

func wantWrites(t *testing.T, w *world, reason string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes: %s\n(-want +got):\n%s", reason, diff)
	}
}

func wantEvents(t *testing.T, w *world, reason string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.events.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("events: %s\n(-want +got):\n%s", reason, diff)
	}
}

func TestNewTemplate(t *testing.T) {
	p := aPolicy("p")
	w := newWorld(t, p, aTemplate())
	w.done(t, web)
	wantWrites(t, w, "One for the claim, one for the binding.", "patch Deployment web", "create ResourceBinding web-deployment")
	wantEvents(t, w, "What was done is told.",
		"Normal GetReplicasSucceed: Get replicas succeed.", "Normal ApplyPolicySucceed: Apply policy(shop/p) succeed")
	u, b := w.template(t, web), w.bound(t, "shop", "web-deployment")
	if !isClaimedBy(u, p) || u.GetLabels()["app"] != "web" {
		t.Errorf("the template's labels %v", u.GetLabels())
	}
	if b.GetLabels()[names.ResourceBindingIDLabel] == "" {
		t.Error("the binding has no permanent identity: admission would have to give it one")
	}
	if got := b.BindingSpec().Resource.ResourceVersion; got != u.GetResourceVersion() {
		t.Errorf("bound at version %s, the template has %s", got, u.GetResourceVersion())
	}

	w.done(t, web)
	wantWrites(t, w, "Nothing differs.")
	wantEvents(t, w, "Nothing was done.")
}

func TestNothingIsWrittenForAStatus(t *testing.T) {
	w := newWorld(t, aPolicy("p"), aTemplate())
	w.done(t, web)
	w.take()
	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"readyReplicas": int64(2)} })
	w.ledger = newLedger() // of another process
	w.done(t, web)
	wantWrites(t, w, "After a restart the template has another version, but says the same.")
	if b := w.bound(t, "shop", "web-deployment"); b.BindingSpec().Resource.ResourceVersion == w.template(t, web).GetResourceVersion() {
		t.Error("the test is none: the version of the template did not change")
	}

	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["paused"] = true })
	w.done(t, web)
	wantWrites(t, w, "What changed while nobody looked is bound.", "update ResourceBinding web-deployment")
	if b := w.bound(t, "shop", "web-deployment"); b.BindingSpec().Resource.ResourceVersion != w.template(t, web).GetResourceVersion() {
		t.Error("the binding does not tell of the change")
	}
}

func TestClusterScope(t *testing.T) {
	p := aClusterPolicy("c")
	w := newWorld(t, p, aTemplate(role), aTemplate())
	k := keyIn(roles, "", "reader")
	w.done(t, k)
	wantWrites(t, w, "A template of cluster scope.", "patch ClusterRole reader", "create ClusterResourceBinding reader-clusterrole")
	wantEvents(t, w, "It has no replicas.", "Normal ApplyPolicySucceed: Apply cluster policy(c) succeed")
	b := w.bound(t, "", "reader-clusterrole")
	if !isClaimedBy(b, p) || b.GetLabels()[names.ClusterResourceBindingIDLabel] == "" || b.GetFinalizers()[0] != names.ClusterResourceBindingFinalizer {
		t.Errorf("labels %v, finalizers %v", b.GetLabels(), b.GetFinalizers())
	}
	w.done(t, web)
	wantWrites(t, w, "A template of a namespace gets a binding there.", "patch Deployment web", "create ResourceBinding web-deployment")
	w.done(t, k)
	w.done(t, web)
	wantWrites(t, w, "Nothing differs.")
}

// TestChoice has the rows of behaviour/14 14.14, through the index.
func TestChoice(t *testing.T) {
	cases := map[string]struct {
		reason   string
		policies []policy.Object
		want     string
	}{
		"Priority": {"A higher priority beats a closer selector.", []policy.Object{
			aPolicy("pp-a", priority(0), selecting(selector(byName("web")))), aPolicy("pp-b", priority(1), selecting(selector(byLabel("web")))),
		}, "pp-b"},
		"Name": {"At the same priority the name beats labels.", []policy.Object{
			aPolicy("pp-a", selecting(selector(byLabel("web")))), aPolicy("pp-b", selecting(selector(byName("web")))),
		}, "pp-b"},
		"Labels": {"Labels beat the kind.", []policy.Object{aPolicy("pp-a"), aPolicy("pp-b", selecting(selector(byLabel("web"))))}, "pp-b"},
		"Order":  {"Else the name of the policy decides.", []policy.Object{aPolicy("pp-b"), aPolicy("pp-a")}, "pp-a"},
		"Scope":  {"A PropagationPolicy beats a ClusterPropagationPolicy of any priority.", []policy.Object{aClusterPolicy("c", priority(100)), aPolicy("pp-a")}, "pp-a"},
		"Going":  {"A policy that is being deleted claims nothing.", []policy.Object{aPolicy("pp-a", deleting), aClusterPolicy("c")}, "c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{aTemplate()}
			var want policy.Object
			for _, p := range tc.policies {
				objects = append(objects, p)
				if p.GetName() == tc.want {
					want = p
				}
			}
			w := newWorld(t, objects...)
			w.done(t, web)
			if !isClaimedBy(w.template(t, web), want) || !isClaimedBy(w.bound(t, "shop", "web-deployment"), want) {
				t.Errorf("%s\nclaimed: %v", tc.reason, w.template(t, web).GetAnnotations())
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	w := newWorld(t, aTemplate())
	w.done(t, web)
	wantWrites(t, w, "There is no policy.")
	if got := w.ledger.among(deployments, "shop", ""); len(got) != 1 {
		t.Fatalf("it does not wait: %v", got)
	}
	p := aPolicy("p")
	if err := w.control.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.policies.reconcile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Deployment shop/web"}, w.keys.take()); diff != "" {
		t.Errorf("the policy sends what waits for it (-want +got):\n%s", diff)
	}
	w.done(t, web)
	wantWrites(t, w, "It is claimed.", "patch Deployment web", "create ResourceBinding web-deployment")
	if got := w.ledger.among(deployments, "", ""); len(got) != 0 {
		t.Errorf("it still waits: %v", got)
	}
}

func TestLeftAlone(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template *unstructured.Unstructured
		key      Key
		err      error
	}{
		"Claimed by another": {"Something else takes care of it.", aTemplate(func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{names.ClaimedByLabel: names.ManagedByMultiClusterService})
		}), web, nil},
		"Going": {"What is being deleted is not bound: its binding could be gone already, and would come back.", aTemplate(func(u *unstructured.Unstructured) {
			u.SetFinalizers([]string{"example.com/f"})
			u.SetDeletionTimestamp(ptr.To(metav1.Unix(2000, 0)))
		}), web, nil},
		"Gone":     {"There is none.", aTemplate(named("other")), web, nil},
		"Unserved": {"Its kind is not served.", aTemplate(), web, noMatchErr},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, aPolicy("p"), tc.template)
			w.fakes.errs[deployments] = tc.err
			w.done(t, tc.key)
			wantWrites(t, w, tc.reason)
		})
	}
	w := newWorld(t, aPolicy("p"), aTemplate())
	w.fakes.errs[deployments] = errBoom
	if _, err := w.reconcile1(t, web); !errors.Is(err, errBoom) {
		t.Errorf("what cannot be found out is tried again: %v", err)
	}
}

func TestClaimsStay(t *testing.T) {
	mine := aPolicy("mine")
	cases := map[string]struct {
		reason string
		others []client.Object
	}{
		"Priority": {"A higher priority does not take what is claimed.", []client.Object{aPolicy("a", priority(100))}},
		"Closer":   {"Nor does a closer selector.", []client.Object{aPolicy("a", selecting(selector(byName("web"))))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.others, mine, aTemplate(claimedBy(mine)))...)
			w.done(t, web)
			wantWrites(t, w, tc.reason, "create ResourceBinding web-deployment")
			if b := w.bound(t, "shop", "web-deployment"); clusterOf(b) != "mine-cluster" {
				t.Errorf("%s\nbound to %s", tc.reason, clusterOf(b))
			}
		})
	}
}

// boundBy is the binding that a policy has made of a template.
func boundBy(t *testing.T, p policy.Object, u *unstructured.Unstructured, change ...func(binding.Object)) binding.Object {
	t.Helper()
	w := newWorld(t, p, u)
	w.done(t, keyOf(u))
	b := w.bound(t, u.GetNamespace(), names.Binding(u.GetKind(), u.GetName()))
	b.SetResourceVersion("")
	for _, f := range change {
		f(b)
	}
	return b
}

func TestClaimedPolicy(t *testing.T) {
	mine := aPolicy("mine")
	anew := aPolicy("mine")
	anew.Labels[names.PropagationPolicyIDLabel] = "anew"
	other := aPolicy("other", func(p policy.Object) { p.SetNamespace("bank") })
	cases := map[string]struct {
		reason   string
		policies []client.Object
		unknown  bool // the index has not heard of them
		writes   []string
		claim    policy.Object
		again    bool
	}{
		"Gone": {
			reason: "A policy that is gone has no claim, and leaves the binding as it is.",
			writes: []string{"patch ResourceBinding web-deployment", "patch Deployment web"},
		},
		"NotHeardOf": {reason: "A policy that the index has not heard of is not gone.", policies: []client.Object{mine}, unknown: true, claim: mine, again: true},
		"Going":      {reason: "A policy that goes lets go of its templates itself.", policies: []client.Object{aPolicy("mine", deleting)}, claim: mine, again: true},
		"Anew": {
			reason: "A policy that was made anew claims what it had.", policies: []client.Object{anew}, claim: anew,
			writes: []string{"patch Deployment web", "update ResourceBinding web-deployment"},
		},
		"OtherSelectors": {
			reason: "What it selects no longer it lets go of.", policies: []client.Object{aPolicy("mine", selecting(selector(byName("api"))))},
			writes: []string{"patch ResourceBinding web-deployment", "patch Deployment web"},
		},
		"OtherLabels": {
			reason: "The same when the template has changed.", policies: []client.Object{aPolicy("mine", selecting(selector(byLabel("api"))))},
			writes: []string{"patch ResourceBinding web-deployment", "patch Deployment web"},
		},
		"OtherVersion": {
			reason:   "It is bound as an object of another version of its kind.",
			policies: []client.Object{aPolicy("mine", selecting(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1beta2", Kind: "Deployment"}))}, claim: mine,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := boundBy(t, mine, aTemplate())
			w := newWorld(t, append(tc.policies, other, aTemplate(claimedBy(mine)), b)...)
			if tc.unknown {
				w.index.Delete("shop", "mine")
			}
			result, err := w.reconcile1(t, web)
			if err != nil || (result.RequeueAfter > 0) != tc.again {
				t.Fatalf("%s\n%+v, %v", tc.reason, result, err)
			}
			wantWrites(t, w, tc.reason, tc.writes...)
			now := w.bound(t, "shop", "web-deployment")
			if !isClaimedBy(w.template(t, web), tc.claim) || !isClaimedBy(now, tc.claim) {
				t.Errorf("%s\nclaims %v, %v", tc.reason, w.template(t, web).GetLabels(), now.GetLabels())
			}
			if clusterOf(now) != "mine-cluster" {
				t.Errorf("%s\nbound to %s", tc.reason, clusterOf(now))
			}
		})
	}
}

func TestClaimOfAnotherNamespace(t *testing.T) {
	bank := aPolicy("p", func(p policy.Object) { p.SetNamespace("bank") })
	w := newWorld(t, bank, aTemplate(claimedBy(bank)))
	w.done(t, web)
	wantWrites(t, w, "A policy has no say outside its namespace, whatever a template's annotations claim.", "patch Deployment web")
}

func TestFailures(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy policy.Object
		setUp  func(*world)
		events []string
		writes []string
		check  func(reconcile.Result, error) bool
	}{
		"Interpreter": {
			reason: "A template that cannot be interpreted is claimed, but not bound, and tried again.",
			setUp:  func(w *world) { w.pods.err = errBoom },
			writes: []string{"patch Deployment web"},
			events: []string{"Warning GetReplicasFailed: boom", "Warning ApplyPolicyFailed: Apply policy(shop/p) failed: get replicas: boom"},
			check:  func(_ reconcile.Result, err error) bool { return errors.Is(err, errBoom) },
		},
		"Overrides": {
			reason: "A policy that waits for override policies does nothing.",
			policy: aPolicy("p", func(p policy.Object) { p.PropagationSpec().DependentOverrides = []string{"there", "missing"} }),
			events: []string{"Warning ApplyPolicyFailed: Apply policy(shop/p) failed: waiting for dependent overrides: there is no OverridePolicy missing"},
			check:  func(r reconcile.Result, err error) bool { return err == nil && r.RequeueAfter > 0 },
		},
		"ClusterOverrides": {
			reason: "A policy of cluster scope waits for ones of cluster scope.",
			policy: aClusterPolicy("c", func(p policy.Object) { p.PropagationSpec().DependentOverrides = []string{"there"} }),
			events: []string{"Warning ApplyPolicyFailed: Apply cluster policy(c) failed: waiting for dependent overrides: there is no ClusterOverridePolicy there"},
			check:  func(r reconcile.Result, err error) bool { return err == nil && r.RequeueAfter > 0 },
		},
		"NoIdentity": {
			reason: "A policy that has no permanent identity yet can claim nothing.",
			policy: aPolicy("p", func(p policy.Object) { p.SetLabels(nil) }),
			check:  func(r reconcile.Result, err error) bool { return err == nil && r.RequeueAfter > 0 },
		},
		"Conflict": {
			reason: "What has changed in between is looked at again, and is nothing to tell of.",
			setUp: func(w *world) {
				w.before = func(string) error { return apierrors.NewConflict(schema.GroupResource{}, "web", errBoom) }
			},
			writes: []string{"patch Deployment web"},
			check:  func(r reconcile.Result, err error) bool { return err == nil && r.RequeueAfter > 0 },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = aPolicy("p")
			}
			there := &policyv1alpha1.OverridePolicy{}
			there.Namespace, there.Name = "shop", "there"
			w := newWorld(t, tc.policy, there, aTemplate())
			if tc.setUp != nil {
				tc.setUp(w)
			}
			result, err := w.reconcile1(t, web)
			if !tc.check(result, err) {
				t.Errorf("%s\n%+v, %v", tc.reason, result, err)
			}
			wantWrites(t, w, tc.reason, tc.writes...)
			wantEvents(t, w, tc.reason, tc.events...)
			if len(w.ledger.among(deployments, "shop", "web")) != 1 {
				t.Errorf("%s\na policy that changes would not find it", tc.reason)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	w := newWorld(t, aPolicy("p"), aTemplate(func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"large": strings.Repeat("x", binding.MaxManifest)})
	}))
	_, err := w.reconcile1(t, web)
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("it would be tried again, with the same result: %v", err)
	}
	wantWrites(t, w, "Nothing is written for what cannot be sent.")
	events := w.events.take()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning ApplyPolicyFailed: Apply policy(shop/p) failed: the object has 15") || !strings.Contains(events[0], "at most 1507328 can be sent") {
		t.Errorf("its user is told size and limit: %q", events)
	}
}

func TestNames(t *testing.T) {
	foreignTemplate := aTemplate(func(u *unstructured.Unstructured) { u.SetGroupVersionKind(foreign); u.SetUID("foreign") })
	p := aPolicy("p", func(p policy.Object) {
		s := p.PropagationSpec()
		s.ResourceSelectors = append(s.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Deployment"})
	})
	theirs := names.BindingBeside(foreign.GroupKind(), "web", "shop")
	for name, stale := range map[string]bool{"Known": false, "JustMade": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, p, aTemplate(), foreignTemplate)
			w.done(t, web)
			w.take()
			if stale {
				w.client = forgetful{w.client}
			}
			w.done(t, keyOf(foreignTemplate))
			if w.bound(t, "shop", theirs) == nil || w.bound(t, "shop", "web-deployment").BindingSpec().Resource.UID != "web-uid" {
				t.Errorf("kinds of two groups share a binding: %v", w.take())
			}
		})
	}
}

// forgetful is a cache that has not heard of any binding.
type forgetful struct{ client.Client }

func (f forgetful) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(binding.Object); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, key.Name)
	}
	return f.Client.Get(ctx, key, o, opts...)
}

func (f forgetful) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*workv1alpha2.ResourceBindingList); ok {
		return nil
	}
	return f.Client.List(ctx, list, opts...)
}

func TestCacheLags(t *testing.T) {
	w := newWorld(t, aPolicy("p"), aTemplate())
	w.done(t, web)
	before := w.bound(t, "shop", "web-deployment")
	w.take()
	w.client = forgetful{w.client}
	w.done(t, web)
	wantWrites(t, w, "That the binding is there is found by trying to make it.", "create ResourceBinding web-deployment")
	if diff := cmp.Diff(before, w.bound(t, "shop", "web-deployment")); diff != "" {
		t.Errorf("the binding changed (-want +got):\n%s", diff)
	}
}

func TestConflictOnBinding(t *testing.T) {
	w := newWorld(t, aPolicy("p"), aTemplate())
	w.done(t, web)
	w.take()
	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(5) })
	first := true
	w.before = func(string) error {
		if !first {
			return nil
		}
		first = false
		b := &workv1alpha2.ResourceBinding{}
		b.Namespace, b.Name = "shop", "web-deployment"
		w.change(t, b, func() { b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}} })
		return nil
	}
	w.done(t, web)
	wantWrites(t, w, "It is read again and merged.", "update ResourceBinding web-deployment", "update ResourceBinding web-deployment")
	b := w.bound(t, "shop", "web-deployment")
	if len(b.BindingSpec().Clusters) != 1 || b.BindingSpec().Replicas != 5 {
		t.Errorf("something is lost: %+v", b.BindingSpec())
	}
}

func TestMadeAnew(t *testing.T) {
	p := aPolicy("p")
	b := boundBy(t, p, aTemplate())
	w := newWorld(t, p, b, aTemplate(func(u *unstructured.Unstructured) { u.SetUID("anew") }))
	w.ledger.touch(web)
	if _, err := w.reconcile1(t, web); err == nil || !strings.Contains(err.Error(), "waits for the garbage collector") {
		t.Errorf("the binding of an earlier template is in the way: %v", err)
	}
	wantWrites(t, w, "It is not touched.", "patch Deployment web")
	if err := w.control.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	now := w.bound(t, "shop", "web-deployment")
	if _, err := w.reconcile1(t, web); err == nil {
		t.Error("nor while it is being deleted")
	}
	now.SetFinalizers(nil)
	if err := w.control.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	w.done(t, web)
	wantWrites(t, w, "When it is gone there is another.", "create ResourceBinding web-deployment")
}

func TestAdopted(t *testing.T) {
	p := aPolicy("p")
	b := boundBy(t, p, aTemplate(), func(b binding.Object) { b.SetOwnerReferences(nil) })
	w := newWorld(t, p, b, aTemplate(func(u *unstructured.Unstructured) { u.SetUID("anew") }))
	w.done(t, web)
	now := w.bound(t, "shop", "web-deployment")
	if owner := metav1.GetControllerOf(now); owner == nil || owner.UID != "anew" || now.BindingSpec().Resource.UID != "anew" {
		t.Errorf("what a template left behind, as it was deleted without what depends on it, is for its successor: %v", owner)
	}
}
