package scheduling

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// all is the room of a member: CPUs.
const all = memberNodes * nodeCPUs

// free is how many CPUs a Cluster says that nobody has asked for.
func free(u *unstructured.Unstructured) (int64, error) {
	if u == nil {
		return 0, errors.New("there is no such Cluster")
	}
	var left resource.Quantity
	for field, sign := range map[string]int{"allocatable": 1, "allocated": -1, "allocating": -1} {
		text, found, err := unstructured.NestedString(u.Object, "status", "resourceSummary", field, "cpu")
		if err != nil {
			return 0, err
		}
		if !found {
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return 0, err
		}
		if sign < 0 {
			left.Sub(q)
		} else {
			left.Add(q)
		}
	}
	return left.Value(), nil
}

// hasRoom waits until the Clusters say how much room there is.
func hasRoom(t *testing.T, reason string, want spread) {
	t.Helper()
	fleetrig.Eventually(t, reason, func() error {
		got := spread{}
		for name := range want {
			c, err := shared.Control.Get(t.Context(), clusterNamed(name))
			if err != nil {
				return err
			}
			if got[name], err = free(c); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("free CPUs (-want +got):\n%s", diff)
		}
		return nil
	})
}

// dynamic divides replicas by the room of the clusters.
const dynamic = `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`

// aggregated divides them among as few clusters as will do.
const aggregated = `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}`

// TestRoom takes workloads through clusters that have room, some of which somebody else has taken, and through its end.
// Each pod asks for a CPU.
func TestRoom(t *testing.T) {
	const namespace, taken = "room", 12
	shared.MakeNamespace(t, namespace)
	whole := spread{"member1": all, "member2": all, "member3": all}
	part := spread{"member1": all - taken, "member2": all, "member3": all}
	// With models, a node counts as the smallest of its class; this is about what is left to the last CPU.
	for name := range whole {
		shared.Control.Patch(t, clusterNamed(name), `{"spec":{"resourceModels":null}}`)
	}
	hasRoom(t, "nobody has taken anything", whole)
	hog := web(t, "default", "hog", taken, 1)
	shared.Members[0].Create(t, hog)
	hasRoom(t, "a user of member1 has taken some", part)

	t.Run("DynamicWeight", func(t *testing.T) {
		u := web(t, namespace, "weighted", 10, 1)
		shared.Control.Create(t, policyFor(t, u, dynamic))
		shared.Control.Create(t, u)
		settles(t, u, "replicas are divided by room", spread{"member1": 2, "member2": 4, "member3": 4})
		scale(t, u, 20)
		settles(t, u, "more are divided by the room that is left", spread{"member1": 4, "member2": 8, "member3": 8})
		scale(t, u, 5)
		settles(t, u, "every cluster loses its share", spread{"member1": 1, "member2": 2, "member3": 2})
		remove(t, u)
		hasRoom(t, "it has left", part)
	})

	t.Run("Aggregated", func(t *testing.T) {
		u := web(t, namespace, "aggregated", 20, 1)
		shared.Control.Create(t, policyFor(t, u, aggregated))
		shared.Control.Create(t, u)
		var home string
		shared.Control.Await(t, bindingOf(u), "one cluster is enough", fleetrig.All(success(), bound(func(b *workv1alpha2.ResourceBinding) error {
			if len(b.Spec.Clusters) != 1 || b.Spec.Clusters[0].Replicas != 20 || b.Spec.Clusters[0].Name == "member1" {
				return fmt.Errorf("it goes to %v, want one with room for 20", spreadOf(b))
			}
			home = b.Spec.Clusters[0].Name
			return nil
		})))
		settles(t, u, "one cluster is enough", spread{home: 20})
		scale(t, u, 30)
		var both spread
		shared.Control.Await(t, bindingOf(u), "it needs a second cluster, and keeps the first", fleetrig.All(success(), bound(func(b *workv1alpha2.ResourceBinding) error {
			both = spreadOf(b)
			if len(both) != 2 || both.sum() != 30 || both[home] < 20 || both[home] > all {
				return fmt.Errorf("it goes to %v, want 20 or more in %s, and the rest in another", both, home)
			}
			return nil
		})))
		settles(t, u, "it needs a second cluster, and keeps the first", both)
		scale(t, u, 10)
		settles(t, u, "the cluster with most is enough", spread{home: 10})
		remove(t, u)
		hasRoom(t, "it has left", part)
	})

	t.Run("Group", func(t *testing.T) {
		u := web(t, namespace, "groups", 20, 1)
		shared.Control.Create(t, policyFor(t, u, `{clusterAffinities: [{affinityName: small, clusterNames: [member1]}, {affinityName: large, clusterNames: [member2, member3]}],
			replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`))
		shared.Control.Create(t, u)
		settles(t, u, "the first group has no room for it", spread{"member2": 10, "member3": 10})
		shared.Control.Await(t, bindingOf(u), "the second group has", inTerm("large"))
		shared.HasEvent(t, bindingOf(u), names.EventScheduleBindingFailed, "with clusterAffiliates index(0)", "are not enough to schedule")
		remove(t, u)
		hasRoom(t, "it has left", part)
	})

	t.Run("NotEnough", func(t *testing.T) {
		u := web(t, namespace, "large", 30, 1)
		shared.Control.Create(t, policyFor(t, u, dynamic))
		shared.Control.Create(t, u)
		at := spread{"member1": 6, "member2": 12, "member3": 12}
		settles(t, u, "there is room for so many", at)
		const wanted = 66
		scale(t, u, wanted)
		shared.Control.Await(t, bindingOf(u), "there is no room for more; what runs stays", fleetrig.All(
			decided(workv1alpha2.ReasonUnschedulable, "Clusters available replicas", "are not enough to schedule."), replicas(wanted, "spec", "replicas"), goes(at)))
		others(t, namespace, "others")
		onMembers(t, u, "what runs stays", at)

		shared.Members[0].Delete(t, hog)
		var now spread
		shared.Control.Await(t, bindingOf(u), "there is room again", fleetrig.All(success(), bound(func(b *workv1alpha2.ResourceBinding) error {
			now = spreadOf(b)
			for name, n := range now {
				if n < at[name] || n > all {
					return fmt.Errorf("%s has %d, want what it had, %d, or more, and no more than %d", name, n, at[name], all)
				}
			}
			if now.sum() != wanted {
				return fmt.Errorf("it goes to %v, want %d", now, wanted)
			}
			return nil
		})))
		settles(t, u, "there is room again", now)
		remove(t, u)
		hasRoom(t, "all have left", whole)
	})

	t.Run("Once", func(t *testing.T) { roomOnce(t, whole) })
}

// roomOnce checks that workloads which come at the same time do not take the same room.
func roomOnce(t *testing.T, whole spread) {
	const namespace, each = "once", 20
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, policyForAll(t, namespace, aggregated))
	var workloads []*unstructured.Unstructured
	for i := range 4 {
		u := web(t, namespace, fmt.Sprintf("w%d", i), each, 1)
		workloads = append(workloads, u)
		shared.Control.Create(t, u)
	}
	// placed returns where the workloads are, but one, which has no room.
	placed := func(workloads []*unstructured.Unstructured) (homes map[string]string, waits *unstructured.Unstructured, err error) {
		homes = map[string]string{}
		for _, u := range workloads {
			got, err := shared.Control.Get(t.Context(), bindingOf(u))
			if err != nil {
				return nil, nil, err
			}
			b, err := binding(got)
			if err != nil {
				return nil, nil, err
			}
			if decided(workv1alpha2.ReasonUnschedulable)(got) == nil && len(b.Spec.Clusters) == 0 {
				if waits != nil {
					return nil, nil, fmt.Errorf("%s and %s have no room", waits.GetName(), u.GetName())
				}
				waits = u
				continue
			}
			if err := success()(got); err != nil {
				return nil, nil, err
			}
			if len(b.Spec.Clusters) != 1 || b.Spec.Clusters[0].Replicas != each {
				return nil, nil, fmt.Errorf("%s goes to %v", u.GetName(), spreadOf(b))
			}
			if other, ok := homes[b.Spec.Clusters[0].Name]; ok {
				return nil, nil, fmt.Errorf("%s and %s are both in %s", other, u.GetName(), b.Spec.Clusters[0].Name)
			}
			homes[b.Spec.Clusters[0].Name] = u.GetName()
		}
		return homes, waits, nil
	}
	var last *unstructured.Unstructured
	fleetrig.Eventually(t, "three have a cluster each, and the fourth has no room", func() error {
		homes, waits, err := placed(workloads)
		if err != nil {
			return err
		}
		if waits == nil || len(homes) != 3 {
			return fmt.Errorf("they are %v, %v waits", homes, waits)
		}
		last = waits
		return nil
	})
	var gone *unstructured.Unstructured
	for _, u := range workloads {
		if u != last {
			gone = u
			break
		}
	}
	remove(t, gone)
	shared.Control.Await(t, bindingOf(last), "what one leaves the other takes", success())
	for _, u := range workloads {
		if u == gone {
			continue
		}
		b, err := binding(shared.Control.Await(t, bindingOf(u), "it is placed", success()))
		if err != nil {
			t.Fatal(err)
		}
		settles(t, u, "its pods have room", spreadOf(b))
	}
	for _, u := range workloads {
		if u != gone {
			remove(t, u)
		}
	}
	hasRoom(t, "all have left", whole)
}
