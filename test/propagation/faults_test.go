package propagation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// strikes is how often the control plane is killed. KARMADA_KILLS makes it more thorough.
func strikes(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KARMADA_KILLS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KARMADA_KILLS=%s: want a number of at least 1", text)
	}
	return n
}

// A guard notes what is removed from the members that nobody asked to remove.
type guard struct {
	mu      sync.Mutex
	removed []string
}

// watch follows the objects of a resource in a namespace on all members until the test ends.
func (g *guard) watch(t *testing.T, gvr schema.GroupVersionResource, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, m := range shared.Members {
		informer := dynamicinformer.NewFilteredDynamicSharedInformerFactory(m.Dynamic, 0, namespace, nil).ForResource(gvr).Informer()
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			name, err := cache.DeletionHandlingObjectToName(obj)
			if err != nil {
				return
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.removed = append(g.removed, m.Name+": "+gvr.Resource+" "+name.String())
		}})
		if err != nil {
			t.Fatal(err)
		}
		go informer.RunWithContext(ctx)
		fleetrig.Eventually(t, "the guard sees "+m.Name, func() error {
			if !registration.HasSynced() {
				return errors.New("it has not seen everything yet")
			}
			return nil
		})
	}
}

func (g *guard) check(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, what := range g.removed {
		t.Errorf("nobody asked to remove it: %s", what)
	}
}

// TestKilledUnderLoad kills the control plane while objects are created and changed.
func TestKilledUnderLoad(t *testing.T) {
	const namespace, count = "killed", 40
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	shared.Control.Create(t, every(t, namespace, "apps/v1", "Deployment"))
	var g guard
	g.watch(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespace)
	g.watch(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace)

	done := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for i := range count {
			u := fleetrig.ConfigMap(t, namespace, fmt.Sprintf("c%d", i), "one")
			persist(t, "create", func() error { return shared.Control.Ensure(t.Context(), u) })
			d := deployment(t, namespace, fmt.Sprintf("d%d", i))
			persist(t, "create", func() error { return shared.Control.Ensure(t.Context(), d) })
			u = fleetrig.ConfigMap(t, namespace, u.GetName(), "two")
			persist(t, "change", func() error { return shared.Control.Ensure(t.Context(), u) })
		}
		close(done)
	})
	random := rand.New(rand.NewPCG(7, 1))
	for range strikes(t) {
		victim := shared.Process(t)
		wait := time.NewTimer(time.Second + time.Duration(random.Int64N(int64(3*time.Second))))
		select {
		case <-wait.C:
		case <-t.Context().Done():
		}
		wait.Stop()
		t.Logf("kill %s", victim)
		if err := victim.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		shared.Healthy(t, "the supervisor starts the control plane again")
	}
	<-done
	load.Wait()
	for i := range count {
		for _, m := range shared.Members {
			m.Await(t, fleetrig.ConfigMap(t, namespace, fmt.Sprintf("c%d", i), ""), "all converge", fleetrig.All(fleetrig.IsOurs, fleetrig.HoldsValue("two")))
			m.Await(t, deployment(t, namespace, fmt.Sprintf("d%d", i)), "all converge", fleetrig.IsOurs)
		}
		shared.Control.Await(t, deployment(t, namespace, fmt.Sprintf("d%d", i)), "its status is back", func(u *unstructured.Unstructured) error {
			if got, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); got != 3 {
				return fmt.Errorf("readyReplicas is %d, want 3", got)
			}
			return nil
		})
	}
	g.check(t)
}

func deployment(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`, name, namespace))
}

// persist does something until it succeeds.
func persist(t *testing.T, what string, do func() error) {
	if err := rig.Eventually(t.Context(), what, do); err != nil {
		t.Error(err)
	}
}

// TestMemberStopped checks that a member which is away for a while is as it should be when it is back, that the others
// do not wait for it, and that nothing is removed.
func TestMemberStopped(t *testing.T) {
	const namespace = "away"
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	before, gone, changed := fleetrig.ConfigMap(t, namespace, "before", "v"), fleetrig.ConfigMap(t, namespace, "gone", "v"), fleetrig.ConfigMap(t, namespace, "changed", "v")
	for _, u := range []*unstructured.Unstructured{before, gone, changed} {
		shared.Control.Create(t, u)
	}
	uids := map[string]string{}
	for _, m := range shared.Members {
		for _, u := range []*unstructured.Unstructured{before, gone, changed} {
			uids[m.Name+u.GetName()] = string(m.Await(t, u, "it is created", fleetrig.IsOurs).GetUID())
		}
	}
	for _, i := range []int{0, 2} {
		m := shared.Members[i]
		running, err := rig.FindProcesses(shared.Playground.MemberDir(m.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range running {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	during := fleetrig.ConfigMap(t, namespace, "during", "v")
	shared.Control.Create(t, during)
	shared.Control.Delete(t, gone)
	shared.Control.Patch(t, changed, `{"data":{"value":"w"}}`)
	there := shared.Members[1]
	there.Await(t, during, "the others do not wait", fleetrig.IsOurs)
	there.Await(t, gone, "the others do not wait", fleetrig.IsGone)
	there.Await(t, changed, "the others do not wait", fleetrig.HoldsValue("w"))

	if err := shared.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range shared.Members {
		m.Await(t, during, "what came meanwhile comes", fleetrig.IsOurs)
		m.Await(t, gone, "what went meanwhile goes", fleetrig.IsGone)
		m.Await(t, changed, "what changed meanwhile changes", fleetrig.HoldsValue("w"))
		for _, u := range []*unstructured.Unstructured{before, changed} {
			if now := m.Await(t, u, "the rest stays", fleetrig.IsOurs); string(now.GetUID()) != uids[m.Name+u.GetName()] {
				t.Errorf("on %s, %s was made anew", m.Name, u.GetName())
			}
		}
	}
}

// written are the versions of everything that the pipeline writes.
func written(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	note := func(c *fleetrig.Cluster, gvr schema.GroupVersionResource, selector string) {
		list, err := c.Dynamic.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatalf("list %s on %s: %v", gvr.Resource, c.Name, err)
		}
		for _, u := range list.Items {
			versions[fmt.Sprintf("%s on %s: %s/%s", gvr.Resource, c.Name, u.GetNamespace(), u.GetName())] = u.GetResourceVersion()
		}
	}
	work := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "work.karmada.io", Version: version, Resource: resource}
	}
	configMaps, deployments := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	note(shared.Control, work("v1alpha1", "works"), "")
	note(shared.Control, work("v1alpha2", "resourcebindings"), "")
	note(shared.Control, work("v1alpha2", "clusterresourcebindings"), "")
	note(shared.Control, schema.GroupVersionResource{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "propagationpolicies"}, "")
	note(shared.Control, configMaps, names.PropagationPolicyIDLabel)
	note(shared.Control, deployments, names.PropagationPolicyIDLabel)
	note(shared.Control, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "")
	for _, m := range shared.Members {
		note(m, configMaps, names.ManagedLabel)
		note(m, deployments, names.ManagedLabel)
		note(m, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, names.ManagedLabel)
	}
	return versions
}

// beats waits for two heartbeats of the agent, and as many looks at a push member.
func beats(t *testing.T) {
	t.Helper()
	lease := fleetrig.Object(t, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: karmada-cluster, name: member3}}`)
	last, count := "", 0
	fleetrig.Eventually(t, "two heartbeats come", func() error {
		u, err := shared.Control.Get(t.Context(), lease)
		if err != nil || u == nil {
			return fmt.Errorf("no lease: %w", err)
		}
		if now, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime"); now != last {
			last, count = now, count+1
		}
		if count < 3 {
			return fmt.Errorf("%d so far", count-1)
		}
		return nil
	})
}

// TestNothingIsWritten checks that nothing is written when nothing changes, also after a start.
func TestNothingIsWritten(t *testing.T) {
	const namespace = "quiet"
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	shared.Control.Create(t, every(t, namespace, "apps/v1", "Deployment"))
	for i := range 5 {
		shared.Control.Create(t, fleetrig.ConfigMap(t, namespace, fmt.Sprintf("c%d", i), "v"))
		shared.Control.Create(t, deployment(t, namespace, fmt.Sprintf("d%d", i)))
	}
	for i := range 5 {
		shared.Control.Await(t, deployment(t, namespace, fmt.Sprintf("d%d", i)), "its status is back", func(u *unstructured.Unstructured) error {
			if got, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); got != 3 {
				return fmt.Errorf("readyReplicas is %d, want 3", got)
			}
			return nil
		})
	}
	var before map[string]string
	fleetrig.Eventually(t, "what was done before has ended: two heartbeats come in which nothing is written", func() error {
		before = written(t)
		beats(t)
		if diff := cmp.Diff(before, written(t)); diff != "" {
			t.Logf("still written (-before +after):\n%s", diff)
			return errors.New("there is still something written")
		}
		return nil
	})
	if err := shared.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	beats(t)
	if diff := cmp.Diff(before, written(t)); diff != "" {
		t.Errorf("the control plane has started anew, and something was written (-before +after):\n%s", diff)
	}
}
