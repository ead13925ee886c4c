package load

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// A Target is one API server.
type Target struct {
	Name    string
	dynamic dynamic.Interface
	raw     rest.Interface
	mapper  meta.RESTMapper
}

// Open returns the API server of a kubeconfig. Requests are not limited.
func Open(name, kubeconfig string) (*Target, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	config.UserAgent = "bench"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	t := &Target{Name: name}
	if t.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	t.raw = d.RESTClient()
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return nil, fmt.Errorf("ask what %s serves: %w", name, err)
	}
	t.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return t, nil
}

//go:embed templates
var templates embed.FS

// Template reads one of the manifests in templates, with words in it replaced.
func Template(name string, replace ...string) (*unstructured.Unstructured, error) {
	data, err := templates.ReadFile("templates/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(string(data))), &u.Object); err != nil {
		return nil, fmt.Errorf("read template %s: %w", name, err)
	}
	return u, nil
}

// resource returns the client of an object's kind, in its namespace.
func (t *Target) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	mapping, err := t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find %s on %s: %w", gvk, t.Name, err)
	}
	r := t.dynamic.Resource(mapping.Resource)
	if u.GetNamespace() == "" {
		return r, nil
	}
	return r.Namespace(u.GetNamespace()), nil
}

// Apply makes one object be as it says, by server-side apply.
func (t *Target) Apply(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := t.resource(u)
	if err != nil {
		return err
	}
	_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "bench", Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
	}
	return nil
}

// Delete removes one object; the caller waits until it is gone if that matters.
func (t *Target) Delete(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := t.resource(u)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	if err := r.Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return fmt.Errorf("delete %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
	}
	return nil
}

// Create creates count objects that object makes of their numbers, so many at a time.
func (t *Target) Create(ctx context.Context, count, concurrently int, object func(i int) *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrently)
	for i := range count {
		group.Go(func() error {
			u := object(i)
			r, err := t.resource(u)
			if err != nil {
				return err
			}
			if _, err := r.Create(ctx, u, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Serves returns an error unless a resource is served.
func (t *Target) Serves(gvr schema.GroupVersionResource) error {
	if _, err := t.mapper.KindFor(gvr); err != nil {
		return fmt.Errorf("find %s on %s: %w", gvr.Resource, t.Name, err)
	}
	return nil
}

// UIDs returns the UIDs of all objects of the kind and namespace of u, by name.
func (t *Target) UIDs(ctx context.Context, u *unstructured.Unstructured) (map[string]string, error) {
	r, err := t.resource(u)
	if err != nil {
		return nil, err
	}
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s on %s: %w", u.GetKind(), t.Name, err)
	}
	uids := map[string]string{}
	for _, one := range list.Items {
		uids[one.GetName()] = string(one.GetUID())
	}
	return uids, nil
}

// Numbered returns what makes copies of an object with numbers in their names.
func Numbered(u *unstructured.Unstructured) func(i int) *unstructured.Unstructured {
	return func(i int) *unstructured.Unstructured {
		c := u.DeepCopy()
		c.SetName(fmt.Sprintf("%s-%d", u.GetName(), i))
		return c
	}
}

// Deployments is the resource of Deployments.
func Deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

// Remove deletes an object, and is content when it is not there.
func (t *Target) Remove(ctx context.Context, u *unstructured.Unstructured) error {
	return ignoreNotFound(t.Delete(ctx, u))
}

// UntilGone returns when an object is not there any more.
func (t *Target) UntilGone(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := t.resource(u)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, goneInterval, true, func(ctx context.Context) (bool, error) {
		_, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

const goneInterval = 200 * time.Millisecond

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
