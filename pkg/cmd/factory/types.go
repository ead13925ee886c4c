package factory

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// types is a discovery client that many may ask at once, and that reads its
// cache once: kubectl's packages read it several times for each of many members.
type types struct {
	discovery.CachedDiscoveryInterface

	mu        sync.Mutex
	loaded    bool
	groups    []*metav1.APIGroup
	resources []*metav1.APIResourceList
	err       error
}

var _ discovery.CachedDiscoveryInterface = (*types)(nil)

func (t *types) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded {
		return t.groups, t.resources, t.err
	}
	groups, resources, err := t.CachedDiscoveryInterface.ServerGroupsAndResources()
	// An API that does not answer will not do so when it is asked again at once.
	if err == nil || discovery.IsGroupDiscoveryFailedError(err) {
		t.loaded, t.groups, t.resources, t.err = true, groups, resources, err
	}
	return groups, resources, err
}

func (t *types) ServerGroups() (*metav1.APIGroupList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.CachedDiscoveryInterface.ServerGroups()
}

func (t *types) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.CachedDiscoveryInterface.ServerResourcesForGroupVersion(groupVersion)
}

func (t *types) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.CachedDiscoveryInterface.ServerPreferredResources()
}

func (t *types) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.CachedDiscoveryInterface.ServerPreferredNamespacedResources()
}

// Fresh tells whether what it says is of this process, and not from the disk.
func (t *types) Fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.CachedDiscoveryInterface.Fresh()
}

// Invalidate forgets everything, on the disk too.
func (t *types) Invalidate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.CachedDiscoveryInterface.Invalidate()
	t.loaded, t.groups, t.resources, t.err = false, nil, nil, nil
}
