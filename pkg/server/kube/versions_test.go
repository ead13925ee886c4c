package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

func TestLean(t *testing.T) {
	cases := map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		cached bool
	}{
		"OldBinding":        {"Nobody of ours reads it: it would cost a conversion for each write.", schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "ResourceBinding"}, false},
		"OldClusterBinding": {"So for the other scope.", schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "ClusterResourceBinding"}, false},
		"Binding":           {"This is what is stored, and read all the time.", schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"}, true},
		"Work":              {"Works have one version, which is called v1alpha1.", schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}, true},
		"Other":             {"Others' kinds are others' business.", schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "ResourceBinding"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cached := false
			options := generic.RESTOptions{Decorator: func(
				*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
				storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
			) (storage.Interface, factory.DestroyFunc, error) {
				cached = true
				return nil, nil, nil
			}}
			o, err := lean{options}.GetRESTOptions(schema.GroupResource{Group: c.gvk.Group, Resource: "whatever"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			example := func() runtime.Object {
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(c.gvk)
				return u
			}
			// The storage below has no type that exists: making it fails, at once.
			config := &storagebackend.ConfigForResource{Config: storagebackend.Config{Type: "none"}}
			_, _, err = o.Decorator(config, "/p", nil, example, example, nil, nil, nil)
			if cached != c.cached || (err == nil) != c.cached {
				t.Errorf("cached: %v (%v), want %v: %s", cached, err, c.cached, c.reason)
			}
		})
	}
}
