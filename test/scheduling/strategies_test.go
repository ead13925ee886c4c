package scheduling

import (
	"fmt"
	"strings"
	"testing"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// TestStrategies takes a workload with each strategy up and down. None of them looks for room: test of those that do
// are in room_test.go.
func TestStrategies(t *testing.T) {
	type step struct {
		replicas int
		want     spread
	}
	cases := map[string]struct {
		reason    string
		placement string
		steps     []step
	}{
		"Nothing": {
			reason:    "Who says nothing means every cluster, with all replicas.",
			placement: `{}`,
			steps:     []step{{2, spread{"member1": 2, "member2": 2, "member3": 2}}, {1, spread{"member1": 1, "member2": 1, "member3": 1}}},
		},
		"Duplicated": {
			reason:    "Every cluster that is selected has all replicas.",
			placement: `{clusterAffinity: {clusterNames: [member1, member3]}, replicaScheduling: {replicaSchedulingType: Duplicated}}`,
			steps:     []step{{2, spread{"member1": 2, "member3": 2}}, {5, spread{"member1": 5, "member3": 5}}, {1, spread{"member1": 1, "member3": 1}}},
		},
		"StaticWeights": {
			reason: "Replicas are divided anew by weights.",
			placement: `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
				{targetCluster: {clusterNames: [member1]}, weight: 3}, {targetCluster: {clusterNames: [member2]}, weight: 2}, {targetCluster: {clusterNames: [member3]}, weight: 1}]}}}`,
			steps: []step{
				{12, spread{"member1": 6, "member2": 4, "member3": 2}}, {18, spread{"member1": 9, "member2": 6, "member3": 3}},
				{6, spread{"member1": 3, "member2": 2, "member3": 1}},
			},
		},
		"NoWeights": {
			reason:    "Without weights all are equal.",
			placement: `{replicaScheduling: {replicaSchedulingType: Divided}}`,
			steps: []step{
				{6, spread{"member1": 2, "member2": 2, "member3": 2}}, {9, spread{"member1": 3, "member2": 3, "member3": 3}},
				{3, spread{"member1": 1, "member2": 1, "member3": 1}},
			},
		},
		"NamedTwice": {
			reason: "A cluster that two weights name has the larger one; one that none names has no replicas.",
			placement: `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
				{targetCluster: {clusterNames: [member1]}, weight: 1}, {targetCluster: {clusterNames: [member1, member2]}, weight: 3}]}}}`,
			steps: []step{{8, spread{"member1": 4, "member2": 4}}, {2, spread{"member1": 1, "member2": 1}}},
		},
		"DynamicWeight": {
			reason:    "Clusters with the same room have the same share, and what is there stays.",
			placement: `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`,
			steps: []step{
				{6, spread{"member1": 2, "member2": 2, "member3": 2}}, {9, spread{"member1": 3, "member2": 3, "member3": 3}},
				{3, spread{"member1": 1, "member2": 1, "member3": 1}},
			},
		},
	}
	shared.MakeNamespace(t, "strategies")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := web(t, "strategies", strings.ToLower(name), c.steps[0].replicas, 0)
			shared.Control.Create(t, policyFor(t, u, c.placement))
			shared.Control.Create(t, u)
			for i, s := range c.steps {
				if i > 0 {
					scale(t, u, s.replicas)
				}
				settles(t, u, fmt.Sprintf("%s %d replicas.", c.reason, s.replicas), s.want)
			}
			remove(t, u)
		})
	}
}

// TestSpread checks that there are as many clusters as the policy says, and that those which a workload is in are
// preferred.
func TestSpread(t *testing.T) {
	t.Parallel()
	const namespace = "spread"
	shared.MakeNamespace(t, namespace)
	u := web(t, namespace, "web", 1, 0)
	policy := policyFor(t, u, `{spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}], replicaScheduling: {replicaSchedulingType: Duplicated}}`)
	shared.Control.Create(t, policy)
	shared.Control.Create(t, u)
	has := func(n int) fleetrig.Check {
		return fleetrig.All(success(), bound(func(b *workv1alpha2.ResourceBinding) error {
			if len(b.Spec.Clusters) != n {
				return fmt.Errorf("it goes to %v, want %d clusters", spreadOf(b), n)
			}
			return nil
		}))
	}
	of := func(before spread) fleetrig.Check {
		return bound(func(b *workv1alpha2.ResourceBinding) error {
			for name := range spreadOf(b) {
				if _, ok := before[name]; !ok {
					return fmt.Errorf("it goes to %v, and was in %v", spreadOf(b), before)
				}
			}
			return nil
		})
	}
	now := func(reason string, check fleetrig.Check) spread {
		b, err := binding(shared.Control.Await(t, bindingOf(u), reason, check))
		if err != nil {
			t.Fatal(err)
		}
		s := spreadOf(b)
		onMembers(t, u, reason, s)
		return s
	}
	two := now("two clusters are the most", has(2))
	shared.Control.Patch(t, policy, `{"spec":{"placement":{"spreadConstraints":[{"spreadByField":"cluster","minGroups":1,"maxGroups":1}]}}}`)
	now("one of the two stays", fleetrig.All(has(1), of(two)))
	shared.Control.Patch(t, policy, `{"spec":{"placement":{"spreadConstraints":[{"spreadByField":"cluster","minGroups":1}]}}}`)
	now("without maxGroups there is no most", has(3))
	shared.Control.Patch(t, policy, `{"spec":{"placement":{"spreadConstraints":[{"spreadByField":"cluster","minGroups":4}]}}}`)
	shared.Control.Await(t, bindingOf(u), "there are not as many clusters as it wants; it stays", fleetrig.All(
		decided(workv1alpha2.ReasonSchedulerError, "the number of feasible clusters is less than spreadConstraint.MinGroups"), goesTo("member1", "member2", "member3")))
	remove(t, u)
}
