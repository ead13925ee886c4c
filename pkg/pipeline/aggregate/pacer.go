package aggregate

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// window is how long one write of an object is after the one before, at least.
const window = 500 * time.Millisecond

// manyPaces is from how many objects on a pacer looks for those it can forget.
const manyPaces = 1024

// A pacer says when an object may be written.
type pacer struct {
	now func() time.Time

	mu    sync.Mutex
	paces map[client.ObjectKey]pace
	sweep int // how many paces there are when the next look is due
}

type pace struct {
	wrote time.Time
	since time.Time // when it began to wait
}

func newPacer(now func() time.Time) *pacer {
	return &pacer{now: now, paces: map[client.ObjectKey]pace{}, sweep: manyPaces}
}

// wait returns how long a change is to wait: not at all if there was no write for
// a while. One that is not complete, since more is about to come, waits for that
// a while, from when it was first asked for.
func (p *pacer) wait(key client.ObjectKey, complete bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, e := p.now(), p.paces[key]
	if e.since.IsZero() {
		e.since = now
		p.paces[key] = e
	}
	due := e.wrote.Add(window)
	if more := e.since.Add(window); !complete && more.After(due) {
		due = more
	}
	return max(due.Sub(now), 0)
}

// wrote notes a write.
func (p *pacer) wrote(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.paces[key] = pace{wrote: now}
	if len(p.paces) < p.sweep {
		return
	}
	for key, e := range p.paces {
		if e.since.IsZero() && now.Sub(e.wrote) > window {
			delete(p.paces, key)
		}
	}
	p.sweep = max(manyPaces, 2*len(p.paces))
}

// settled notes that there is nothing to write any more.
func (p *pacer) settled(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.paces[key]
	switch {
	case !ok:
	case p.now().Sub(e.wrote) > window:
		delete(p.paces, key)
	default:
		p.paces[key] = pace{wrote: e.wrote}
	}
}
