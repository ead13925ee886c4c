package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	if version, ok := w.versions[key]; ok && !isOlder(obj.GetResourceVersion(), version) {
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
	return ok && isOlder(obj.GetResourceVersion(), version)
}

// isOlder reports whether one version of an object comes before another. What
// cannot be compared is older, unless it is the same.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
