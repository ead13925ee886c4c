package scheduling

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// memberNodes is how many nodes each member has, nodeCPUs how many CPUs each of those.
const (
	memberNodes = 3
	nodeCPUs    = 8
)

// shared is set once by TestMain, before any test runs.
var shared *fleetrig.Fleet

func TestMain(m *testing.M) {
	os.Exit(fleetrig.Main(m, fleetrig.Options{Name: "scheduling", Members: 3, Pull: true, Nodes: memberNodes}, func(f *fleetrig.Fleet) { shared = f }))
}

// A spread is how many replicas each cluster has.
type spread map[string]int64

func (s spread) sum() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// web is a Deployment with so many replicas, each of which asks for so many CPUs.
func web(t *testing.T, namespace, name string, replicas, cpus int) *unstructured.Unstructured {
	t.Helper()
	requests := "{}"
	if cpus > 0 {
		requests = fmt.Sprintf(`{cpu: "%d"}`, cpus)
	}
	return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %s, name: %s}, spec: {replicas: %d, selector: {matchLabels: {app: %[2]s}},
		template: {metadata: {labels: {app: %[2]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: "nginx:1.27.0", resources: {requests: %[4]s}}]}}}}`,
		namespace, name, replicas, requests))
}

// policyFor is a policy for a Deployment, with a placement as it is written in a manifest.
func policyFor(t *testing.T, u *unstructured.Unstructured, placement string) *unstructured.Unstructured {
	t.Helper()
	return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: %s, name: %s}, spec: {
		resourceSelectors: [{apiVersion: %s, kind: %s, name: %[2]s}], placement: %[5]s}}`, u.GetNamespace(), u.GetName(), u.GetAPIVersion(), u.GetKind(), placement))
}

// policyForAll is one for all Deployments of a namespace.
func policyForAll(t *testing.T, namespace, placement string) *unstructured.Unstructured {
	t.Helper()
	return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: %s, name: all}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: %s}}`, namespace, placement))
}

// bindingOf names the binding of a template.
func bindingOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	b := &unstructured.Unstructured{}
	b.SetAPIVersion("work.karmada.io/v1alpha2")
	b.SetKind(workv1alpha2.KindResourceBinding)
	b.SetNamespace(u.GetNamespace())
	b.SetName(names.Binding(u.GetKind(), u.GetName()))
	return b
}

// binding reads one as what it is.
func binding(u *unstructured.Unstructured) (*workv1alpha2.ResourceBinding, error) {
	if u == nil {
		return nil, errors.New("it is not there")
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	b := &workv1alpha2.ResourceBinding{}
	return b, json.Unmarshal(data, b)
}

// bound makes a check of one on a binding.
func bound(check func(b *workv1alpha2.ResourceBinding) error) fleetrig.Check {
	return func(u *unstructured.Unstructured) error {
		b, err := binding(u)
		if err != nil {
			return err
		}
		return check(b)
	}
}

// spreadOf is where a binding says that its template goes.
func spreadOf(b *workv1alpha2.ResourceBinding) spread {
	s := spread{}
	for _, c := range b.Spec.Clusters {
		s[c.Name] += int64(c.Replicas)
	}
	return s
}

// goes checks where a binding says that its template goes.
func goes(want spread) fleetrig.Check {
	return bound(func(b *workv1alpha2.ResourceBinding) error {
		if diff := cmp.Diff(want, spreadOf(b)); diff != "" {
			return fmt.Errorf("it goes elsewhere (-want +got):\n%s", diff)
		}
		return nil
	})
}

// goesTo checks to which clusters, however many replicas each has.
func goesTo(clusters ...string) fleetrig.Check {
	return bound(func(b *workv1alpha2.ResourceBinding) error {
		got := spreadOf(b)
		for _, name := range clusters {
			if _, ok := got[name]; !ok {
				return fmt.Errorf("it goes to %v, not to %s", got, name)
			}
		}
		if len(got) != len(clusters) {
			return fmt.Errorf("it goes to %v, want %v", got, clusters)
		}
		return nil
	})
}

// decided checks the condition Scheduled. Of a success it has to be about the binding as it is now.
func decided(reason string, texts ...string) fleetrig.Check {
	return bound(func(b *workv1alpha2.ResourceBinding) error {
		for _, c := range b.Status.Conditions {
			if c.Type != workv1alpha2.ConditionScheduled {
				continue
			}
			if c.Reason != reason {
				return fmt.Errorf("Scheduled is %s: %s, want %s", c.Reason, c.Message, reason)
			}
			for _, text := range texts {
				if !strings.Contains(c.Message, text) {
					return fmt.Errorf("Scheduled says %q, want %q in it", c.Message, text)
				}
			}
			if ours := b.Status.SchedulerObservedGeneration; reason == workv1alpha2.ReasonScheduled && ours != b.Generation {
				return fmt.Errorf("the decision is about generation %d, there is %d", ours, b.Generation)
			}
			return nil
		}
		return errors.New("it has no condition Scheduled")
	})
}

// success is what a binding says that is where it should be.
func success() fleetrig.Check { return decided(workv1alpha2.ReasonScheduled) }

// replicas checks those of a Deployment.
func replicas(want int64, fields ...string) fleetrig.Check {
	return func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is not there")
		}
		if got, _, _ := unstructured.NestedInt64(u.Object, fields...); got != want {
			return fmt.Errorf("%s is %d, want %d", strings.Join(fields, "."), got, want)
		}
		return nil
	}
}

// onMembers waits until the members have the replicas of a Deployment, and no others do, and the control plane has
// heard of it.
func onMembers(t *testing.T, u *unstructured.Unstructured, reason string, want spread) {
	t.Helper()
	for _, m := range shared.Members {
		if n, ok := want[m.Name]; ok {
			m.Await(t, u, reason, fleetrig.All(fleetrig.IsOurs, replicas(n, "spec", "replicas")))
		} else {
			m.Await(t, u, reason+"; not here", fleetrig.IsGone)
		}
	}
	shared.Control.Await(t, u, reason+"; its status is that of all members", replicas(want.sum(), "status", "readyReplicas"))
}

// settles waits until a Deployment is where it should be.
func settles(t *testing.T, u *unstructured.Unstructured, reason string, want spread) {
	t.Helper()
	shared.Control.Await(t, bindingOf(u), reason, fleetrig.All(goes(want), success()))
	onMembers(t, u, reason, want)
}

// scale changes the replicas of a template.
func scale(t *testing.T, u *unstructured.Unstructured, replicas int) {
	t.Helper()
	shared.Control.Patch(t, u, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// remove deletes a template, and waits until it has left the members.
func remove(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	shared.Control.Delete(t, u)
	for _, m := range shared.Members {
		m.Await(t, u, "what is deleted in the control plane goes", fleetrig.IsGone)
	}
}

// others shows that the scheduler and what follows it have had their turn: something that comes now goes all the way.
func others(t *testing.T, namespace, name string) {
	t.Helper()
	u := web(t, namespace, name, 1, 0)
	shared.Control.Create(t, policyFor(t, u, `{replicaScheduling: {replicaSchedulingType: Duplicated}}`))
	shared.Control.Create(t, u)
	settles(t, u, "others go on", spread{"member1": 1, "member2": 1, "member3": 1})
}

// clusterNamed names a Cluster.
func clusterNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("cluster.karmada.io/v1alpha1")
	u.SetKind("Cluster")
	u.SetName(name)
	return u
}
