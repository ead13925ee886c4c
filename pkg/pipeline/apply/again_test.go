package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/member"
)

func TestLacking(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
	arrives := member.Event{
		Cluster: "m1", GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		New: obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`),
	}
	leaves := member.Event{Cluster: "m1", GVR: arrives.GVR, New: arrives.New.DeepCopy()}
	leaves.New.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	crd := func(kind string, established string) member.Event {
		return member.Event{
			Cluster: "m1", GVR: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
			New: obj(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x"},"spec":{"names":{"kind":"` + kind + `"}},
				"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"` + established + `"}]}}`),
		}
	}
	cases := map[string]struct {
		reason    string
		create    error // unless nil, why the object cannot be created
		noKind    error
		others    []member.Event // that bring nothing
		arrives   member.Event
		condition string // part of its message
	}{
		"NoNamespace": {
			reason:  "A namespace is most likely on its way.",
			create:  apierrors.NewNotFound(namespaces, "default"),
			others:  []member.Event{crd("ConfigMap", "True"), leaves, {Cluster: "m2", GVR: arrives.GVR, New: arrives.New}, {Cluster: "m1", GVR: arrives.GVR, Old: arrives.New}},
			arrives: arrives, condition: `namespaces "default" not found`,
		},
		"NamespaceTerminating": {
			reason: "Who deletes a namespace on a member gets it back, with what was in it.",
			create: terminating, arrives: arrives, others: []member.Event{leaves}, condition: "it is being terminated",
		},
		"NoKind": {
			reason: "So is a CRD.",
			noKind: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1"}},
			others: []member.Event{arrives, crd("ConfigMap", "False"), crd("Other", "True")}, arrives: crd("ConfigMap", "True"), condition: `no matches for kind "ConfigMap"`,
		},
		"KindGone": {
			reason: "A kind may go between being found and being used.",
			create: apierrors.NewGenericServerResponse(404, "create", schema.GroupResource{Resource: "configmaps"}, "a", "", 0, true),
			others: []member.Event{arrives}, arrives: crd("ConfigMap", "True"), condition: "could not find the requested resource",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t)
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
			var called []string
			w.waits.reopen(func(r reconcile.Request) { called = append(called, r.String()) })
			now := time.Unix(1000, 0)
			w.waits.now = func() time.Time { return now }
			fails := true
			m.noKind = tc.noKind
			m.before = func(call string) error {
				if fails && strings.HasPrefix(call, "create") {
					return tc.create
				}
				return nil
			}
			look := func(reason string, writes int) {
				t.Helper()
				result, err := w.reconcile(t)
				if err != nil || result.RequeueAfter < minWait || result.RequeueAfter > maxWait {
					t.Errorf("%s\n%s: it is looked at again by itself, soon, and nothing failed: %v, %v", tc.reason, reason, result, err)
				}
				if got := len(w.take()); got != writes {
					t.Errorf("%s\n%s: %d writes, want %d", tc.reason, reason, got, writes)
				}
			}
			look("at first nobody needs to know", 0)
			if got := w.events.take(); got != nil {
				t.Errorf("%s\nbut it is told: %v", tc.reason, got)
			}
			now = now.Add(minWait - 1)
			look("nor soon after", 0)
			now = now.Add(1)
			look("then they do", 1)
			if c := meta.FindStatusCondition(w.work(t).Status.Conditions, "Applied"); c == nil || !strings.Contains(c.Message, tc.condition) {
				t.Errorf("%s\nthe condition says why: %v", tc.reason, c)
			}
			if got := w.events.take(); len(got) != 2 || !strings.Contains(got[1], "SyncFailed") {
				t.Errorf("%s\nso does an event: %v", tc.reason, got)
			}
			look("but once", 0)
			if got := w.events.take(); got != nil {
				t.Errorf("%s\nbut it is told again: %v", tc.reason, got)
			}
			for _, e := range tc.others {
				w.arrived(e)
			}
			if called != nil {
				t.Errorf("%s\nother things are not waited for, but %v is called", tc.reason, called)
			}
			m.noKind, fails = nil, false
			w.arrived(tc.arrives)
			w.arrived(tc.arrives)
			if diff := cmp.Diff([]string{"karmada-es-m1/w"}, called); diff != "" {
				t.Errorf("%s\nwho waits is called when it comes (-want +got):\n%s", tc.reason, diff)
			}
			if result, err := w.reconcile(t); err != nil || result.RequeueAfter > 0 || m.get(t, config("v")) == nil {
				t.Errorf("%s\nand gets there: %v, %v", tc.reason, result, err)
			}
			if len(w.waits.works) > 0 || len(w.waits.lacks) > 0 {
				t.Errorf("%s\nnobody waits any more: %v", tc.reason, w.waits)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	w := newWaits()
	now := time.Unix(1000, 0)
	w.now = func() time.Time { return now }
	var called []string
	w.reopen(func(r reconcile.Request) { called = append(called, r.Name) })
	a, b := lack{cluster: "m1", namespace: "a"}, lack{cluster: "m1", namespace: "b"}
	for i := range 1000 {
		waited, after := w.enter(request("m1", i), []lack{a})
		if waited != 0 || after < minWait || after > maxWait || i > 20 && i < 100 && after != time.Duration(i+1)*eachWaits {
			t.Errorf("the %d. asks after %s: the more there are the less often each does", i, after)
		}
	}
	now = now.Add(time.Hour)
	if waited, _ := w.enter(request("m1", 0), []lack{a, b}); waited != time.Hour {
		t.Errorf("a Work that waits again has waited for %s", waited)
	}
	w.leave(request("m1", 1))
	w.leave(request("m1", 1))
	w.came(b)
	if diff := cmp.Diff([]string{"w0"}, called); diff != "" {
		t.Errorf("who waits for several things is called by the first (-want +got):\n%s", diff)
	}
	w.came(a)
	if len(called) != 1+998 || slices.Contains(called, "w1") {
		t.Errorf("all that wait are called, but who left is not: %d", len(called))
	}
	for i := range 1000 {
		w.leave(request("m1", i))
	}
	if len(w.works) > 0 || len(w.lacks) > 0 {
		t.Error("nothing is left of who is gone")
	}
}

func TestCreatedNamespaceCallsWhoWaits(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)}))
	var called []string
	w.waits.reopen(func(r reconcile.Request) { called = append(called, r.Name) })
	w.waits.enter(request("m1", 7), []lack{{cluster: "m1", namespace: "a"}})
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"w7"}, called); diff != "" {
		t.Errorf("what was just created need not be seen first (-want +got):\n%s", diff)
	}
}

func TestTooLarge(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Request":   {"The API server takes no such request.", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"Etcd":      {"Nor does etcd.", errors.New("etcdserver: request is too large"), true},
		"Transport": {"Nor what is between the two.", errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)"), true},
		"Else":      {"Everything else may heal.", errBoom, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t)
			m.before = func(call string) error {
				if strings.HasPrefix(call, "create") {
					return tc.err
				}
				return nil
			}
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
			_, err := w.reconcile(t)
			if err == nil || errors.Is(err, reconcile.TerminalError(nil)) != tc.want {
				t.Errorf("%s\nnot tried again: %t, %v", tc.reason, !tc.want, err)
			}
			if !isFailed(w.work(t)) {
				t.Errorf("%s\nbut the Work does not say so", tc.reason)
			}
		})
	}
}

func TestStatusIsWrittenWhateverFails(t *testing.T) {
	m := newFakeMember(t)
	m.before = func(string) error { return apierrors.NewRequestEntityTooLargeError("") }
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	w.client = &failingWriter{Client: w.control}
	if _, err := w.reconcile(t); !errors.Is(err, errBoom) || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Fatalf("what could not be told yet is tried again: %v", err)
	}
}

type failingWriter struct{ client.Client }

func (*failingWriter) Status() client.SubResourceWriter { return failingStatus{} }

type failingStatus struct{ client.SubResourceWriter }

func (failingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errBoom
}

func TestFightIsSlowed(t *testing.T) {
	now := time.Unix(1000, 0)
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}, wasApplied(1)))
	w.repairs.now = func() time.Time { return now }
	at := place{gvr: configMaps, namespace: "default", name: "a"}
	var pauses []time.Duration
	var told []string
	for i := range 18 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		before := m.get(t, config(""))
		m.change(t, config(""), func(u *unstructured.Unstructured) {
			u.Object["data"] = map[string]any{"key": fmt.Sprint("theirs", i)}
		})
		_, after, drifted := w.drifted(member.Event{Cluster: "m1", GVR: configMaps, Old: before, New: m.get(t, config(""))})
		if !drifted {
			t.Fatal("somebody changed it")
		}
		pauses = append(pauses, after)
		now = now.Add(after)
		for _, e := range w.events.take() {
			if strings.Contains(e, eventDriftRepeated) {
				told = append(told, e)
			}
		}
	}
	s := time.Second
	want := []time.Duration{0, 0, 0, 0, 0, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 300 * s, 300 * s, 300 * s, 300 * s}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("who does not give up is repaired less and less often (-want +got):\n%s", diff)
	}
	if len(told) != 1 || !strings.Contains(told[0], "ConfigMap default/a had to be repaired in cluster m1 5 times") {
		t.Errorf("that is told once: %v", told)
	}
	now = now.Add(peace)
	if got := w.repairs.pause("m1", at); got != 0 {
		t.Errorf("after a while of peace it is repaired at once, not after %s", got)
	}
	w.repairs.note("m1", place{gvr: configMaps, name: "other"})
	if len(w.repairs.clusters["m1"]) != 1 {
		t.Error("what is at peace is forgotten")
	}
}

func TestDeletionsAreFightsToo(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}, wasApplied(1)))
	for range quickRepairs + 1 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if err := m.client.Delete(t.Context(), config("")); err != nil {
			t.Fatal(err)
		}
	}
	if _, after, drifted := w.drifted(member.Event{Cluster: "m1", GVR: configMaps, Old: ours(config("v"))}); !drifted || after == 0 {
		t.Errorf("what is removed again and again comes back less often: %t, %s", drifted, after)
	}
}

func TestWebhookOfMemberIsNoFight(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	// The member's API server makes "v" a "V", whoever writes it.
	m.change(t, config(""), func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"key": "V"} })
	m.ignore = true
	for range 2 * quickRepairs {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.repairs.pause("m1", place{gvr: configMaps, namespace: "default", name: "a"}); got != 0 {
		t.Errorf("a write that changes nothing is no repair, but they are put off by %s", got)
	}
	if got := w.events.take(); slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, eventDriftRepeated) }) {
		t.Errorf("and nobody fights: %v", got)
	}
}

func TestStaleWork(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}, wasApplied(1)))
	stale := w.work(t)
	m.before = func(call string) error {
		if strings.HasPrefix(call, "create") {
			return errBoom
		}
		return nil
	}
	if _, err := w.reconcile(t); err == nil || !isFailed(w.work(t)) {
		t.Fatalf("at first it fails: %v", err)
	}
	m.before = nil
	if _, err := w.Reconcile(t.Context(), stale.DeepCopy()); err != nil { // the cache lags: it says that all was well
		t.Fatal(err)
	}
	if !isApplied(w.work(t)) {
		t.Error("what the cache does not know yet must not be taken for what is written")
	}
	current := w.work(t)
	w.workChanged().Update(event.UpdateEvent{ObjectOld: stale, ObjectNew: stale})
	if len(w.written.versions) != 1 {
		t.Error("an old state of the Work says nothing")
	}
	w.workChanged().Update(event.UpdateEvent{ObjectOld: stale, ObjectNew: current})
	if len(w.written.versions) != 0 {
		t.Error("what the cache has caught up with is forgotten")
	}
	w.workChanged().Delete(event.DeleteEvent{Object: current})
	if len(m.watched) != 0 {
		t.Errorf("a Work that is gone needs no kinds: %v", m.watched)
	}
}

func TestRetryWritesWhatFailedOnly(t *testing.T) {
	deployment := obj(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"d"},"spec":{"paused":true}}`)
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{deployment, config("v")}))
	m.before = func(call string) error {
		if strings.HasPrefix(call, "create ConfigMap") {
			return errBoom
		}
		return nil
	}
	for i := range 3 {
		if _, err := w.reconcile(t); err == nil {
			t.Fatal("one of them fails")
		}
		if i == 0 { // the member fills in a default
			m.change(t, deployment, func(u *unstructured.Unstructured) {
				u.Object["spec"] = map[string]any{"paused": true, "replicas": int64(1)}
			})
		}
	}
	for _, call := range m.take() {
		if strings.HasPrefix(call, "update") {
			t.Errorf("what was applied once is not written again as something else fails: %s", call)
		}
	}
}
