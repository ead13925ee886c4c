package pending

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type option func(b *workv1alpha2.ResourceBinding)

// web is a binding of a workload, at generation 1.
func web(options ...option) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "a", Generation: 1}}
	b.Spec.Replicas = 9
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	for _, o := range options {
		o(b)
	}
	return b
}

func generation(n int64) option {
	return func(b *workv1alpha2.ResourceBinding) { b.Generation = n }
}

// on puts a binding on clusters, "name:replicas" each.
func on(list string) option {
	return func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = targets(list) }
}

func targets(list string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for t := range strings.FieldsSeq(list) {
		name, number, _ := strings.Cut(t, ":")
		n := int32(0)
		_, _ = fmt.Sscan(number, &n)
		all = append(all, workv1alpha2.TargetCluster{Name: name, Replicas: n})
	}
	return all
}

// tells is what a cluster tells of a binding; without a status there is only its
// health.
func tells(cluster string, health workv1alpha2.ResourceHealth, status string) option {
	return func(b *workv1alpha2.ResourceBinding) {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: health}
		if status != "" {
			item.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, item)
	}
}

func asking(cpu string) option {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.ReplicaRequirements.ResourceRequest["cpu"] = resource.MustParse(cpu)
	}
}

func inSets(b *workv1alpha2.ResourceBinding) {
	request := func(cpu string) *workv1alpha2.ComponentReplicaRequirements {
		return &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil
	b.Spec.Components = []workv1alpha2.Component{
		{Name: "manager", Replicas: 1, ReplicaRequirements: request("1")}, {Name: "task", Replicas: 2, ReplicaRequirements: request("3")}, {Name: "none", Replicas: 1},
	}
}

func scheduledAt(at time.Time) option {
	return func(b *workv1alpha2.ResourceBinding) {
		t := metav1.NewTime(at)
		b.Status.LastScheduledTime, b.Status.SchedulerObservedGeneration = &t, b.Generation
	}
}

// member is a cluster of 100 CPUs, ready for a year.
func member(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	room := corev1.ResourceList{"cpu": resource.MustParse("100"), "pods": resource.MustParse("1000")}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: room}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch.Add(-365 * 24 * time.Hour))}}
	for _, f := range change {
		f(c)
	}
	return c
}

// A world is a ledger with a clock, and the clusters that there are.
type world struct {
	*Ledger
	t        *testing.T
	at       time.Time
	clusters map[string]*clusterv1alpha1.Cluster
}

func newWorld(t *testing.T, clusters ...*clusterv1alpha1.Cluster) *world {
	w := &world{t: t, at: epoch, clusters: map[string]*clusterv1alpha1.Cluster{}}
	w.Ledger = New(func() time.Time { return w.at })
	for _, c := range clusters {
		w.clusters[c.Name] = c
	}
	return w
}

func (w *world) place(b binding.Object, list string) {
	w.Decide(b, func(map[string]*estimate.Reserved) ([]workv1alpha2.TargetCluster, bool) { return targets(list), true })
}

func (w *world) later(d time.Duration) { w.at = w.at.Add(d) }

func (w *world) settle() []string {
	return w.Settle(func(name string) *clusterv1alpha1.Cluster { return w.clusters[name] })
}

// summary is a new one, in which nothing is different that matters here.
func (w *world) summary(name string) {
	before := w.clusters[name]
	after := before.DeepCopy()
	after.Status.ResourceSummary.Allocating = corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", w.at.Unix()%1000+1))}
	w.clusters[name] = after
	w.ObserveCluster(before, after)
}

// room is how many CPUs are left of 100 in each cluster.
func (w *world) room() string {
	var all []string
	w.Decide(web(), func(reserved map[string]*estimate.Reserved) ([]workv1alpha2.TargetCluster, bool) {
		for name := range w.clusters {
			one := estimate.Of(&workv1alpha2.ResourceBindingSpec{ReplicaRequirements: web().Spec.ReplicaRequirements})
			all = append(all, fmt.Sprintf("%s:%d", name, estimate.General{}.Replicas(member(name), one, reserved[name])))
		}
		return nil, false
	})
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (w *world) want(room, reason string) {
	w.t.Helper()
	if got := w.room(); got != room {
		w.t.Errorf("room is %s, want %s: %s", got, room, reason)
	}
}

const (
	healthy   = workv1alpha2.ResourceHealthy
	unhealthy = workv1alpha2.ResourceUnhealthy
)

// What is decided counts at once, once, and until it shows in the cluster's numbers.
func TestLifeOfAPlacement(t *testing.T) {
	w := newWorld(t, member("m1"), member("m2"))
	first := web()
	w.Observe(nil, first)
	w.want("m1:100 m2:100", "Nothing is placed.")

	w.place(first, "m1:6 m2:3")
	w.want("m1:94 m2:97", "A decision counts before it is written.")

	written := web(generation(2), on("m1:6 m2:3"))
	w.Observe(first, written)
	w.want("m1:94 m2:97", "Once it is, it counts no more than before.")

	applied := web(generation(2), on("m1:6 m2:3"), tells("m1", unhealthy, `{"replicas":4}`))
	w.later(time.Second)
	w.Observe(written, applied)
	w.summary("m1")
	w.settle()
	w.want("m1:94 m2:97", "A summary says nothing of pods that are not there yet.")

	there := web(generation(2), on("m1:6 m2:3"), tells("m1", unhealthy, `{"replicas":6}`))
	w.Observe(applied, there)
	w.later(time.Second)
	w.summary("m1")
	w.settle()
	w.want("m1:94 m2:97", "A summary may have been made a moment before.")

	w.later(2 * time.Second)
	w.summary("m1")
	if diff := cmp.Diff([]string{"m1"}, w.settle()); diff != "" {
		t.Errorf("freed (-want +got):\n%s", diff)
	}
	w.want("m1:100 m2:97", "The next one has all of them.")

	if got := w.Forget(there); !slices.Equal(got, []string{"m2"}) {
		t.Errorf("freed %q", got)
	}
	w.want("m1:100 m2:100", "What is gone needs no room.")
	if len(w.bindings) != 0 || len(w.Ledger.clusters) != 0 {
		t.Errorf("something is left: %v, %v", w.bindings, w.Ledger.clusters)
	}
}

func TestObserve(t *testing.T) {
	type step struct{ before, after *workv1alpha2.ResourceBinding }
	cases := map[string]struct {
		reason string
		begin  func(w *world)
		steps  []step
		later  time.Duration
		want   string
	}{
		"ByOthers": {
			reason: "Who places it does not matter, nor whether a write that failed has arrived.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}}, want: "m1:95 m2:100",
		},
		"Refused": {
			reason: "What is not written does not count.",
			begin: func(w *world) {
				w.place(web(), "m1:5")
				if freed := w.Withdraw(web()); !slices.Equal(freed, []string{"m1"}) {
					w.t.Errorf("freed %q", freed)
				}
			},
			want: "m1:100 m2:100",
		},
		"Again": {
			reason: "A decision that is made again replaces the first.",
			begin: func(w *world) {
				w.place(web(), "m1:5")
				w.place(web(), "m2:4")
			},
			want: "m1:100 m2:96",
		},
		"BehindItself": {
			reason: "The cache may show the write before the events of it have come: both decisions count.",
			begin: func(w *world) {
				w.place(web(), "m1:5")
				w.place(web(generation(2), on("m1:5")), "m1:7")
			},
			want: "m1:93 m2:100",
		},
		"ScaledUp": {
			reason: "What is there already is in the numbers.",
			steps:  []step{{web(on("m1:5")), web(generation(2), on("m1:8"))}}, want: "m1:97 m2:100",
		},
		"ScaledUpTwice": {
			reason: "What is pending adds up.",
			steps:  []step{{web(on("m1:5")), web(generation(2), on("m1:8"))}, {web(generation(2), on("m1:8")), web(generation(3), on("m1:9"))}}, want: "m1:96 m2:100",
		},
		"ScaledDown": {
			reason: "What goes away frees what was pending first, and nothing else before it shows.",
			steps:  []step{{web(on("m1:5")), web(generation(2), on("m1:8"))}, {web(generation(2), on("m1:8")), web(generation(3), on("m1:1"))}}, want: "m1:100 m2:100",
		},
		"Moved": {
			reason: "What moves away is not pending where it was.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}, {web(generation(2), on("m1:5")), web(generation(3), on("m2:5"))}}, want: "m1:100 m2:95",
		},
		"Heavier": {
			reason: "Requests that change are those of what is pending, too.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}, {web(generation(2), on("m1:5")), web(generation(3), on("m1:5"), asking("2"))}}, want: "m1:90 m2:100",
		},
		"Replaced": {
			reason: "Another object of the same name is another.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}, {web(generation(2), on("m1:5")), web(on("m2:1"), func(b *workv1alpha2.ResourceBinding) { b.UID = "b" })}},
			want:   "m1:100 m2:99",
		},
		"Sets": {
			reason: "A set of components counts once for each cluster.",
			steps:  []step{{web(inSets), web(inSets, generation(2), on("m1"))}}, want: "m1:93 m2:100",
		},
		"NoWorkload": {
			reason: "What has no replicas takes no room.",
			steps:  []step{{web(), web(generation(2), on("m1"))}}, want: "m1:100 m2:100",
		},
		"StaleHealth": {
			reason: "Health may be that of what was there before.",
			steps:  []step{{web(on("m1:5"), tells("m1", healthy, "")), web(generation(2), on("m1:8"), tells("m1", healthy, ""))}}, later: time.Minute, want: "m1:97 m2:100",
		},
		"Recovered": {
			reason: "Once it was not healthy, health is news.",
			steps: []step{
				{web(on("m1:5"), tells("m1", healthy, "")), web(generation(2), on("m1:8"), tells("m1", healthy, ""))},
				{web(generation(2), on("m1:8"), tells("m1", healthy, "")), web(generation(2), on("m1:8"), tells("m1", unhealthy, ""))},
				{web(generation(2), on("m1:8"), tells("m1", unhealthy, "")), web(generation(2), on("m1:8"), tells("m1", healthy, ""))},
			},
			later: time.Minute, want: "m1:100 m2:100",
		},
		"Healthy": {
			reason: "Where nothing was before, health will do; numbers that stay the same have it.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}, {web(generation(2), on("m1:5")), web(generation(2), on("m1:5"), tells("m1", healthy, `{"observed":1}`))}},
			later:  summaryPeriod, want: "m1:100 m2:100",
		},
		"NotYet": {
			reason: "But not before they would have changed.",
			steps:  []step{{web(), web(generation(2), on("m1:5"))}, {web(generation(2), on("m1:5")), web(generation(2), on("m1:5"), tells("m1", healthy, ""))}},
			later:  summaryPeriod - time.Second, want: "m1:95 m2:100",
		},
		"Never": {
			reason: "What nothing is learnt of has its time.", steps: []step{{web(), web(generation(2), on("m1:5"))}}, later: Life, want: "m1:100 m2:100",
		},
		"Almost": {
			reason: "All of it.", steps: []step{{web(), web(generation(2), on("m1:5"))}}, later: Life - time.Second, want: "m1:95 m2:100",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, member("m1"), member("m2"))
			if tc.begin != nil {
				tc.begin(w)
			}
			for _, s := range tc.steps {
				w.Observe(s.before, s.after)
			}
			w.later(tc.later)
			w.settle()
			w.want(tc.want, tc.reason)
		})
	}
}

// A cluster that says nothing has numbers of before: time does not make them right.
func TestSilentCluster(t *testing.T) {
	silent := func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }
	back := func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions[0].LastTransitionTime = metav1.NewTime(epoch.Add(time.Hour))
	}
	w := newWorld(t, member("m1", silent), member("m2"))
	w.Observe(web(), web(generation(2), on("m1:5")))
	w.later(time.Hour)
	w.settle()
	w.want("m1:95 m2:100", "Nothing was learnt of it.")
	w.clusters["m1"] = member("m1", back)
	w.later(Life - time.Second)
	w.settle()
	w.want("m1:95 m2:100", "Its time begins when the cluster is back.")
	w.later(time.Second)
	w.settle()
	w.want("m1:100 m2:100", "And then it ends.")

	w.Observe(web(), web(generation(2), on("m1:5 m2:1")))
	delete(w.clusters, "m1")
	if got := w.settle(); !slices.Equal(got, []string{"m1"}) || len(w.Ledger.clusters) != 1 {
		t.Errorf("a cluster that is gone has no room to keep: %q, %v", got, w.Ledger.clusters)
	}
}

// A scheduler that has just begun knows from bindings what the one before it knew.
func TestRestart(t *testing.T) {
	cases := map[string]struct {
		reason  string
		binding *workv1alpha2.ResourceBinding
		later   time.Duration
		want    string
	}{
		"New":      {reason: "What is nowhere takes no room.", binding: web(), want: "m1:100 m2:100"},
		"Lately":   {reason: "What was placed lately may not show.", binding: web(on("m1:5"), scheduledAt(epoch.Add(-time.Minute))), want: "m1:95 m2:100"},
		"LongAgo":  {reason: "What was placed long ago does.", binding: web(on("m1:5"), scheduledAt(epoch.Add(-Life))), want: "m1:100 m2:100"},
		"HalfDone": {reason: "Where the clusters were written and the time was not, it has just been placed.", binding: web(on("m1:5"), scheduledAt(epoch.Add(-Life)), generation(2)), want: "m1:95 m2:100"},
		"Existing": {reason: "What is there by now shows soon.", binding: web(on("m1:5"), scheduledAt(epoch.Add(-time.Minute)), tells("m1", healthy, `{"replicas":5}`)), later: summaryPeriod, want: "m1:100 m2:100"},
		"Pending":  {reason: "What is not has the rest of its time.", binding: web(on("m1:5"), scheduledAt(epoch.Add(-time.Minute))), later: Life - time.Minute, want: "m1:100 m2:100"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, member("m1"), member("m2"))
			w.ObserveCluster(nil, member("m1"))
			for range 2 { // a watch may begin anew
				w.Observe(nil, tc.binding)
			}
			w.later(tc.later)
			w.settle()
			w.want(tc.want, tc.reason)
		})
	}
}

// Without a ledger nothing is pending, and nothing fails.
func TestNoLedger(t *testing.T) {
	var l *Ledger
	asked := false
	l.Decide(web(), func(reserved map[string]*estimate.Reserved) ([]workv1alpha2.TargetCluster, bool) {
		asked = len(reserved) == 0
		return targets("m1:1"), true
	})
	l.Withdraw(web())
	l.ObserveCluster(nil, member("m1"))
	if got := append(l.Observe(nil, web()), append(l.Forget(web()), l.Settle(nil)...)...); !asked || got != nil {
		t.Errorf("asked %t, freed %q", asked, got)
	}
}

// What counts must be the same as if it were counted anew, whatever happened.
func TestNothingLeaks(t *testing.T) {
	w := newWorld(t, member("m1"), member("m2"), member("m3"))
	now := web()
	for i := range 200 {
		list := fmt.Sprintf("m%d:%d m%d:%d", i%3+1, i%7+1, (i+1)%3+1, i%5)
		next := web(generation(int64(i+2)), on(list), asking(fmt.Sprint(i%4+1)))
		w.place(now, list)
		if i%3 == 0 {
			w.Withdraw(now)
		}
		w.Observe(now, next)
		if i%11 == 0 {
			w.Observe(nil, next)
		}
		now = next
	}
	w.Forget(now)
	w.want("m1:100 m2:100 m3:100", "All has been taken back.")
	if len(w.bindings) != 0 || len(w.Ledger.clusters) != 0 {
		t.Errorf("something is left: %v, %v", w.bindings, w.Ledger.clusters)
	}
}

func BenchmarkDecide(b *testing.B) {
	l := New(time.Now)
	for i := range 5000 {
		one := web(on(""))
		one.Name = fmt.Sprint("web-", i)
		next := one.DeepCopy()
		next.Generation, next.Spec.Clusters = 2, targets("m1:2 m2:2 m3:2")
		l.Observe(one, next)
	}
	now := web()
	for b.Loop() {
		l.Decide(now, func(map[string]*estimate.Reserved) ([]workv1alpha2.TargetCluster, bool) {
			return targets("m1:2 m2:2 m3:2"), true
		})
	}
}
