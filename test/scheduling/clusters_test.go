package scheduling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

const noAffinity = "cluster(s) did not match the placement cluster affinity constraint"

// place creates a workload of one replica with a placement.
func place(t *testing.T, namespace, name, placement string) *unstructured.Unstructured {
	t.Helper()
	u := web(t, namespace, name, 1, 0)
	shared.Control.Create(t, policyFor(t, u, placement))
	shared.Control.Create(t, u)
	return u
}

// ones is a replica in each of some members.
func ones(members ...int) spread {
	s := spread{}
	for _, i := range members {
		s[fmt.Sprintf("member%d", i)] = 1
	}
	return s
}

// TestTaints checks that a taint keeps out what does not tolerate it, and leaves alone what is there.
func TestTaints(t *testing.T) {
	const namespace, everywhere = "taints", `{replicaScheduling: {replicaSchedulingType: Duplicated}}`
	shared.MakeNamespace(t, namespace)
	settled := place(t, namespace, "settled", everywhere)
	settles(t, settled, "nothing keeps it out", ones(1, 2, 3))

	shared.Karmadactl(t, "taint", "clusters", "member1", "example.com/drain=now:NoSchedule")
	late := place(t, namespace, "late", everywhere)
	settles(t, late, "the taint keeps it out", ones(2, 3))
	tolerant := place(t, namespace, "tolerant", `{clusterTolerations: [{key: example.com/drain, operator: Equal, value: now, effect: NoSchedule}]}`)
	settles(t, tolerant, "it tolerates the taint", ones(1, 2, 3))
	other := place(t, namespace, "other", `{clusterTolerations: [{key: example.com/drain, operator: Equal, value: later, effect: NoSchedule}]}`)
	settles(t, other, "it tolerates another taint", ones(2, 3))
	only := place(t, namespace, "only", `{clusterAffinity: {clusterNames: [member1]}}`)
	shared.Control.Await(t, bindingOf(only), "there is nowhere else", fleetrig.All(goes(spread{}),
		decided(workv1alpha2.ReasonNoClusterFit, "0/3 clusters are available:", "1 cluster(s) had untolerated taint {example.com/drain=now:NoSchedule}", "2 "+noAffinity)))
	scale(t, settled, 2)
	settles(t, settled, "what is there stays, and can grow", spread{"member1": 2, "member2": 2, "member3": 2})

	shared.Karmadactl(t, "taint", "clusters", "member1", "example.com/drain:NoSchedule-")
	for _, u := range []*unstructured.Unstructured{late, other, tolerant} {
		settles(t, u, "without the taint nothing keeps it out", ones(1, 2, 3))
	}
	settles(t, only, "without the taint nothing keeps it out", ones(1))

	shared.Karmadactl(t, "cordon", "member2")
	cordoned := place(t, namespace, "cordoned", everywhere)
	settles(t, cordoned, "a cordoned cluster takes nothing new", ones(1, 3))
	scale(t, settled, 1)
	settles(t, settled, "what it has stays", ones(1, 2, 3))
	shared.Karmadactl(t, "uncordon", "member2")
	settles(t, cordoned, "it is open again", ones(1, 2, 3))
}

// label sets a label of a cluster, or takes it off when there is no value.
func label(t *testing.T, cluster, key, value string) {
	t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	shared.Control.Patch(t, clusterNamed(cluster), fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, text))
}

// TestLabels checks that a workload follows the labels of clusters, and stays where it is when none is left that
// matches.
func TestLabels(t *testing.T) {
	const namespace, gold = "labels", `{clusterAffinity: {labelSelector: {matchLabels: {tier: gold}}}}`
	shared.MakeNamespace(t, namespace)
	label(t, "member1", "tier", "gold")
	label(t, "member2", "tier", "gold")
	u := place(t, namespace, "web", gold)
	settles(t, u, "two clusters match", ones(1, 2))
	label(t, "member3", "tier", "gold")
	settles(t, u, "a third one comes to match", ones(1, 2, 3))
	label(t, "member2", "tier", "silver")
	settles(t, u, "one does not match any more", ones(1, 3))
	label(t, "member1", "tier", "")
	settles(t, u, "one does not match any more", ones(3))
	label(t, "member3", "tier", "")
	shared.Control.Await(t, bindingOf(u), "none matches any more; it stays", fleetrig.All(goes(ones(3)), decided(workv1alpha2.ReasonNoClusterFit, "0/3 clusters are available: 3 "+noAffinity)))
	fresh := place(t, namespace, "fresh", gold)
	shared.Control.Await(t, bindingOf(fresh), "none matches", fleetrig.All(goes(spread{}), decided(workv1alpha2.ReasonNoClusterFit, "0/3 clusters are available: 3 "+noAffinity)))
	others(t, namespace, "others")
	onMembers(t, u, "it stays, and runs", ones(3))
	label(t, "member2", "tier", "gold")
	settles(t, u, "another one matches, and takes over", ones(2))
	settles(t, fresh, "one matches", ones(2))
	label(t, "member2", "tier", "")
	remove(t, u)
}

// TestClusterLeaves checks that what is on a cluster goes elsewhere when the cluster is removed, and that it takes part
// again when it has come back.
func TestClusterLeaves(t *testing.T) {
	const namespace = "leaves"
	shared.MakeNamespace(t, namespace)
	everywhere := place(t, namespace, "everywhere", `{}`)
	settles(t, everywhere, "it is everywhere", ones(1, 2, 3))
	alone := place(t, namespace, "alone", `{clusterAffinity: {clusterNames: [member2]}}`)
	settles(t, alone, "it is on one", ones(2))
	divided := web(t, namespace, "divided", 6, 0)
	shared.Control.Create(t, policyFor(t, divided, `{clusterAffinity: {clusterNames: [member1, member2]}, replicaScheduling: {replicaSchedulingType: Divided,
		replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`))
	shared.Control.Create(t, divided)
	settles(t, divided, "it is on two", spread{"member1": 3, "member2": 3})
	static := web(t, namespace, "static", 6, 0)
	shared.Control.Create(t, policyFor(t, static, `{replicaScheduling: {replicaSchedulingType: Divided}}`))
	shared.Control.Create(t, static)
	settles(t, static, "it is on three", spread{"member1": 2, "member2": 2, "member3": 2})

	released := place(t, namespace, "released", `{clusterAffinity: {clusterNames: [member1, member2]}}`)
	settles(t, released, "it is on two", ones(1, 2))
	shared.Control.Delete(t, policyFor(t, released, `{}`))
	shared.Control.Await(t, bindingOf(released), "its policy lets it go", func(u *unstructured.Unstructured) error {
		if u == nil || u.GetLabels()[names.PropagationPolicyIDLabel] != "" {
			return errors.New("it is still the policy's")
		}
		return nil
	})

	t.Cleanup(func() {
		if t.Failed() { // others need it
			if err := shared.Join(context.WithoutCancel(t.Context()), "member2"); err != nil {
				t.Log(err)
			}
		}
	})
	if _, err := shared.Run(t.Context(), "", shared.UnjoinArgs(shared.Playground, "member2", "member2", "--cascade=delete")...); err != nil {
		t.Fatal(err)
	}
	settles(t, everywhere, "a cluster has left", ones(1, 3))
	settles(t, divided, "others take over", spread{"member1": 6})
	settles(t, static, "others take over", spread{"member1": 3, "member3": 3})
	shared.Control.Await(t, bindingOf(alone), "there is no other", fleetrig.All(goes(spread{}), decided(workv1alpha2.ReasonNoClusterFit, "clusters are available: 2 "+noAffinity)))
	shared.Members[1].Await(t, alone, "it left with the cluster", fleetrig.IsGone)
	shared.Control.Await(t, bindingOf(released), "what no scheduler moves leaves, too", goes(ones(1)))
	shared.Members[1].Await(t, released, "it left with the cluster", fleetrig.IsGone)
	shared.Members[0].Await(t, released, "it stays where it was", fleetrig.IsOurs)

	if err := shared.Join(t.Context(), "member2"); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.WaitCluster(t.Context(), "member2", "is back", rig.IsReady("True")); err != nil {
		t.Fatal(err)
	}
	settles(t, everywhere, "the cluster is back", ones(1, 2, 3))
	settles(t, alone, "its cluster is back", ones(2))
	shared.Control.Await(t, bindingOf(divided), "it stays where it is", fleetrig.All(goes(spread{"member1": 6}), success()))
	for _, u := range []*unstructured.Unstructured{everywhere, alone, divided, static, released} {
		remove(t, u)
	}
	if out := shared.Karmadactl(t, "get", "clusters"); strings.Count(out, "member") != 3 {
		t.Errorf("want three clusters:\n%s", out)
	}
}
