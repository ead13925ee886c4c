package scheduling

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// TestSuspendedScheduling checks that a binding which is kept from the scheduler stays as it is.
func TestSuspendedScheduling(t *testing.T) {
	t.Parallel()
	const namespace = "held"
	shared.MakeNamespace(t, namespace)
	u := web(t, namespace, "web", 3, 0)
	shared.Control.Create(t, policyFor(t, u, `{replicaScheduling: {replicaSchedulingType: Divided}}`))
	shared.Control.Create(t, u)
	settles(t, u, "it is scheduled", spread{"member1": 1, "member2": 1, "member3": 1})
	shared.Control.Patch(t, bindingOf(u), `{"spec":{"suspension":{"scheduling":true}}}`)
	scale(t, u, 9)
	shared.Control.Await(t, bindingOf(u), "it has heard of the replicas", replicas(9, "spec", "replicas"))
	others(t, namespace, "others")
	shared.Control.Await(t, bindingOf(u), "it is held", goes(spread{"member1": 1, "member2": 1, "member3": 1}))
	onMembers(t, u, "it is held", spread{"member1": 1, "member2": 1, "member3": 1})
	shared.Control.Patch(t, bindingOf(u), `{"spec":{"suspension":null}}`)
	settles(t, u, "it is let go", spread{"member1": 3, "member2": 3, "member3": 3})
	remove(t, u)
}

// worksOf returns the Works of a binding by cluster.
func worksOf(t *testing.T, u *unstructured.Unstructured) (map[string]*unstructured.Unstructured, error) {
	t.Helper()
	b := bindingOf(u)
	found := map[string]*unstructured.Unstructured{}
	for _, m := range shared.Members {
		r, err := shared.Control.Resource(fleetrig.Object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: `+names.ExecutionNamespace(m.Name)+`}}`))
		if err != nil {
			return nil, err
		}
		list, err := r.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i, w := range list.Items {
			has := w.GetAnnotations()
			if has[names.ResourceBindingNamespaceAnnotation] != b.GetNamespace() || has[names.ResourceBindingNameAnnotation] != b.GetName() {
				continue
			}
			if found[m.Name] != nil {
				return nil, fmt.Errorf("%s has two Works: %s and %s", m.Name, found[m.Name].GetName(), w.GetName())
			}
			found[m.Name] = &list.Items[i]
		}
	}
	return found, nil
}

// dispatching waits until the Works of a template say whether they are carried out.
func dispatching(t *testing.T, u *unstructured.Unstructured, why string, reasons map[string]string) {
	t.Helper()
	fleetrig.Eventually(t, why, func() error {
		works, err := worksOf(t, u)
		if err != nil {
			return err
		}
		for name, want := range reasons {
			if works[name] == nil {
				return fmt.Errorf("%s has no Work", name)
			}
			conditions, _, err := unstructured.NestedSlice(works[name].Object, "status", "conditions")
			if err != nil {
				return err
			}
			got := ""
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == workv1alpha1.ConditionDispatching {
					got = fmt.Sprint(c["reason"])
				}
			}
			if got != want {
				return fmt.Errorf("the Work of %s is %q, want %q", name, got, want)
			}
		}
		return nil
	})
}

// TestSuspendedDispatching checks that what is held back is decided, and not carried out.
func TestSuspendedDispatching(t *testing.T) {
	t.Parallel()
	const namespace = "undispatched"
	shared.MakeNamespace(t, namespace)
	u := web(t, namespace, "web", 3, 0)
	policy := policyFor(t, u, `{replicaScheduling: {replicaSchedulingType: Divided}}`)
	if err := unstructured.SetNestedField(policy.Object, true, "spec", "suspension", "dispatching"); err != nil {
		t.Fatal(err)
	}
	shared.Control.Create(t, policy)
	shared.Control.Create(t, u)
	ones := spread{"member1": 1, "member2": 1, "member3": 1}
	shared.Control.Await(t, bindingOf(u), "it is scheduled", fleetrig.All(goes(ones), success()))
	const on, off = workv1alpha1.ReasonDispatching, workv1alpha1.ReasonSuspendDispatching
	dispatching(t, u, "all are held back", map[string]string{"member1": off, "member2": off, "member3": off})
	others(t, namespace, "others")
	for _, m := range shared.Members {
		m.Await(t, u, "it is held back", fleetrig.IsGone)
	}
	shared.Control.Patch(t, policy, `{"spec":{"suspension":{"dispatching":null,"dispatchingOnClusters":{"clusterNames":["member2"]}}}}`)
	dispatching(t, u, "one is held back", map[string]string{"member1": on, "member2": off, "member3": on})
	shared.Members[0].Await(t, u, "it is let go here", replicas(1, "spec", "replicas"))
	shared.Members[2].Await(t, u, "it is let go here", replicas(1, "spec", "replicas"))
	shared.Members[1].Await(t, u, "it is held back here", fleetrig.IsGone)
	shared.Control.Patch(t, policy, `{"spec":{"suspension":null}}`)
	settles(t, u, "all are let go", ones)
	shared.Control.Patch(t, policy, `{"spec":{"suspension":{"dispatching":true}}}`)
	dispatching(t, u, "all are held back again", map[string]string{"member1": off, "member2": off, "member3": off})
	scale(t, u, 6)
	shared.Control.Await(t, bindingOf(u), "scheduling goes on", fleetrig.All(goes(spread{"member1": 2, "member2": 2, "member3": 2}), success()))
	others(t, namespace, "more")
	onMembers(t, u, "members are as they were", ones)
	shared.Control.Patch(t, policy, `{"spec":{"suspension":null}}`)
	settles(t, u, "all are let go again", spread{"member1": 2, "member2": 2, "member3": 2})
	remove(t, u)
}
