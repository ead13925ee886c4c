package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

func TestWorkOf(t *testing.T) {
	marked := ours(config("a"), "")
	cases := map[string]struct {
		reason   string
		cluster  string
		old, new *unstructured.Unstructured
		want     string
	}{
		"Added":   {"What is new has a status.", "m1", nil, marked, "karmada-es-m1/w"},
		"Changed": {"So has what is changed.", "m1", marked, marked, "karmada-es-m1/w"},
		"Removed": {"What has gone has none; another stage puts it back.", "m1", marked, nil, ""},
		"Foreign": {"A member cannot speak for another.", "m2", nil, marked, ""},
		"NoWork":  {"Nobody knows whose it is.", "m1", nil, config("a"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request, ok := workOf(member.Event{Cluster: tc.cluster, GVR: configMaps, Old: tc.old, New: tc.new})
			if ok != (tc.want != "") || ok && request.String() != tc.want {
				t.Errorf("%s\ngot %s, %t", tc.reason, request, ok)
			}
		})
	}
}

func TestWorkChanged(t *testing.T) {
	failed := func(w *workv1alpha1.Work) { w.Status.Conditions[0].Status = metav1.ConditionFalse }
	cases := map[string]struct {
		reason        string
		before, after func(*workv1alpha1.Work)
		want          bool
	}{
		"Applied":      {"Now there is something to be seen.", notApplied, applied(1), true},
		"AppliedAgain": {"It may have other manifests.", applied(1), applied(2), true},
		"Healed":       {"As well.", failed, applied(1), true},
		"Failed":       {"What is there is there.", applied(1), failed, false},
		"Status":       {"That is our own doing.", applied(1), told(`{` + configID + `}`), false},
	}
	w := newWorld(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: aWork(t, nil, tc.before), ObjectNew: aWork(t, nil, tc.after)}
			if got := w.workChanged().Update(e); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
	work := aWork(t, nil)
	key := types.NamespacedName{Namespace: work.Namespace, Name: work.Name}
	w.windows.hold(key)
	w.failures.note(key, "boom")
	w.member.watched["w"] = nil
	if w.workChanged().Delete(event.DeleteEvent{Object: work}) || len(w.windows.works)+len(w.failures.works)+len(w.member.watched) > 0 {
		t.Error("what is known about a Work goes with it")
	}
	if !w.workChanged().Create(event.CreateEvent{Object: work}) {
		t.Error("after a start each Work is looked at")
	}
}

func TestBecameReady(t *testing.T) {
	cases := map[string]struct {
		reason        string
		before, after *clusterv1alpha1.Cluster
		want          bool
	}{
		"Ready": {"What it had to say meanwhile is told.", aCluster(notReady), aCluster(), true},
		"Lost":  {"It says nothing.", aCluster(), aCluster(notReady), false},
		"Same":  {"Capacity changes all the time.", aCluster(), aCluster(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := becameReady().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
	if becameReady().Create(event.CreateEvent{Object: aCluster()}) || becameReady().Delete(event.DeleteEvent{Object: aCluster()}) {
		t.Error("a Cluster that comes or goes brings no status")
	}
}

func TestWorksOf(t *testing.T) {
	other := aWork(t, nil)
	other.Namespace = "karmada-es-m2"
	w := newWorld(t, aWork(t, nil), other)
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}}}
	if diff := cmp.Diff(want, worksOf(w.control)(t.Context(), aCluster())); diff != "" {
		t.Errorf("the Works of a cluster are in its namespace (-want +got):\n%s", diff)
	}
}

func TestScope(t *testing.T) {
	cases := map[string]struct {
		reason         string
		options        Options
		cluster        *clusterv1alpha1.Cluster
		namespace      string
		serves, covers bool
	}{
		"ManagerPush": {"The manager observes every push member.", Options{}, aCluster(), "karmada-es-m1", true, true},
		"ManagerPull": {"A pull member has an agent, which only the Cluster tells.", Options{}, aCluster(pull), "karmada-es-m1", false, true},
		"AgentPull":   {"An agent observes its own cluster.", Options{Cluster: "m1"}, aCluster(pull), "karmada-es-m1", true, true},
		"AgentOther":  {"And no other.", Options{Cluster: "m2"}, aCluster(pull), "karmada-es-m1", false, false},
		"Elsewhere":   {"Works elsewhere are for no cluster.", Options{}, aCluster(), "default", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := aWork(t, nil)
			w.Namespace = tc.namespace
			if serves, covers := tc.options.serves(tc.cluster), tc.options.inScope(w); serves != tc.serves || covers != tc.covers {
				t.Errorf("%s\nserves the cluster: %t, looks at the Work: %t", tc.reason, serves, covers)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	if err := Setup(nil, Options{}); err == nil {
		t.Error("what is missing is told at start, not by a crash")
	}
	o, err := Options{Pool: &member.Pool{}}.complete()
	if err != nil || o.Concurrency != 1 || o.Interpreter == nil {
		t.Errorf("everything else has a default: %+v, %v", o, err)
	}
}

func TestSweep(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWindows()
	w.now = func() time.Time { return now }
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	w.wrote(key("a"), "1", true)
	w.hold(key("b"))
	now = now.Add(giveUp)
	w.wrote(key("c"), "1", true)
	if _, ok := w.works[key("a")]; ok || len(w.works) != 2 {
		t.Errorf("what has been quiet is forgotten, what is put off is not: %v", w.works)
	}
}

func TestStatuses(t *testing.T) {
	cases := map[string]struct {
		reason, a, b string
		want         bool
	}{
		"Order":   {"How it is written is no matter.", `{"a":1,"b":[1]}`, `{"b": [1], "a": 1}`, true},
		"None":    {"Nothing is nothing, however it is written.", `null`, ``, true},
		"NoneNot": {"But it is not something.", `null`, `{}`, false},
		"Value":   {"Values are.", `{"a":1}`, `{"a":2}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := func(s string) *runtime.RawExtension {
				if s == "" {
					return nil
				}
				return &runtime.RawExtension{Raw: []byte(s)}
			}
			if got := sameStatus(of(tc.a), of(tc.b)); got != tc.want || sameStatus(of(tc.b), of(tc.a)) != got {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
	if _, err := withoutNulls(&runtime.RawExtension{Raw: []byte("{")}); err == nil {
		t.Error("what is no JSON is not written")
	}
}
