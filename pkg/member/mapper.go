package member

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// notAgain is how long a kind that the member does not have is not asked for.
const notAgain = 2 * time.Second

// A mapper knows the kinds of one member.
type mapper struct {
	discovery discovery.DiscoveryInterface
	now       func() time.Time
	flight    singleflight.Group
	asking    atomic.Bool // in the background

	mu      sync.Mutex
	known   meta.RESTMapper
	lists   map[string][]metav1.APIResource // by group and version
	failed  map[schema.GroupVersion]error   // groups that did not answer
	learned time.Time
}

var _ meta.ResettableRESTMapper = (*mapper)(nil)

func newMapper(d discovery.DiscoveryInterface) *mapper {
	return &mapper{discovery: d, now: time.Now}
}

// Reset makes the next question ask the member.
func (m *mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

// expire makes the next question for a kind that is not known ask the member.
func (m *mapper) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learned = time.Time{}
}

// lookup answers from what is known, and has the member asked when that does not
// suffice.
func (m *mapper) lookup(gvk schema.GroupVersionKind) (*meta.RESTMapping, bool) {
	known, _, fresh := m.snapshot()
	if known != nil {
		if mapping, err := known.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return mapping, true
		}
	}
	if !fresh && m.asking.CompareAndSwap(false, true) {
		go func() {
			defer m.asking.Store(false)
			_ = m.refresh() // whoever comes again finds out
		}()
	}
	return nil, false
}

// snapshot returns what is known, nil for nothing, and whether it is too fresh
// to ask the member again.
func (m *mapper) snapshot() (known meta.RESTMapper, failed map[schema.GroupVersion]error, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known, m.failed, m.known != nil && m.now().Sub(m.learned) < notAgain
}

// refresh asks the member what it serves; who asks while it is asked already
// waits for that answer.
func (m *mapper) refresh() error {
	_, err, _ := m.flight.Do("", func() (any, error) {
		groups, resources, err := m.discovery.ServerGroupsAndResources()
		var partial *discovery.ErrGroupDiscoveryFailed
		if err != nil && !errors.As(err, &partial) {
			return nil, fmt.Errorf("find out what the cluster serves: %w", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		lists := make(map[string][]metav1.APIResource, len(resources))
		for _, l := range resources {
			lists[l.GroupVersion] = l.APIResources
		}
		m.failed = nil
		if partial != nil {
			m.failed = partial.Groups
			for gv := range m.failed { // what it served earlier, it most likely still does
				if before, ok := m.lists[gv.String()]; ok {
					lists[gv.String()] = before
				}
			}
		}
		m.known, m.lists, m.learned = restmapper.NewDiscoveryRESTMapper(byGroup(groups, lists)), lists, m.now()
		return nil, nil
	})
	return err
}

// byGroup puts the lists of resources into their groups.
func byGroup(groups []*metav1.APIGroup, lists map[string][]metav1.APIResource) []*restmapper.APIGroupResources {
	result := make([]*restmapper.APIGroupResources, 0, len(groups))
	for _, g := range groups {
		one := &restmapper.APIGroupResources{Group: *g, VersionedResources: map[string][]metav1.APIResource{}}
		for _, v := range g.Versions {
			if r, ok := lists[v.GroupVersion]; ok {
				one.VersionedResources[v.Version] = r
			}
		}
		result = append(result, one)
	}
	return result
}

// ask answers from what is known, and once more after a refresh if that does
// not suffice.
func ask[T any](m *mapper, question func(meta.RESTMapper) (T, error)) (T, error) {
	known, failed, fresh := m.snapshot()
	if known != nil {
		answer, err := question(known)
		if !meta.IsNoMatchError(err) || fresh && len(failed) == 0 {
			return answer, err
		}
	}
	var none T
	if err := m.refresh(); err != nil {
		return none, err
	}
	known, failed, _ = m.snapshot()
	if known == nil { // somebody has had it forgotten in the meantime
		return none, errors.New("find out what the cluster serves: it has just changed")
	}
	answer, err := question(known)
	if meta.IsNoMatchError(err) && len(failed) > 0 {
		return none, fmt.Errorf("find out what the cluster serves: %w", &discovery.ErrGroupDiscoveryFailed{Groups: failed})
	}
	return answer, err
}

func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(k meta.RESTMapper) (schema.GroupVersionKind, error) { return k.KindFor(r) })
}

func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(k meta.RESTMapper) ([]schema.GroupVersionKind, error) { return k.KindsFor(r) })
}

func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(k meta.RESTMapper) (schema.GroupVersionResource, error) { return k.ResourceFor(r) })
}

func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(k meta.RESTMapper) ([]schema.GroupVersionResource, error) { return k.ResourcesFor(r) })
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(m, func(k meta.RESTMapper) (*meta.RESTMapping, error) { return k.RESTMapping(gk, versions...) })
}

func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(k meta.RESTMapper) ([]*meta.RESTMapping, error) { return k.RESTMappings(gk, versions...) })
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(k meta.RESTMapper) (string, error) { return k.ResourceSingularizer(resource) })
}
