package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A place is where an object is on its member.
type place struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// A ledger has the version that each object had when we saw last that it is as
// it should be. By it our own changes are told from those of others.
type ledger struct {
	mu       sync.Mutex
	clusters map[string]map[place]string
}

func newLedger() *ledger { return &ledger{clusters: map[string]map[place]string{}} }

func (l *ledger) set(cluster string, at place, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clusters[cluster] == nil {
		l.clusters[cluster] = map[place]string{}
	}
	l.clusters[cluster][at] = version
}

// get returns the version, "" when there is none.
func (l *ledger) get(cluster string, at place) string {
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
