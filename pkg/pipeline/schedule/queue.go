package schedule

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// Delays before a binding is tried again (spec: behaviour/04 4.11).
const (
	retryBase = time.Second
	retryMax  = 10 * time.Second
	// unschedulableRetry is when a binding that no cluster has room for is tried
	// again by itself.
	unschedulableRetry = 5 * time.Minute
	// roomRetry is how long it waits at least when room has come up meanwhile.
	roomRetry = 10 * time.Second
)

// A line is the queue of bindings. They leave it by priority, those of the same
// priority by age, and one at a time: nobody gets the next one before the last one
// has been decided. So what is decided does not depend on how many there are who
// write decisions, and a binding that is urgent waits for one decision at most.
//
// What failed comes back later by itself, sooner when it is added again. What no
// cluster has room for also comes back when one has.
type line struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	now     func() time.Time

	turn    chan struct{} // holds one value while nobody decides
	stopped chan struct{}
	stop    sync.Once

	mu       sync.Mutex
	deciding *reconcile.Request
	waiting  map[reconcile.Request]wait
	parked   map[reconcile.Request]parked
}

// A lineHolder has the line once the controller has begun; until then, and in tests
// that have none, it is nil.
type lineHolder struct {
	atomic.Pointer[line]
}

// newQueue is what a controller makes its queue with.
func (h *lineHolder) newQueue(log logr.Logger) func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
		l := newLine(log, name, limiter)
		h.Store(l)
		return l
	}
}

// A wait is a binding in the line.
type wait struct {
	where place
	until time.Time // zero: it is not held back
}

// A place is where in the line a binding is, as metrics call it.
type place string

const (
	placeActive        place = "active"
	placeBackoff       place = "backoff"
	placeUnschedulable place = "unschedulable"
)

// A parked binding found no room.
type parked struct {
	since time.Time
	// helps says whether a change of a cluster may give it room; before is nil
	// when something else has changed that takes room there.
	helps helpful
}

type helpful = func(before, after *clusterv1alpha1.Cluster) bool

func newLine(log logr.Logger, name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) *line {
	l := &line{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) {
			o.Log, o.RateLimiter = log, limiter
		}),
		limiter: limiter,
		now:     time.Now,
		turn:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		waiting: map[reconcile.Request]wait{},
		parked:  map[reconcile.Request]parked{},
	}
	l.turn <- struct{}{}
	return l
}

// GetWithPriority returns the next binding, once the one before has been decided.
func (l *line) GetWithPriority() (reconcile.Request, int, bool) {
	select {
	case <-l.turn:
	case <-l.stopped:
		return reconcile.Request{}, 0, true
	}
	item, priority, shutdown := l.PriorityQueue.GetWithPriority()
	if shutdown {
		l.turn <- struct{}{}
		return item, priority, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deciding = &item
	delete(l.waiting, item)
	return item, priority, false
}

// Get is GetWithPriority for those who do not care.
func (l *line) Get() (reconcile.Request, bool) {
	item, _, shutdown := l.GetWithPriority()
	return item, shutdown
}

// decided lets the next binding go. It is called for each one that has left the
// line; calling it twice does no harm. A nil *line has none.
func (l *line) decided(item reconcile.Request) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deciding != nil && *l.deciding == item {
		l.deciding = nil
		l.turn <- struct{}{}
	}
}

// Done says that nobody works on a binding any more, which has been decided then,
// whatever happened.
func (l *line) Done(item reconcile.Request) {
	l.decided(item)
	l.PriorityQueue.Done(item)
}

// AddWithOpts adds bindings.
func (l *line) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		l.add(o, item)
	}
}

// Add adds a binding to be decided as soon as it can be.
func (l *line) Add(item reconcile.Request) { l.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter adds a binding that is held back.
func (l *line) AddAfter(item reconcile.Request, after time.Duration) {
	l.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited adds a binding that failed.
func (l *line) AddRateLimited(item reconcile.Request) {
	l.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (l *line) add(o priorityqueue.AddOpts, item reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.RateLimited {
		after := l.limiter.When(item)
		if o.After == 0 || after < o.After {
			o.After = after
		}
		o.RateLimited = false
	}
	w := wait{where: placeActive}
	if o.After > 0 {
		w = wait{where: placeBackoff, until: l.now().Add(o.After)}
		if _, ok := l.parked[item]; ok {
			w.where = placeUnschedulable
		}
	}
	if there, ok := l.waiting[item]; !ok || !there.until.IsZero() && w.until.Before(there.until) {
		l.waiting[item] = w
	}
	l.PriorityQueue.AddWithOpts(o, item)
}

// park notes that a binding found no room, and what would help it. It ends with
// unpark.
func (l *line) park(item reconcile.Request, helps helpful) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parked[item] = parked{since: l.now(), helps: helps}
}

// unpark notes that a binding is not short of room.
func (l *line) unpark(item reconcile.Request) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.parked, item)
}

// roomIn lets parked bindings go that a change of a cluster may give room, though
// none sooner than ten seconds after its last try: clusters' numbers never rest.
func (l *line) roomIn(before, after *clusterv1alpha1.Cluster) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for item, p := range l.parked {
		w, ok := l.waiting[item]
		if !ok || w.where != placeUnschedulable || !p.helps(before, after) {
			continue
		}
		after := max(0, p.since.Add(roomRetry).Sub(now))
		l.waiting[item] = wait{where: placeBackoff, until: now.Add(after)}
		if after == 0 {
			l.waiting[item] = wait{where: placeActive}
		}
		// The queue keeps the priority that the binding has there.
		l.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: ptr.To(lowest)}, item)
	}
}

// lowest is a priority that raises that of no binding in the queue.
const lowest = -1 << 31

// pending counts the bindings in the line.
func (l *line) pending() map[place]int {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, counts := l.now(), map[place]int{}
	for _, w := range l.waiting {
		if w.until.After(now) {
			counts[w.where]++
		} else {
			counts[placeActive]++
		}
	}
	return counts
}

// ShutDown ends it for everybody who waits.
func (l *line) ShutDown() {
	l.stop.Do(func() {
		close(l.stopped)
		l.PriorityQueue.ShutDown()
	})
}

// ShutDownWithDrain is ShutDown: what is not decided now is when the scheduler is
// back.
func (l *line) ShutDownWithDrain() { l.ShutDown() }
