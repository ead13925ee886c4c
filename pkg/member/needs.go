package member

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Needs are the kinds that the Works of one cluster need to be followed. They
// outlive connections. Nothing waits while their lock is held.
type needs struct {
	mu    sync.Mutex
	works map[string][]schema.GroupVersionResource
	users map[schema.GroupVersionResource]int
	// member is the connection whose informers follow them, nil for none.
	member *Member
}

func newNeeds() *needs {
	return &needs{works: map[string][]schema.GroupVersionResource{}, users: map[schema.GroupVersionResource]int{}}
}

// set notes what a Work needs, and stops what nobody needs any more. The lock
// must be held.
func (n *needs) set(work string, kinds []schema.GroupVersionResource) {
	before := n.works[work]
	for _, gvr := range kinds {
		if !slices.Contains(before, gvr) {
			n.users[gvr]++
		}
	}
	for _, gvr := range before {
		if slices.Contains(kinds, gvr) {
			continue
		}
		if n.users[gvr]--; n.users[gvr] > 0 {
			continue
		}
		delete(n.users, gvr)
		if n.member != nil {
			n.member.unwatch(gvr)
		}
	}
	if len(kinds) == 0 {
		delete(n.works, work)
		return
	}
	n.works[work] = kinds
}

// attach makes m the connection that follows what is needed: also, with all it
// knew, what an earlier one did, which may be nil.
func (n *needs) attach(m, old *Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.member = m
	if old == nil {
		return
	}
	old.stop()
	for gvr, before := range old.leave() {
		if n.users[gvr] == 0 {
			continue
		}
		if err := m.follow(gvr, before); err != nil {
			return // this connection has ended as well
		}
	}
}

func (n *needs) detach() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.member = nil
}
