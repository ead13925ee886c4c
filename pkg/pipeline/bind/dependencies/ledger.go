package dependencies

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A ledger remembers which version of its object each attached binding got from
// this process. An object that is newer than that has been changed in between, and
// nobody may have said so, as its kind was not followed yet. Of what an earlier
// process has written nothing is known: there it may be no more than a status that
// has changed, and all bindings are rendered anew anyway.
type ledger struct {
	mu       sync.Mutex
	versions map[client.ObjectKey]string
}

func newLedger() *ledger { return &ledger{versions: map[client.ObjectKey]string{}} }

// has reports whether this process has given a binding its object.
func (l *ledger) has(key client.ObjectKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.versions[key]
	return ok
}

// isOurs reports whether a binding has the version that it got from this process.
func (l *ledger) isOurs(a *workv1alpha2.ResourceBinding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	version, ok := l.versions[client.ObjectKeyFromObject(a)]
	return ok && version == a.Spec.Resource.ResourceVersion
}

func (l *ledger) note(a *workv1alpha2.ResourceBinding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[client.ObjectKeyFromObject(a)] = a.Spec.Resource.ResourceVersion
}

func (l *ledger) forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.versions, key)
}
