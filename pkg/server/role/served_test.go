package role

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// growing serves one kind more each time it is asked.
type growing struct {
	kinds []string
	asked int
}

func (g *growing) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	if g.asked++; g.asked == 1 {
		return nil, errors.New("the group is not there yet")
	}
	list := &metav1.APIResourceList{}
	for _, kind := range g.kinds[:min(g.asked-2, len(g.kinds))] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return list, nil
}

func TestWaitServed(t *testing.T) {
	gv := schema.GroupVersion{Group: "work.karmada.io", Version: "v1alpha2"}
	both := []schema.GroupVersionKind{gv.WithKind("ResourceBinding"), gv.WithKind("ClusterResourceBinding")}
	s := &growing{kinds: []string{"ResourceBinding", "ClusterResourceBinding"}}
	if err := waitServed(t.Context(), s, both, klog.Background()); err != nil {
		t.Fatal(err)
	}
	if s.asked != 4 { // no group, no kind, one kind, both
		t.Errorf("asked %d times, want until the last kind of the group is there", s.asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waitServed(ctx, &growing{}, both, klog.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it ends with the process", err)
	}
}
