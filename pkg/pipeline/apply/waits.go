package apply

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// eachWaits is by how much each Work that waits for the same thing makes the
	// time longer after which they look again: together they ask five times a
	// second at most.
	eachWaits = 200 * time.Millisecond
	minWait   = 2 * time.Second
	maxWait   = time.Minute
)

// A lack is what a member has to have before an object can be created there: a
// namespace, or a kind.
type lack struct {
	cluster   string
	namespace string
	kind      schema.GroupKind
}

// A lackingError says that an object has to wait for something.
type lackingError struct {
	lack lack
	err  error
}

func (e *lackingError) Error() string { return e.err.Error() }
func (e *lackingError) Unwrap() error { return e.err }

// Waits know which Works wait for what. When it comes they are called; in case
// that nobody sees it come they look by themselves, now and then.
type waits struct {
	mu    sync.Mutex
	works map[reconcile.Request]*waiter
	lacks map[lack]map[reconcile.Request]bool
	again func(reconcile.Request)
	now   func() time.Time
}

type waiter struct {
	since time.Time
	lacks []lack
}

func newWaits() *waits {
	return &waits{
		works: map[reconcile.Request]*waiter{}, lacks: map[lack]map[reconcile.Request]bool{},
		again: func(reconcile.Request) {}, now: time.Now,
	}
}

// reopen says how what has waited gets back into the queue.
func (w *waits) reopen(again func(reconcile.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again = again
}

// enter notes what a Work waits for now. waited is how long it has waited, for
// whatever, and after is when to look again.
func (w *waits) enter(request reconcile.Request, lacks []lack) (waited, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.works[request]
	if !ok {
		at = &waiter{since: w.now()}
		w.works[request] = at
	}
	w.drop(request, at)
	at.lacks = lacks
	after = minWait
	for _, l := range lacks {
		if w.lacks[l] == nil {
			w.lacks[l] = map[reconcile.Request]bool{}
		}
		w.lacks[l][request] = true
		after = max(after, time.Duration(len(w.lacks[l]))*eachWaits)
	}
	return w.now().Sub(at.since), min(after, maxWait)
}

// leave notes that a Work waits for nothing, or is gone.
func (w *waits) leave(request reconcile.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.works[request]; ok {
		w.drop(request, at)
		delete(w.works, request)
	}
}

func (w *waits) drop(request reconcile.Request, at *waiter) {
	for _, l := range at.lacks {
		delete(w.lacks[l], request)
		if len(w.lacks[l]) == 0 {
			delete(w.lacks, l)
		}
	}
	at.lacks = nil
}

// came calls who waits for something that is there now.
func (w *waits) came(l lack) {
	w.mu.Lock()
	called := slices.Collect(maps.Keys(w.lacks[l]))
	for _, request := range called {
		if at := w.works[request]; at != nil {
			w.drop(request, at)
		}
	}
	again := w.again
	w.mu.Unlock()
	for _, request := range called {
		again(request)
	}
}
