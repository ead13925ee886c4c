package bind

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/template"
)

type fakeRequests struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newFeed(w *world) *feed {
	return &feed{templates: w.fakes, matcher: w.index, ledger: w.ledger, queue: w.policies.queue}
}

func TestTemplateEvents(t *testing.T) {
	cases := map[string]struct {
		reason  string
		event   template.Event
		queued  bool
		touched bool
	}{
		"Initial": {"What was there before is worked on, but nobody has touched it.", template.Event{New: aTemplate(), Initial: true}, true, false},
		"Added":   {"A user has made it.", template.Event{New: aTemplate()}, true, true},
		"Status":  {"It comes from here.", template.Event{Old: aTemplate(), New: aTemplate(func(u *unstructured.Unstructured) { u.Object["status"] = "x" })}, false, false},
		"Changed": {"A user has changed it.", template.Event{Old: aTemplate(), New: aTemplate(func(u *unstructured.Unstructured) { u.Object["spec"] = "x" })}, true, true},
		"Claimed": {"A policy has changed it.", template.Event{Old: aTemplate(), New: aTemplate(claimedBy(aPolicy("p")))}, true, false},
		"Gone":    {"There is nothing to do.", template.Event{Old: aTemplate()}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.event.GVK = deployments
			newFeed(w).template(tc.event)
			if got := len(w.keys.take()) > 0; got != tc.queued {
				t.Errorf("%s\nqueued: %t", tc.reason, got)
			}
			if got, _ := w.ledger.take(web); got != tc.touched {
				t.Errorf("%s\ntouched: %t", tc.reason, got)
			}
		})
	}
	w := newWorld(t, aPolicy("p"), aTemplate())
	old := w.template(t, web)
	w.done(t, web)
	newFeed(w).template(template.Event{GVK: deployments, Old: old, New: w.template(t, web)})
	if got := w.keys.take(); len(got) > 0 {
		t.Errorf("what whoever works on it has written is no news: %v", got)
	}
	newFeed(w).template(template.Event{GVK: deployments, Old: old, New: w.template(t, web)})
	if got := w.keys.take(); len(got) != 1 {
		t.Errorf("once: %v", got)
	}

	w = newWorld(t)
	w.ledger.wait(web)
	w.ledger.touch(web)
	newFeed(w).template(template.Event{GVK: deployments, Old: aTemplate()})
	if touched, waits := w.ledger.take(web); touched || waits {
		t.Error("of a template that is gone nothing is kept")
	}
}

func TestTouchedIsKept(t *testing.T) {
	w := newWorld(t, aPolicy("p"), aTemplate())
	w.ledger.touch(web)
	w.pods.err = errBoom
	if _, err := w.reconcile1(t, web); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	if touched, _ := w.ledger.take(web); !touched {
		t.Error("what went wrong has still to be answered")
	}
	w.pods.err = nil
	w.ledger.touch(web)
	w.done(t, web)
	if touched, _ := w.ledger.take(web); touched {
		t.Error("it was answered")
	}
}

func TestBindAgain(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = web.ref()
	w := newWorld(t, aTemplate())
	f := newFeed(w)
	f.bindAgain(toolscache.DeletedFinalStateUnknown{Obj: b})
	if diff := cmp.Diff([]string{"Deployment shop/web"}, w.keys.take()); diff != "" {
		t.Errorf("a template whose binding was deleted gets another (-want +got):\n%s", diff)
	}
	b.Spec.Resource.Name = "gone"
	f.bindAgain(b)
	if got := w.keys.take(); len(got) > 0 {
		t.Errorf("as a rule the template was deleted before: %v", got)
	}
	w.fakes.unsynced = true
	f.bindAgain(b)
	if got := w.keys.take(); len(got) != 1 {
		t.Errorf("when nobody knows it is looked for: %v", got)
	}
}

func TestExempt(t *testing.T) {
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	cases := map[string]struct {
		reason string
		key    Key
		want   bool
	}{
		"Usual":       {"Anything.", web, false},
		"Namespace":   {"Nothing in it is propagated.", keyIn(deployments, "kube-system", "a"), true},
		"Object":      {"A namespace that is skipped can be propagated itself.", keyIn(core("Namespace"), "", "kube-system"), false},
		"Reserved":    {"One of the system cannot.", keyIn(core("Namespace"), "", "karmada-es-m1"), true},
		"OtherKind":   {"What has such a name otherwise can.", keyIn(roles, "", "karmada-es-m1"), false},
		"ClusterWide": {"What is in no namespace is in none that is skipped.", keyIn(roles, "", "a"), false},
	}
	i := newInbox(func(namespace string) bool { return namespace == "kube-system" })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := i.isExempt(tc.key); got != tc.want {
				t.Errorf("%s\nexempt: %t", tc.reason, got)
			}
		})
	}
	none := newInbox(func(string) bool { return false })
	if !none.isExempt(keyIn(core("ConfigMap"), "kube-system", "extension-apiserver-authentication")) || none.isExempt(keyIn(core("ConfigMap"), "kube-system", "a")) {
		t.Error("one ConfigMap of kube-system is never propagated")
	}
}

func TestInbox(t *testing.T) {
	i := newInbox(func(string) bool { return false })
	first, second := keyIn(deployments, "shop", "first"), keyIn(deployments, "shop", "second")
	i.put(first, later)
	i.put(second, later)
	i.put(first, 0)
	q := priorityqueue.New[Key]("test")
	defer q.ShutDown()
	i.open(q)
	i.put(keyIn(deployments, "shop", "third"), later)
	k, priority, _ := q.GetWithPriority()
	if k != first || priority != 0 {
		t.Errorf("what came before the queue is kept, and what somebody waits for comes first: %v, %d", k, priority)
	}
	if k, priority, _ = q.GetWithPriority(); priority != later {
		t.Errorf("%v at %d", k, priority)
	}
}

func TestFeed(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	synced := true
	informers := &informertest.FakeInformers{Scheme: scheme, Synced: &synced}
	f := newFeed(w)
	f.cache = informers
	ctx, cancel := context.WithCancel(t.Context())
	if err := f.Start(ctx, w.keys); err != nil {
		t.Fatal(err)
	}
	p := aPolicy("p")
	policies, err := informers.FakeInformerFor(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	policies.Add(p)
	if _, ok := w.index.Get("shop", "p"); !ok || !slices.Contains(w.fakes.followed, deployments) {
		t.Error("a policy is known to those who match, and its kinds are followed")
	}
	policies.Delete(p)
	if _, ok := w.index.Get("shop", "p"); ok {
		t.Error("a policy that is gone is known no more")
	}
	b := &workv1alpha2.ClusterResourceBinding{}
	b.Spec.Resource = keyIn(roles, "", "reader").ref()
	bindings, err := informers.FakeInformerFor(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	bindings.Add(b)
	if !slices.Contains(w.fakes.followed, roles) {
		t.Error("the kinds of what is bound are followed, whether or not a policy selects them")
	}
	w.fakes.handle(template.Event{GVK: deployments, New: aTemplate()})
	if diff := cmp.Diff([]string{"Deployment shop/web"}, w.keys.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("templates are queued (-want +got):\n%s", diff)
	}
	if err := f.WaitForSync(ctx); err != nil {
		t.Errorf("everything is known: %v", err)
	}
	cancel()
}

func TestIncompleteOptions(t *testing.T) {
	if err := Setup(nil, Options{}); err == nil {
		t.Error("what is missing is told at start, not by a crash")
	}
	w := newWorld(t)
	o, err := Options{
		Templates: w.fakes, Matcher: w.index, Interpreter: w.pods, ExemptNamespace: func(string) bool { return false },
		Gate: w.gates, Registerer: prometheus.NewRegistry(),
	}.complete()
	if err != nil || o.PolicyRateLimiter == nil {
		t.Errorf("everything else has a default: %v", err)
	}
}

func TestMetersAreShared(t *testing.T) {
	r := prometheus.NewRegistry()
	first, err := newMeters(r)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newMeters(r)
	if err != nil || first.attempts != second.attempts {
		t.Errorf("two roles of a process share the metrics: %v", err)
	}
	taken := prometheus.NewRegistry()
	if err := taken.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "policy_preemption_total", Help: "else"})); err != nil {
		t.Fatal(err)
	}
	if _, err := newMeters(taken); err == nil {
		t.Error("a name that means something else is an error")
	}
}
