package apply

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

func TestScope(t *testing.T) {
	manager, agent := Options{}, Options{Cluster: "m1"}
	cases := map[string]struct {
		reason    string
		options   Options
		cluster   *clusterv1alpha1.Cluster
		namespace string
		serves    bool
		inScope   bool
	}{
		"ManagerPush":         {"The manager reaches every push member.", manager, aCluster(), "karmada-es-m1", true, true},
		"ManagerPull":         {"A pull member has an agent, which only the Cluster tells.", manager, aCluster(pull), "karmada-es-m1", false, true},
		"AgentPull":           {"An agent serves its own cluster.", agent, aCluster(pull), "karmada-es-m1", true, true},
		"AgentOther":          {"And no other.", Options{Cluster: "m2"}, aCluster(pull), "karmada-es-m1", false, false},
		"NoExecutionNamspace": {"Works elsewhere are for no cluster.", manager, aCluster(), "default", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.options.serves(tc.cluster); got != tc.serves {
				t.Errorf("%s\nserves the cluster: %t", tc.reason, got)
			}
			w := &workv1alpha1.Work{}
			w.Namespace = tc.namespace
			if got := tc.options.inScope(w); got != tc.inScope {
				t.Errorf("%s\nlooks at the Work: %t", tc.reason, got)
			}
		})
	}
}

func TestIncompleteOptions(t *testing.T) {
	for name, o := range map[string]Options{"NoPool": {Registerer: prometheus.NewRegistry()}, "NoRegisterer": {Pool: &member.Pool{}}} {
		if err := Setup(nil, o); err == nil {
			t.Errorf("%s: what is missing is told at start, not by a crash", name)
		}
	}
	o, err := Options{Pool: &member.Pool{}, Registerer: prometheus.NewRegistry()}.complete()
	if err != nil || o.Concurrency != 1 || o.Interpreter == nil {
		t.Errorf("everything else has a default: %+v, %v", o, err)
	}
}

func TestWorkChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"Spec":   {"The member may have to change.", func(w *workv1alpha1.Work) { w.Generation++ }, true},
		"Delete": {"It has to be withdrawn.", deleted, true},
		"Status": {"That is our own doing.", wasApplied(1), false},
		"Labels": {"They are not for the member.", func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "b"} }, false},
	}
	w := newWorld(t, newFakeMember(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := aWork(t, nil)
			after := before.DeepCopy()
			tc.change(after)
			if got := w.workChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestClusterChanged(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after *clusterv1alpha1.Cluster
		want          bool
	}{
		"Ready":    {"What waited for it goes on.", aCluster(notReady), aCluster(), true},
		"Leaving":  {"What waited for a dead member need not any more.", aCluster(notReady), aCluster(notReady, leaving), true},
		"Capacity": {"It changes all the time.", aCluster(), aCluster(func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }), false},
	}
	w := newWorld(t, newFakeMember(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := w.clusterChanged().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
	at := place{gvr: configMaps, name: "a"}
	w.ledger.set("m1", at, entry{version: "1"})
	if !w.clusterChanged().Delete(event.DeleteEvent{Object: aCluster()}) || w.ledger.get("m1", at).version != "" {
		t.Error("what is known of a cluster goes with it, and its Works are let go")
	}
}

func TestWorksOf(t *testing.T) {
	other := aWork(t, nil)
	other.Namespace = "karmada-es-m2"
	w := newWorld(t, newFakeMember(t), aWork(t, nil), other)
	got := worksOf(w.control)(t.Context(), aCluster())
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Works of a cluster are in its namespace (-want +got):\n%s", diff)
	}
}

func TestDurationsAreShared(t *testing.T) {
	r := prometheus.NewRegistry()
	first, err := newDurations(r)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newDurations(r)
	if err != nil || first != second {
		t.Errorf("two roles of a process share the metric: %v", err)
	}
	taken := prometheus.NewRegistry()
	if err := taken.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "work_sync_workload_duration_seconds", Help: "else"})); err != nil {
		t.Fatal(err)
	}
	if _, err := newDurations(taken); err == nil {
		t.Error("a name that means something else is an error")
	}
}

var _ client.Reader = (*failingReader)(nil)

func request(cluster string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "karmada-es-" + cluster, Name: fmt.Sprintf("w%d", n)}}
}

func TestLanes(t *testing.T) {
	l := newLanes(2)
	var again []string
	l.reopen(func(r reconcile.Request) { again = append(again, r.String()) })
	enter := func(want bool, reason string, cluster string, n int) {
		t.Helper()
		if got := l.enter(request(cluster, n)); got != want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
	leave := func(silent bool, reason string, want ...string) {
		t.Helper()
		again = nil
		l.leave("karmada-es-m1", silent)
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	enter(true, "there is room", "m1", 1)
	enter(true, "for two", "m1", 2)
	enter(false, "a third waits", "m1", 3)
	enter(false, "and is not noted twice", "m1", 3)
	enter(false, "so does a fourth", "m1", 4)
	enter(true, "another member has its own room", "m2", 1)
	leave(false, "who leaves makes room for the first that waits", "karmada-es-m1/w3")
	enter(true, "which takes it", "m1", 3)
	leave(true, "a member that hangs gets no more than one, and one is there")
	leave(true, "when that fails as well, one tries again", "karmada-es-m1/w4")
	enter(true, "it does", "m1", 4)
	enter(false, "nobody else", "m1", 5)
	enter(false, "nobody", "m1", 6)
	enter(false, "at all", "m1", 7)
	leave(false, "an answer lets everybody in", "karmada-es-m1/w5", "karmada-es-m1/w6")
	enter(true, "who was called", "m1", 5)
	enter(true, "comes", "m1", 6)
	leave(false, "and so on", "karmada-es-m1/w7")
	leave(false, "until nobody waits")
	if _, ok := l.lanes["karmada-es-m1"]; ok {
		t.Error("a lane that nobody uses is no more")
	}
}

func TestLanesWrap(t *testing.T) {
	l := newLanes(1)
	var again []reconcile.Request
	l.reopen(func(r reconcile.Request) { again = append(again, r) })
	inside, release := make(chan bool), make(chan error)
	wrapped := l.wrap(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		inside <- true
		return reconcile.Result{}, <-release
	}))
	done := make(chan error)
	start := func(n int) {
		go func() {
			_, err := wrapped.Reconcile(t.Context(), request("m1", n))
			done <- err
		}()
	}
	start(1)
	<-inside
	start(2)
	if err := <-done; err != nil {
		t.Errorf("who finds no room keeps no worker: %v", err)
	}
	silence := &url.Error{Op: "Get", URL: "x", Err: context.DeadlineExceeded}
	release <- fmt.Errorf("apply: %w", silence)
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the outcome is passed on: %v", err)
	}
	if !slices.Contains(again, request("m1", 2)) {
		t.Error("who waited is called")
	}
	if !l.lanes["karmada-es-m1"].silent || isSilence(errBoom) {
		t.Error("no answer is told from a bad one")
	}
}
