package schedule

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func item(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// testLine returns a line with a clock that stands still.
func testLine(t *testing.T) (l *line, now *time.Time) {
	t.Helper()
	l = newLine(logr.Discard(), "test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax))
	t.Cleanup(l.ShutDown)
	at := time.Now()
	l.now = func() time.Time { return at }
	return l, &at
}

// Nobody gets a binding while another is being decided, however many ask; a binding
// that is more urgent and comes meanwhile is next.
func TestOneDecisionAtATime(t *testing.T) {
	l, _ := testLine(t)
	l.Add(item("a"))
	l.Add(item("b"))
	first, _ := l.Get()
	got := make(chan reconcile.Request)
	for range 2 {
		go func() {
			next, _ := l.Get()
			got <- next
		}()
	}
	l.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(9)}, item("urgent"))
	l.decided(first)
	if next := <-got; next != item("urgent") {
		t.Errorf("got %v: the urgent one is decided before what came earlier", next)
	}
	select {
	case next := <-got:
		t.Errorf("got %v while another is being decided", next)
	default:
	}
	l.decided(first) // it has had its turn
	l.Done(first)
	select {
	case next := <-got:
		t.Errorf("got %v while another is being decided", next)
	default:
	}
	l.Done(item("urgent")) // who panics does not say that it has decided
	if next := <-got; next != item("b") {
		t.Errorf("got %v", next)
	}
}

// Those who wait are told when it ends; twice does no harm.
func TestShutDown(t *testing.T) {
	l, _ := testLine(t)
	l.Add(item("a"))
	if next, shutdown := l.Get(); next != item("a") || shutdown {
		t.Fatalf("got %v, %t", next, shutdown)
	}
	ended := make(chan bool)
	for range 3 {
		go func() {
			_, shutdown := l.Get()
			ended <- shutdown
		}()
	}
	l.ShutDown()
	l.ShutDownWithDrain()
	for range 3 {
		if !<-ended {
			t.Error("got a binding after the end")
		}
	}
	l.decided(item("a"))
	if _, shutdown := l.Get(); !shutdown {
		t.Error("got a binding after the end")
	}
}

// spec: behaviour/04 4.1 scheduler_pending_bindings
func TestPending(t *testing.T) {
	l, now := testLine(t)
	helps := func(_, c *clusterv1alpha1.Cluster) bool { return c.Name == "m1" }
	check := func(reason string, active, backoff, unschedulable int) {
		t.Helper()
		got := l.pending()
		if diff := cmp.Diff([]int{active, backoff, unschedulable}, []int{got[placeActive], got[placeBackoff], got[placeUnschedulable]}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	l.Add(item("new"))
	l.Add(item("new"))
	l.AddRateLimited(item("failed"))
	l.park(item("full"), helps)
	l.AddAfter(item("full"), unschedulableRetry)
	check("Each counts once, where it is.", 1, 1, 1)

	l.AddAfter(item("new"), time.Minute)
	check("What is there already is not held back.", 1, 1, 1)

	l.roomIn(nil, cluster("m2"))
	check("A cluster that does not help leaves it where it is.", 1, 1, 1)
	l.roomIn(nil, cluster("m1"))
	check("One that does lets it go, but not at once.", 1, 2, 0)
	l.roomIn(nil, cluster("m1"))
	check("Once.", 1, 2, 0)

	*now = now.Add(roomRetry)
	check("Time makes all of them ready.", 3, 0, 0)

	first, _ := l.Get()
	check("What has left does not count.", 2, 0, 0)
	l.Done(first)
	if l := (*line)(nil); l.pending() != nil {
		t.Error("where there is no line, nothing is in it")
	}
}

// What found no room comes back at once if it has waited for long enough, in the
// place that its priority gives it.
func TestRoom(t *testing.T) {
	l, now := testLine(t)
	anything := func(_, _ *clusterv1alpha1.Cluster) bool { return true }
	for name, priority := range map[string]int{"low": 1, "high": 5} {
		l.park(item(name), anything)
		l.AddWithOpts(priorityqueue.AddOpts{After: unschedulableRetry, Priority: ptr.To(priority)}, item(name))
	}
	l.park(item("gone"), anything)
	l.unpark(item("gone"))
	*now = now.Add(roomRetry)
	l.roomIn(nil, cluster("m1"))
	var got []string
	for range 2 {
		next, _ := l.Get()
		got = append(got, next.Name)
		l.Done(next)
	}
	if !slices.Equal(got, []string{"high", "low"}) {
		t.Errorf("got %q", got)
	}
}
