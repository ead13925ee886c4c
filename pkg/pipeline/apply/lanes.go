package apply

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Lanes give each member (an execution namespace) workers of its own, so that
// one that is slow or hangs delays only itself: what finds its lane full waits
// beside the queue, and keeps no worker.
type lanes struct {
	limit int

	mu    sync.Mutex
	lanes map[string]*lane
	again func(reconcile.Request)
}

type lane struct {
	running int
	silent  bool // the last one to leave had no answer: one at a time is enough to find out
	waiting []reconcile.Request
	known   map[reconcile.Request]bool // what is waiting
}

func newLanes(limit int) *lanes {
	return &lanes{limit: limit, lanes: map[string]*lane{}, again: func(reconcile.Request) {}}
}

// reopen says how what has waited gets back into the queue.
func (l *lanes) reopen(again func(reconcile.Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = again
}

func (l *lanes) wrap(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if !l.enter(request) {
			return reconcile.Result{}, nil
		}
		silent := true // a panic says nothing good either
		defer func() { l.leave(request.Namespace, silent) }()
		result, err := next.Reconcile(ctx, request)
		silent = isSilence(err)
		return result, err
	})
}

// enter takes a place in a request's lane; when there is none it notes the
// request for later.
func (l *lanes) enter(request reconcile.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.lanes[request.Namespace]
	if !ok {
		at = &lane{known: map[reconcile.Request]bool{}}
		l.lanes[request.Namespace] = at
	}
	limit := l.limit
	if at.silent {
		limit = 1
	}
	if at.running < limit {
		at.running++
		return true
	}
	if !at.known[request] {
		at.known[request] = true
		at.waiting = append(at.waiting, request)
	}
	return false
}

// leave frees a place, and calls who waits for it.
func (l *lanes) leave(namespace string, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.lanes[namespace]
	at.running--
	at.silent = silent
	free := l.limit - at.running
	if silent {
		free = 1 - at.running
	}
	for range min(max(free, 0), len(at.waiting)) {
		next := at.waiting[0]
		at.waiting = at.waiting[1:]
		delete(at.known, next)
		l.again(next)
	}
	if at.running == 0 && len(at.waiting) == 0 && !at.silent {
		delete(l.lanes, namespace)
	}
}

// isSilence reports whether an error says that there was no answer, rather than
// a bad one.
func isSilence(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport)
}
