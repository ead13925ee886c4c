package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/binding"
)

// Written knows the versions of Works that we have written and the cache has not
// seen yet: what is compared with such a Work is compared with what was.
type written struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]string
}

func newWritten() *written { return &written{versions: map[types.NamespacedName]string{}} }

func (w *written) note(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
}

// seen notes that the cache has an object.
func (w *written) seen(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if version, ok := w.versions[key]; ok && !binding.IsOlder(obj.GetResourceVersion(), version) {
		delete(w.versions, key)
	}
}

func (w *written) forget(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, client.ObjectKeyFromObject(obj))
}

// isStale reports whether an object from the cache is older than what we wrote.
func (w *written) isStale(obj client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	version, ok := w.versions[client.ObjectKeyFromObject(obj)]
	return ok && binding.IsOlder(obj.GetResourceVersion(), version)
}
