package scheduling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// strikes is how often the control plane is killed. KARMADA_KILLS makes it more thorough.
func strikes(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KARMADA_KILLS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KARMADA_KILLS=%s: want a number of at least 1", text)
	}
	return n
}

// What is decided about while the control plane is killed, and how many users create it at the same time.
const (
	killedNamespace   = "killed"
	killedConfigMaps  = 200
	killedDeployments = 50
	killedUsers       = 8
)

// TestKilled kills the control plane in the middle of many decisions, first ones and others, and checks that none is
// lost and none is made twice.
func TestKilled(t *testing.T) {
	shared.MakeNamespace(t, killedNamespace)
	shared.Control.Create(t, policyForAll(t, killedNamespace, `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
		{targetCluster: {clusterNames: [member1, member2]}, weight: 2}, {targetCluster: {clusterNames: [member3]}, weight: 1}]}}}`))
	shared.Control.Create(t, fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: `+killedNamespace+`, name: settings}, spec: {
		resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {kind: settings}}}], placement: {clusterAffinity: {clusterNames: [member1, member3]}}}}`))
	random := rand.New(rand.NewPCG(5, 1))

	struck(t, random, func(ctx context.Context, i int) error {
		if i < killedDeployments {
			return shared.Control.Ensure(ctx, killedDeployment(t, i, 5))
		}
		return shared.Control.Ensure(ctx, killedConfigMap(t, i))
	})
	allDecided(t, spread{"member1": 2, "member2": 2, "member3": 1})

	struck(t, random, func(ctx context.Context, i int) error {
		if i >= killedDeployments {
			return nil
		}
		return shared.Control.Ensure(ctx, killedDeployment(t, i, 10))
	})
	allDecided(t, spread{"member1": 4, "member2": 4, "member3": 2})
	space := fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+killedNamespace+`}}`)
	shared.Control.Delete(t, space)
	for _, c := range append(slices.Clone(shared.Members), shared.Control) {
		c.Await(t, space, "everything goes", fleetrig.IsGone)
	}
}

func killedDeployment(t *testing.T, i, replicas int) *unstructured.Unstructured {
	t.Helper()
	return web(t, killedNamespace, fmt.Sprintf("d%d", i), replicas, 0)
}

func killedConfigMap(t *testing.T, i int) *unstructured.Unstructured {
	t.Helper()
	u := fleetrig.ConfigMap(t, killedNamespace, fmt.Sprintf("c%d", i), "v")
	u.SetLabels(map[string]string{"kind": "settings"})
	return u
}

// struck does something for each object, again after an error, while the control plane is killed.
func struck(t *testing.T, random *rand.Rand, do func(ctx context.Context, i int) error) {
	t.Helper()
	next := make(chan int)
	var load sync.WaitGroup
	for range killedUsers {
		load.Go(func() {
			for i := range next {
				if err := rig.Eventually(t.Context(), fmt.Sprintf("object %d is written", i), func() error { return do(t.Context(), i) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	load.Go(func() {
		defer close(next)
		for i := range killedDeployments + killedConfigMaps {
			next <- i
		}
	})
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
	load.Wait()
}

// list reads all objects like u of its namespace.
func list(ctx context.Context, c *fleetrig.Cluster, u *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	r, err := c.Resource(u)
	if err != nil {
		return nil, err
	}
	all, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// allDecided waits until each object has one binding, which is decided, as many Works as there are clusters for it,
// and is on these clusters and no other.
func allDecided(t *testing.T, want spread) {
	t.Helper()
	// One by one, as that may take long.
	for i := range killedDeployments + killedConfigMaps {
		u, check := killedConfigMap(t, i), goesTo("member1", "member3")
		if i < killedDeployments {
			u, check = killedDeployment(t, i, 0), goes(want)
		}
		shared.Control.Await(t, bindingOf(u), "it is decided", fleetrig.All(check, success()))
	}
	fleetrig.Eventually(t, "each object has one binding, and all are decided", func() error { return bindingsDecided(t, want) })
	fleetrig.Eventually(t, "each binding has a Work for each cluster", func() error {
		counts, err := workCounts(t)
		if err != nil {
			return err
		}
		for name := range want {
			each := killedDeployments + killedConfigMaps
			if name == "member2" {
				each = killedDeployments
			}
			if counts[name] != each {
				return fmt.Errorf("%s has %d Works, want %d", name, counts[name], each)
			}
		}
		return nil
	})
	for _, m := range shared.Members {
		fleetrig.Eventually(t, "what is decided is on "+m.Name, func() error { return membersHave(t, m, want[m.Name]) })
	}
	for i := range killedDeployments {
		shared.Control.Await(t, killedDeployment(t, i, 0), "its status is that of all members", replicas(want.sum(), "status", "readyReplicas"))
	}
}

func bindingsDecided(t *testing.T, want spread) error {
	bindings, err := list(t.Context(), shared.Control, bindingOf(killedConfigMap(t, 0)))
	if err != nil {
		return err
	}
	seen := map[string]string{}
	for i := range bindings {
		b, err := binding(&bindings[i])
		if err != nil {
			return err
		}
		of := b.Spec.Resource.Kind + " " + b.Spec.Resource.Name
		if other, ok := seen[of]; ok {
			return fmt.Errorf("%s has two bindings: %s and %s", of, other, b.Name)
		}
		seen[of] = b.Name
		check := goesTo("member1", "member3")
		if b.Spec.Resource.Kind == "Deployment" {
			check = goes(want)
			if int64(b.Spec.Replicas) != want.sum() {
				return fmt.Errorf("%s is to have %d replicas, want %d", of, b.Spec.Replicas, want.sum())
			}
		}
		if err := errors.Join(check(&bindings[i]), success()(&bindings[i])); err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
	}
	if n := killedConfigMaps + killedDeployments; len(seen) != n {
		return fmt.Errorf("there are %d bindings, want %d", len(seen), n)
	}
	return nil
}

// workCounts counts the Works of the namespace's bindings, by cluster. No binding may have two in one cluster.
func workCounts(t *testing.T) (map[string]int, error) {
	t.Helper()
	counts := map[string]int{}
	for _, m := range shared.Members {
		works, err := list(t.Context(), shared.Control, fleetrig.Object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: `+names.ExecutionNamespace(m.Name)+`}}`))
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, w := range works {
			if w.GetAnnotations()[names.ResourceBindingNamespaceAnnotation] != killedNamespace {
				continue
			}
			of := w.GetAnnotations()[names.ResourceBindingNameAnnotation]
			if seen[of] {
				return nil, fmt.Errorf("%s has two Works for %s", of, m.Name)
			}
			seen[of] = true
		}
		counts[m.Name] = len(seen)
	}
	return counts, nil
}

// membersHave checks that a member has all Deployments with so many replicas, and the ConfigMaps if they go there.
func membersHave(t *testing.T, m *fleetrig.Cluster, want int64) error {
	deployments, err := list(t.Context(), m, killedDeployment(t, 0, 0))
	if err != nil {
		return err
	}
	for i := range deployments {
		if err := fleetrig.All(fleetrig.IsOurs, replicas(want, "spec", "replicas"))(&deployments[i]); err != nil {
			return fmt.Errorf("%s: %w", deployments[i].GetName(), err)
		}
	}
	if len(deployments) != killedDeployments {
		return fmt.Errorf("there are %d Deployments, want %d", len(deployments), killedDeployments)
	}
	configMaps, err := list(t.Context(), m, killedConfigMap(t, 0))
	if err != nil {
		return err
	}
	ours := 0
	for i := range configMaps {
		if fleetrig.IsOurs(&configMaps[i]) == nil {
			ours++
		}
	}
	wanted := killedConfigMaps
	if m.Name == "member2" {
		wanted = 0
	}
	if ours != wanted {
		return fmt.Errorf("there are %d ConfigMaps, want %d", ours, wanted)
	}
	return nil
}
