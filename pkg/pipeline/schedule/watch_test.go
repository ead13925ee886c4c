package schedule

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/pending"
)

// A notebook is a queue that notes what comes in, with its priority.
type notebook struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	in map[string]int
}

func (n *notebook) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		n.in[item.Name] = ptr.Deref(o.Priority, 0)
	}
}

func newWatcher(r client.Reader) *watcher {
	return &watcher{reader: r, scheduler: names.DefaultScheduler, byPriority: true, log: logr.Discard(), came: func(string) {}, line: &lineHolder{}}
}

func TestBindingEvents(t *testing.T) {
	suspended := func(b binding.Object) {
		b.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	}
	unclaimed := func(b binding.Object) { b.SetLabels(nil) }
	urgent := func(b binding.Object) { b.BindingSpec().SchedulePriority = &workv1alpha2.SchedulePriority{Priority: 7} }
	status := func(b binding.Object) { b.BindingStatus().SchedulerObservedGeneration = 9 }
	cases := map[string]struct {
		reason        string
		before, after binding.Object // without before it is new
		want          map[string]int
	}{
		"New":         {reason: "What is new is scheduled.", after: workload(), want: map[string]int{"web-deployment": 0}},
		"NewGlobal":   {reason: "Of either scope.", after: global(), want: map[string]int{"cfg-configmap": 0}},
		"NewUrgent":   {reason: "By its priority.", after: workload(urgent), want: map[string]int{"web-deployment": 7}},
		"NewAttached": {reason: "Unless it only follows others.", after: workload(unclaimed)},
		"Edited":      {reason: "A new spec is looked at.", before: workload(), after: workload(edited), want: map[string]int{"web-deployment": 0}},
		"Status":      {reason: "A new status is not.", before: workload(), after: workload(status)},
		"Claimed":     {reason: "What has come to be ours is as if it were new.", before: workload(unclaimed), after: workload(), want: map[string]int{"web-deployment": 0}},
		"Resumed":     {reason: "The same for what was held back.", before: workload(suspended), after: workload(), want: map[string]int{"web-deployment": 0}},
		"Suspended":   {reason: "What is held back is let alone.", before: workload(), after: workload(suspended, edited)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, h := &notebook{in: map[string]int{}}, newWatcher(nil).bindings()
			if tc.before == nil {
				h.Create(t.Context(), event.CreateEvent{Object: tc.after, IsInInitialList: true}, q)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			if tc.want == nil {
				tc.want = map[string]int{}
			}
			if diff := cmp.Diff(tc.want, q.in); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// spec: behaviour/04 4.2
func TestClusterEvents(t *testing.T) {
	named := func(name string, options ...option) *workv1alpha2.ResourceBinding {
		b := workload(options...)
		b.Name = name
		return b
	}
	bindings := []client.Object{
		named("any", scheduled),
		named("m1", toClusters("m1"), scheduled),
		named("m2", toClusters("m2"), scheduled),
		named("on-m1", toClusters("m2"), on("m1:3"), scheduled),
		named("term-m1", terms("m1", "m2"), inTermOf("m1"), scheduled),
		named("term-m2", terms("m1", "m2"), inTermOf("m2"), scheduled),
		named("term-new", terms("m2"), inTermOf("m2")),
		named("attached", func(b binding.Object) { b.BindingSpec().Placement = nil }),
		named("others", func(b binding.Object) { b.BindingSpec().SchedulerName = "mine" }),
		global(scheduled),
	}
	generation := func(n int64) clusterOption {
		return func(c *clusterv1alpha1.Cluster) { c.Generation = n }
	}
	label := func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }
	full := func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": quantity("1")}}
	}
	noDeployments := func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = c.Status.APIEnablements[1:] }
	mayUseM1 := []string{"any", "cfg-configmap", "m1", "term-m1", "term-new"}
	cases := map[string]struct {
		reason        string
		before, after *clusterv1alpha1.Cluster
		want          []string
	}{
		"Status":       {reason: "Statuses change all the time.", before: cluster("m1"), after: cluster("m1", full)},
		"Labels":       {reason: "Labels decide about affinity.", before: cluster("m1"), after: cluster("m1", label), want: mayUseM1},
		"Spec":         {reason: "So does the spec, and it has the taints.", before: cluster("m1", generation(1)), after: cluster("m1", generation(2)), want: mayUseM1},
		"Leaves":       {reason: "Also what is there against its affinity must leave.", before: cluster("m1"), after: cluster("m1", leaving), want: []string{"any", "cfg-configmap", "m1", "on-m1", "term-m1", "term-new"}},
		"StillLeaving": {reason: "Once.", before: cluster("m1", leaving), after: cluster("m1", leaving)},
		"NewKind": {
			reason: "A kind that a cluster has come to serve may go there, others are not concerned.",
			before: cluster("m1", noDeployments), after: cluster("m1"), want: []string{"any", "m1", "term-m1", "term-new"},
		},
		"LostKind": {reason: "One that it has stopped to serve stays where it is.", before: cluster("m1"), after: cluster("m1", noDeployments)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := &notebook{in: map[string]int{}}
			newWatcher(newWorld(t, bindings...).client).clusters().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			var got []string
			for name := range q.in {
				got = append(got, name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What found no room is tried again as soon as a cluster that it may use has more:
// by its numbers, or since what was to come there does not.
func TestRoomComes(t *testing.T) {
	tiny := func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = quantity("1m")
	}
	cpus := func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = quantity("100")
	}
	taking := on("m1:2")
	cases := map[string]struct {
		reason string
		event  func(ctx context.Context, w *watcher, q queue)
		want   bool
	}{
		"More": {reason: "There is room for more.", want: true, event: func(ctx context.Context, w *watcher, q queue) {
			w.clusters().Update(ctx, event.UpdateEvent{ObjectOld: cluster("m1", withRoom("1"), cpus), ObjectNew: cluster("m1", withRoom("2"), cpus)}, q)
		}},
		"Less": {reason: "There is room for fewer.", event: func(ctx context.Context, w *watcher, q queue) {
			w.clusters().Update(ctx, event.UpdateEvent{ObjectOld: cluster("m1", withRoom("2"), cpus), ObjectNew: cluster("m1", withRoom("1"), cpus)}, q)
		}},
		"OfOtherThings": {reason: "More of what it does not lack is no help.", event: func(ctx context.Context, w *watcher, q queue) {
			w.clusters().Update(ctx, event.UpdateEvent{ObjectOld: cluster("m1", withRoom("1"), tiny), ObjectNew: cluster("m1", withRoom("2"), tiny)}, q)
		}},
		"Elsewhere": {reason: "Nor is room where it must not go.", event: func(ctx context.Context, w *watcher, q queue) {
			w.clusters().Update(ctx, event.UpdateEvent{ObjectOld: cluster("m2", withRoom("1"), cpus), ObjectNew: cluster("m2", withRoom("2"), cpus)}, q)
		}},
		"Gone": {reason: "Another binding, whose replicas do not show yet, goes.", want: true, event: func(ctx context.Context, w *watcher, q queue) {
			w.bindings().Delete(ctx, event.DeleteEvent{Object: workload(taking, edited)}, q)
		}},
		"Over": {reason: "What is pending there never comes.", want: true, event: func(ctx context.Context, w *watcher, _ queue) {
			now := epoch
			w.pending = pending.New(func() time.Time { return now })
			w.pending.Observe(workload(), workload(taking, edited))
			now = now.Add(pending.Life)
			w.settleOnce(ctx)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ready := func(c *clusterv1alpha1.Cluster) {
				c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: *ago(time.Hour)}}
			}
			world := newWorld(t, cluster("m1", withRoom("2"), ready))
			w := newWatcher(world.client)
			l, _ := testLine(t)
			w.line.Store(l)
			w.pending = pending.New(func() time.Time { return epoch })
			w.pending.Observe(workload(), workload(taking, edited))

			b := workload(toClusters("m1"), func(b binding.Object) {
				b.SetName("waits")
				b.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: quantity("1")}}
			})
			r := world.reconciler(nil, Options{})
			l.park(requestOf(b), r.helps(b))
			l.AddAfter(requestOf(b), unschedulableRetry)
			tc.event(t.Context(), w, l)
			if got := l.pending()[placeUnschedulable] == 0; got != tc.want {
				t.Errorf("let go: %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// A Cluster that goes without a word leaves its bindings to be scheduled again.
func TestForcedCluster(t *testing.T) {
	q := &notebook{in: map[string]int{}}
	newWatcher(newWorld(t, workload(on("m1:3"), toClusters("m2"), scheduled), global(on("m2"), scheduled)).client).clusters().
		Delete(t.Context(), event.DeleteEvent{Object: cluster("m1")}, q)
	if diff := cmp.Diff(map[string]int{"web-deployment": 0}, q.in); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
}

// Bindings leave the queue by priority, then by age; who comes again does not
// wait for the end of its delay.
func TestOrder(t *testing.T) {
	o, err := Options{Registerer: newRegistry()}.complete()
	if err != nil {
		t.Fatal(err)
	}
	q := newLine(logr.Discard(), "test", o.RateLimiter)
	defer q.ShutDown()
	w := newWatcher(nil)
	add := func(name string, priority int32) {
		b := workload(func(b binding.Object) {
			b.BindingSpec().SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
		})
		b.Name = name
		w.enqueue(q, b, incomingAdd)
	}
	failed := workload()
	failed.Name = "failed"
	q.AddWithOpts(priorityqueue.AddOpts{After: unschedulableRetry, Priority: ptr.To(-1)}, requestFor(failed))
	add("a", 0)
	add("b", 5)
	add("c", 0)
	add("failed", -1)
	var got []string
	for range 4 {
		item, _ := q.Get()
		got = append(got, item.Name)
		q.Done(item)
	}
	if diff := cmp.Diff([]string{"b", "a", "c", "failed"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// spec: behaviour/04 4.11
func TestBackoff(t *testing.T) {
	o, err := Options{Registerer: newRegistry()}.complete()
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for range 6 {
		got = append(got, o.RateLimiter.When(requestFor(workload())))
	}
	want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

// Without priorities a plain queue does.
func TestPlainQueue(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	newWatcher(nil).enqueue(q, workload(), incomingAdd)
	if item, _ := q.Get(); item != requestFor(workload()) {
		t.Errorf("got %v", item)
	}
}
