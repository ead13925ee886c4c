package fleetrig

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// A Cluster is an API server as its administrator sees it.
type Cluster struct {
	Name string
	// Config is how it is reached: a copy of it may be changed.
	Config  *rest.Config
	Dynamic dynamic.Interface

	mapper meta.ResettableRESTMapper
	fleet  *Fleet
}

func (f *Fleet) open(name, kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	config.QPS = -1
	return f.Open(name, config)
}

// Open returns another way to see an API server of the fleet.
func (f *Fleet) Open(name string, config *rest.Config) (*Cluster, error) {
	c := &Cluster{Name: name, Config: config, fleet: f}
	var err error
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return c, nil
}

// Resource returns the client of an object's kind, in its namespace.
func (c *Cluster) Resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return c.Dynamic.Resource(mapping.Resource), nil
}

// Get reads an object like u, nil when there is none.
func (c *Cluster) Get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := c.Resource(u)
	if err != nil {
		return nil, err
	}
	got, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return got, err
}

// Ensure makes the object be there, as a user does who applies it again after an error.
func (c *Cluster) Ensure(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := c.Resource(u)
	if err != nil {
		return err
	}
	_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "user", Force: true})
	return err
}

// Create creates an object, whose kind may have come a moment ago.
func (c *Cluster) Create(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s %s can be created on %s", u.GetKind(), u.GetName(), c.Name), func() error {
		r, err := c.Resource(u)
		if err != nil {
			return err
		}
		_, err = r.Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
}

// Patch changes an object by a merge patch.
func (c *Cluster) Patch(t *testing.T, u *unstructured.Unstructured, patch string) {
	t.Helper()
	r, err := c.Resource(u)
	if err == nil {
		_, err = r.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatalf("patch %s %s on %s: %v", u.GetKind(), u.GetName(), c.Name, err)
	}
}

// Delete removes an object; it need not be gone at once, or be there.
func (c *Cluster) Delete(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	r, err := c.Resource(u)
	if err == nil {
		background := metav1.DeletePropagationBackground
		err = r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("delete %s %s on %s: %v", u.GetKind(), u.GetName(), c.Name, err)
	}
}

// Await waits until check is content with an object like u, which is nil when there is none.
func (c *Cluster) Await(t *testing.T, u *unstructured.Unstructured, reason string, check Check) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	err := rig.Eventually(t.Context(), fmt.Sprintf("%s %s on %s: %s", u.GetKind(), u.GetName(), c.Name, reason), func() error {
		got, err := c.Get(t.Context(), u)
		if err != nil {
			return err
		}
		last = got
		return check(got)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.fleet.Story(u, last))
	}
	return last
}
