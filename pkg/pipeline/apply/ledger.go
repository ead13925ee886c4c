package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A place is where an object is on its member.
type place struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// An entry says when an object was as it should be.
type entry struct {
	// version is the one that the object had then; "" when that is not known.
	version string
	// work and generation are those of its Work.
	work       types.UID
	generation int64
}

// A ledger has an entry for each object that we saw to be as it should be. By
// its version our own changes are told from those of others.
type ledger struct {
	mu       sync.Mutex
	clusters map[string]map[place]entry
}

func newLedger() *ledger { return &ledger{clusters: map[string]map[place]entry{}} }

func (l *ledger) set(cluster string, at place, is entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clusters[cluster] == nil {
		l.clusters[cluster] = map[place]entry{}
	}
	l.clusters[cluster][at] = is
}

// get returns the entry, a zero one when there is none.
func (l *ledger) get(cluster string, at place) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clusters[cluster][at]
}

func (l *ledger) remove(cluster string, at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clusters[cluster], at)
}

func (l *ledger) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clusters, cluster)
}
