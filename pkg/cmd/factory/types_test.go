package factory

import (
	"errors"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A fakeDiscovery counts how often it is asked. Tests need no more of it.
type fakeDiscovery struct {
	discovery.CachedDiscoveryInterface
	asked, invalidated int
	err                error
}

func (f *fakeDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	f.asked++
	return nil, nil, f.err
}

func (f *fakeDiscovery) Invalidate() { f.invalidated++ }

func TestTypesAreReadOnce(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		asked  int
	}{
		"Works":    {reason: "One answer is enough.", asked: 1},
		"OneGroup": {reason: "A group that is away will not be back at once.", err: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "a"}: errors.New("away")}}, asked: 1},
		"Fails":    {reason: "No answer is none to keep.", err: errors.New("refused"), asked: 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &fakeDiscovery{err: tc.err}
			types := &types{CachedDiscoveryInterface: fake}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { _, _, _ = types.ServerGroupsAndResources() })
			}
			all.Wait()
			if fake.asked != tc.asked {
				t.Errorf("asked %d times, want %d: %s", fake.asked, tc.asked, tc.reason)
			}
			types.Invalidate()
			_, _, _ = types.ServerGroupsAndResources()
			if fake.asked != tc.asked+1 || fake.invalidated != 1 {
				t.Errorf("after it was invalidated it was asked %d times, want 1", fake.asked-tc.asked)
			}
		})
	}
}
