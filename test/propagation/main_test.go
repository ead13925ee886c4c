package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// A fleet is what the tests share: a control plane with member1 and member2, which are pushed to, and member3, which
// pulls.
type fleet struct {
	rig.Plane
	playground rig.Playground
	agent      rig.Agent
	control    *cluster
	members    []*cluster
}

const memberNodes = 3

func memberNames() []string { return []string{"member1", "member2", "member3"} }

// shared is set once by TestMain, before any test runs.
var shared *fleet

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	binaries, err := rig.FindBinaries("")
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "karmada-propagation-")
	if err != nil {
		return 1, err
	}
	ctx := context.Background()
	f := &fleet{
		playground: rig.NewPlayground(binaries, filepath.Join(dir, "members")),
		agent:      rig.Agent{Cluster: memberNames()[2], Dir: filepath.Join(dir, "agent")},
	}
	if f.Plane, err = rig.NewPlane(binaries, filepath.Join(dir, "plane")); err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintf(os.Stderr, "the end of the control plane's log:\n%s\n", f.LogTail())
		}
		err = errors.Join(err, rig.DestroyDir(ctx, dir))
	}()
	if err := f.start(ctx); err != nil {
		return 1, fmt.Errorf("start the fleet: %w", err)
	}
	shared = f
	return m.Run(), nil
}

func (f *fleet) start(ctx context.Context) error {
	if _, err := f.Init(ctx); err != nil {
		return err
	}
	if err := f.playground.Up(ctx, len(memberNames()), memberNodes); err != nil {
		return err
	}
	for _, name := range memberNames()[:2] {
		if _, err := f.Run(ctx, "", f.JoinArgs(f.playground, name, name, "--wait=2m")...); err != nil {
			return err
		}
	}
	args, err := f.RegisterArgs(ctx, f.playground, f.agent.Cluster, f.agent, "--wait=2m")
	if err != nil {
		return err
	}
	if _, err := f.Run(ctx, "", args...); err != nil {
		return err
	}
	if f.control, err = open("the control plane", f.Kubeconfig()); err != nil {
		return err
	}
	for _, name := range memberNames() {
		m, err := open(name, f.playground.Kubeconfig(name))
		if err != nil {
			return err
		}
		f.members = append(f.members, m)
	}
	return nil
}

// A cluster is an API server as its administrator sees it.
type cluster struct {
	name    string
	dynamic dynamic.Interface
	mapper  meta.ResettableRESTMapper
}

func open(name, kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	config.QPS = -1
	c := &cluster{name: name}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return c, nil
}

// resource returns the client of an object's kind, in its namespace.
func (c *cluster) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
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
		return c.dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// get reads an object like u, nil when there is none.
func (c *cluster) get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := c.resource(u)
	if err != nil {
		return nil, err
	}
	got, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return got, err
}

func (c *cluster) create(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s can be created on %s", u.GetKind(), u.GetName(), c.name), func() error {
		r, err := c.resource(u)
		if err != nil {
			return err // the kind may have come a moment ago
		}
		_, err = r.Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
}

func (c *cluster) patch(t *testing.T, u *unstructured.Unstructured, patch string) {
	t.Helper()
	r, err := c.resource(u)
	if err == nil {
		_, err = r.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatalf("patch %s %s on %s: %v", u.GetKind(), u.GetName(), c.name, err)
	}
}

// delete removes an object; it need not be gone at once, or be there.
func (c *cluster) delete(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	r, err := c.resource(u)
	if err == nil {
		background := metav1.DeletePropagationBackground
		err = r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("delete %s %s on %s: %v", u.GetKind(), u.GetName(), c.name, err)
	}
}

// await waits until check is content with an object like u, which is nil when there is none.
func (c *cluster) await(t *testing.T, u *unstructured.Unstructured, reason string, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	t.Helper()
	var last *unstructured.Unstructured
	err := rig.Eventually(t.Context(), fmt.Sprintf("%s %s on %s: %s", u.GetKind(), u.GetName(), c.name, reason), func() error {
		got, err := c.get(t.Context(), u)
		if err != nil {
			return err
		}
		last = got
		return check(got)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, shared.story(u, last))
	}
	return last
}

// story tells what the fleet has of an object: the one that is looked at, what takes it to clusters, and what the
// control plane has logged of that.
func (f *fleet) story(u, at *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []string
	add := func(o *unstructured.Unstructured) {
		if o != nil {
			data, err := json.Marshal(o.Object)
			all = append(all, fmt.Sprintf("%s %v", data, err))
		}
	}
	add(at)
	for _, resource := range []string{"resourcebindings", "clusterresourcebindings", "works"} {
		gvr := schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: resource}
		if resource == "works" {
			gvr.Version = "v1alpha1"
		}
		list, err := f.control.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		for i := range list.Items {
			text, err := json.Marshal(list.Items[i].Object)
			if err == nil && strings.Contains(string(text), fmt.Sprintf("%q", u.GetName())) && strings.Contains(string(text), fmt.Sprintf("%q", u.GetKind())) {
				add(&list.Items[i])
			}
		}
	}
	for line := range strings.Lines(f.Log()) {
		if strings.Contains(line, "/"+u.GetName()) || strings.Contains(line, strings.ToLower(u.GetName()+"-"+u.GetKind())) {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(all, "\n")
}

// eventually fails the test when check does not come to return nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := rig.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}

// object reads a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("read manifest: %v\n%s", err, manifest)
	}
	return u
}

// Checks for await.

func isThere(u *unstructured.Unstructured) error {
	if u == nil {
		return errors.New("it is not there")
	}
	return nil
}

func isGone(u *unstructured.Unstructured) error {
	if u != nil {
		return fmt.Errorf("it is still there, with labels %v", u.GetLabels())
	}
	return nil
}
