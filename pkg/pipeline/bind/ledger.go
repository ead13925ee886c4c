package bind

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A ledger remembers of templates what they themselves do not tell.
type ledger struct {
	mu sync.Mutex
	// touched are those that a user made or changed since they were last worked
	// on, as far as this process has seen.
	touched map[Key]bool
	// ours are the versions that this stage itself has written last, until they are
	// heard of.
	ours map[Key]string
	// waiting are those that no policy claims, by kind and namespace: what a new
	// policy is held against.
	waiting map[schema.GroupVersionKind]map[string]map[string]bool
}

func newLedger() *ledger {
	return &ledger{touched: map[Key]bool{}, ours: map[Key]string{}, waiting: map[schema.GroupVersionKind]map[string]map[string]bool{}}
}

// touch notes that a user made or changed a template.
func (l *ledger) touch(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched[k] = true
}

// take returns whether a user made or changed a template since it was last asked,
// and whether it waits.
func (l *ledger) take(k Key) (touched, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	touched = l.touched[k]
	delete(l.touched, k)
	return touched, l.waiting[k.GroupVersionKind][k.Namespace][k.Name]
}

// wrote notes a version of a template that whoever works on it has written.
func (l *ledger) wrote(k Key, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ours[k] = version
}

// isOurs reports whether a version that is heard of is the one that was written
// last: it need not be worked on again.
func (l *ledger) isOurs(k Key, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours, ok := l.ours[k]
	delete(l.ours, k)
	return ok && ours == version
}

// wait notes that a template waits for a policy. It must be called before one is
// looked for: one that comes in between then finds the template.
func (l *ledger) wait(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spaces := l.waiting[k.GroupVersionKind]
	if spaces == nil {
		spaces = map[string]map[string]bool{}
		l.waiting[k.GroupVersionKind] = spaces
	}
	if spaces[k.Namespace] == nil {
		spaces[k.Namespace] = map[string]bool{}
	}
	spaces[k.Namespace][k.Name] = true
}

// claimed notes that a template waits no longer.
func (l *ledger) claimed(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spaces := l.waiting[k.GroupVersionKind]
	delete(spaces[k.Namespace], k.Name)
	if len(spaces[k.Namespace]) == 0 {
		delete(spaces, k.Namespace)
	}
	if len(spaces) == 0 {
		delete(l.waiting, k.GroupVersionKind)
	}
}

// forget drops everything about a template that is gone.
func (l *ledger) forget(k Key) {
	l.claimed(k)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.touched, k)
	delete(l.ours, k)
}

// among returns the templates of a kind that wait; an empty namespace means all,
// an empty name any.
func (l *ledger) among(gvk schema.GroupVersionKind, namespace, name string) []Key {
	var found []Key
	l.mu.Lock()
	defer l.mu.Unlock()
	for space, waiting := range l.waiting[gvk] {
		if namespace != "" && space != namespace {
			continue
		}
		if name != "" {
			if waiting[name] {
				found = append(found, Key{gvk, space, name})
			}
			continue
		}
		for n := range waiting {
			found = append(found, Key{gvk, space, n})
		}
	}
	return found
}
