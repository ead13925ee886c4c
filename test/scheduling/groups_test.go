package scheduling

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// inTerm checks which affinity term a binding follows.
func inTerm(want string) fleetrig.Check {
	return bound(func(b *workv1alpha2.ResourceBinding) error {
		if got := b.Status.SchedulerObservedAffinityName; got != want {
			return fmt.Errorf("it follows term %q, want %q", got, want)
		}
		return nil
	})
}

// rebalance asks for a fresh start of workloads, and returns what asks.
func rebalance(t *testing.T, name, ttl string, workloads ...*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	r := fleetrig.Object(t, fmt.Sprintf(`{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: %s}, spec: {%s}}`, name, ttl))
	var refs []any
	for _, u := range workloads {
		refs = append(refs, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName()})
	}
	if err := unstructured.SetNestedSlice(r.Object, refs, "spec", "workloads"); err != nil {
		t.Fatal(err)
	}
	shared.Control.Create(t, r)
	return r
}

// TestAffinityGroups checks that a group of clusters that fits nowhere gives way to the next one, and that a workload
// goes back when somebody asks.
func TestAffinityGroups(t *testing.T) {
	t.Parallel()
	const namespace = "groups"
	shared.MakeNamespace(t, namespace)
	u := web(t, namespace, "web", 1, 0)
	terms := func(first string) string {
		return fmt.Sprintf(`[{"affinityName":"first","clusterNames":["%s"]},{"affinityName":"second","clusterNames":["member2"]}]`, first)
	}
	policy := policyFor(t, u, `{replicaScheduling: {replicaSchedulingType: Duplicated}, clusterAffinities: `+terms("nowhere")+`}`)
	shared.Control.Create(t, policy)
	shared.Control.Create(t, u)
	shared.Control.Await(t, bindingOf(u), "the first group has no cluster, the second takes it", fleetrig.All(inTerm("second"), success()))
	settles(t, u, "the second group takes it", spread{"member2": 1})
	shared.HasEvent(t, bindingOf(u), names.EventScheduleBindingFailed, "with clusterAffiliates index(0)", "did not match the placement cluster affinity constraint")

	shared.Control.Patch(t, policy, `{"spec":{"placement":{"clusterAffinities":`+terms("member1")+`}}}`)
	shared.Control.Await(t, bindingOf(u), "it has heard of the change, and stays in its group", fleetrig.All(success(), goes(spread{"member2": 1}), inTerm("second"), bound(func(b *workv1alpha2.ResourceBinding) error {
		if names := b.Spec.Placement.ClusterAffinities[0].ClusterNames; len(names) != 1 || names[0] != "member1" {
			return fmt.Errorf("the first term has %v, want member1", names)
		}
		return nil
	})))
	onMembers(t, u, "it stays in its group", spread{"member2": 1})

	rebalance(t, "groups", "", u)
	shared.Control.Await(t, bindingOf(u), "a fresh start begins with the first group", fleetrig.All(inTerm("first"), success()))
	settles(t, u, "a fresh start begins with the first group", spread{"member1": 1})

	shared.Control.Patch(t, policy, `{"spec":{"placement":{"clusterAffinities":[{"affinityName":"second","clusterNames":["member2"]},{"affinityName":"third","clusterNames":["member3"]}]}}}`)
	shared.Control.Await(t, bindingOf(u), "the group that it was in is gone", fleetrig.All(inTerm("second"), success()))
	settles(t, u, "the group that it was in is gone", spread{"member2": 1})
	remove(t, u)
}

// TestRebalance checks that replicas stay where they are until somebody asks, and what the rebalancer says of it.
func TestRebalance(t *testing.T) {
	t.Parallel()
	const namespace = "rebalance"
	shared.MakeNamespace(t, namespace)
	u := web(t, namespace, "web", 6, 0)
	policy := policyFor(t, u, `{clusterAffinity: {clusterNames: [member1, member2]}, replicaScheduling: {replicaSchedulingType: Divided,
		replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`)
	shared.Control.Create(t, policy)
	shared.Control.Create(t, u)
	settles(t, u, "two clusters share it", spread{"member1": 3, "member2": 3})
	shared.Control.Patch(t, policy, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member1","member2","member3"]}}}}`)
	shared.Control.Await(t, bindingOf(u), "a third cluster is no reason to move", fleetrig.All(goes(spread{"member1": 3, "member2": 3}), success(), bound(func(b *workv1alpha2.ResourceBinding) error {
		if n := len(b.Spec.Placement.ClusterAffinity.ClusterNames); n != 3 {
			return fmt.Errorf("its placement has %d clusters", n)
		}
		return nil
	})))
	onMembers(t, u, "a third cluster is no reason to move", spread{"member1": 3, "member2": 3})

	missing := web(t, namespace, "missing", 1, 0)
	r := rebalance(t, "rebalance", "", u, missing)
	settles(t, u, "somebody asked", spread{"member1": 2, "member2": 2, "member3": 2})
	shared.Control.Await(t, r, "it says what became of both", func(now *unstructured.Unstructured) error {
		list, _, err := unstructured.NestedSlice(now.Object, "status", "observedWorkloads")
		if err != nil {
			return err
		}
		results := map[string]string{}
		for _, o := range list {
			o := o.(map[string]any)
			name, _, _ := unstructured.NestedString(o, "workload", "name")
			results[name] = fmt.Sprint(o["result"], " ", o["reason"])
		}
		for name, want := range map[string]string{
			"web":     fmt.Sprint(appsv1alpha1.RebalanceSuccessful, " ", nil),
			"missing": fmt.Sprint(appsv1alpha1.RebalanceFailed, " ", appsv1alpha1.RebalanceObjectNotFound),
		} {
			if results[name] != want {
				return fmt.Errorf("%s: %q, want %q", name, results[name], want)
			}
		}
		if finished, _, _ := unstructured.NestedString(now.Object, "status", "finishTime"); finished == "" {
			return errors.New("it has no finishTime")
		}
		return nil
	})
	short := rebalance(t, "rebalance-short", "ttlSecondsAfterFinished: 0", u)
	shared.Control.Await(t, short, "it goes when its time is up", fleetrig.IsGone)
	settles(t, u, "there is nothing better", spread{"member1": 2, "member2": 2, "member3": 2})
	remove(t, u)
}
