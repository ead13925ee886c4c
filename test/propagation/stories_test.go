package propagation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// every is a policy for all ConfigMaps of a namespace.
func every(t *testing.T, namespace, apiVersion, kind string) *unstructured.Unstructured {
	t.Helper()
	policy := policyFor(fleetrig.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {namespace: %s, name: x}}`, apiVersion, kind, namespace)), "every-"+strings.ToLower(kind), false)
	selectors := []any{map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if err := unstructured.SetNestedSlice(policy.Object, selectors, "spec", "resourceSelectors"); err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestNotOurs checks that what a member had before is left alone, unless the policy says otherwise, and that what was
// taken over can be given back.
func TestNotOurs(t *testing.T) {
	const namespace = "not-ours"
	shared.MakeNamespace(t, namespace)
	theirs := fleetrig.ConfigMap(t, namespace, "settings", "theirs")
	for _, m := range shared.Members {
		m.Create(t, theirs)
	}
	ours := fleetrig.ConfigMap(t, namespace, "settings", "ours")
	policy := policyFor(ours, "settings", true)
	shared.Control.Create(t, policy)
	shared.Control.Create(t, ours)
	shared.HasEvent(t, ours, names.EventSyncFailed, "Karmada will not manage this resource")
	for _, m := range shared.Members {
		m.Await(t, theirs, "it is as it was", fleetrig.HoldsValue("theirs"))
	}
	shared.Control.Patch(t, policy, `{"spec":{"conflictResolution":"Overwrite"}}`)
	for _, m := range shared.Members {
		m.Await(t, ours, "it is taken over when the policy says so", fleetrig.All(fleetrig.HoldsValue("ours"), fleetrig.IsOurs))
	}
	shared.Control.Delete(t, ours)
	shared.Control.Await(t, ours, "it goes", fleetrig.IsGone)
	for _, m := range shared.Members {
		m.Await(t, ours, "it is preserved", fleetrig.All(fleetrig.HoldsValue("ours"), func(u *unstructured.Unstructured) error {
			if fleetrig.IsOurs(u) == nil {
				return errors.New("it is still ours")
			}
			return nil
		}))
	}
}

// TestLostMark checks that an object from which somebody takes our mark is neither removed nor made again.
func TestLostMark(t *testing.T) {
	const namespace = "lost-mark"
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	u := fleetrig.ConfigMap(t, namespace, "marked", "ours")
	shared.Control.Create(t, u)
	for _, m := range shared.Members {
		before := m.Await(t, u, "it is created", fleetrig.All(fleetrig.HoldsValue("ours"), fleetrig.IsOurs))
		m.Patch(t, u, `{"metadata":{"labels":{"karmada.io/managed":null}},"data":{"value":"kept"}}`)
		shared.HasEvent(t, u, names.EventSyncFailed, "Karmada will not manage this resource")
		after := m.Await(t, u, "it is as whoever took the mark off left it", fleetrig.HoldsValue("kept"))
		if before.GetUID() != after.GetUID() {
			t.Errorf("on %s it was made anew", m.Name)
		}
		m.Patch(t, u, `{"metadata":{"labels":{"karmada.io/managed":"true"}}}`)
		m.Await(t, u, "with the mark it is ours again", fleetrig.HoldsValue("ours"))
	}
}

// TestNamespaceOnMember checks that a namespace that is deleted on a member comes back with everything in it.
func TestNamespaceOnMember(t *testing.T) {
	const namespace = "back-again"
	u := shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	var content []*unstructured.Unstructured
	for i := range 5 {
		c := fleetrig.ConfigMap(t, namespace, fmt.Sprintf("c%d", i), "v")
		content = append(content, c)
		shared.Control.Create(t, c)
	}
	for _, m := range shared.Members {
		for _, c := range content {
			m.Await(t, c, "it is created", fleetrig.IsOurs)
		}
		before := m.Await(t, u, "the namespace is there", fleetrig.IsThere)
		m.Delete(t, u)
		m.Await(t, u, "the namespace comes back", func(now *unstructured.Unstructured) error {
			if now == nil || now.GetUID() == before.GetUID() {
				return errors.New("it has not gone and come back yet")
			}
			return nil
		})
		for _, c := range content {
			m.Await(t, c, "it comes back with its namespace", fleetrig.IsOurs)
		}
	}
	shared.Control.Delete(t, u)
	for _, m := range shared.Members {
		m.Await(t, u, "with the namespace in the control plane it goes", fleetrig.IsGone)
	}
}

// TestOverrides checks that each member has its own variant, and that an override that fails changes nothing.
func TestOverrides(t *testing.T) {
	const namespace = "variants"
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "apps/v1", "Deployment"))
	web := fleetrig.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: variants}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`)
	shared.Control.Create(t, fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: images, namespace: variants}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		overrideRules: [
		  {targetCluster: {clusterNames: [member1]}, overriders: {imageOverrider: [{component: Registry, operator: replace, value: one.example.com}]}},
		  {targetCluster: {clusterNames: [member3]}, overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]}}`))
	shared.Control.Create(t, web)
	image := func(want string, replicas int64) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if u == nil {
				return errors.New("it is not there")
			}
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			got := containers[0].(map[string]any)["image"]
			n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			if got != want || n != replicas {
				return fmt.Errorf("image %v, replicas %d, want %s, %d", got, n, want, replicas)
			}
			return nil
		}
	}
	wants := []func(*unstructured.Unstructured) error{image("one.example.com/nginx:1.27.0", 1), image("nginx:1.27.0", 1), image("nginx:1.27.0", 3)}
	for i, m := range shared.Members {
		m.Await(t, web, "it has its variant", wants[i])
	}

	broken := fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: zz-broken, namespace: variants}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		overrideRules: [{targetCluster: {clusterNames: [member2]}, overriders: {plaintext: [{path: /spec/nothing/here, operator: replace, value: 3}]}}]}}`)
	shared.Control.Create(t, broken)
	shared.HasEvent(t, web, names.EventApplyOverridePolicyFailed, "zz-broken", "/spec/nothing/here")
	shared.Control.Patch(t, web, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}`)
	seconds := func(want int64) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "template", "spec", "terminationGracePeriodSeconds"); got != want {
				return fmt.Errorf("terminationGracePeriodSeconds is %d, want %d", got, want)
			}
			return nil
		}
	}
	shared.Members[0].Await(t, web, "members without a failing override go on", seconds(5))
	shared.Members[2].Await(t, web, "members without a failing override go on", seconds(5))
	shared.Members[1].Await(t, web, "a member whose override fails is as it was", fleetrig.All(seconds(30), wants[1]))
	shared.Control.Delete(t, broken)
	shared.Members[1].Await(t, web, "it goes on when the override is gone", seconds(5))
}

// TestDependencies checks that what a workload needs goes with it, and leaves with it.
func TestDependencies(t *testing.T) {
	const namespace = "needs"
	shared.MakeNamespace(t, namespace)
	for _, name := range []string{"first", "second"} {
		shared.Control.Create(t, fleetrig.ConfigMap(t, namespace, name, name))
	}
	web := fleetrig.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: needs}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0", envFrom: [{configMapRef: {name: first}}]}]}}}}`)
	policy := policyFor(web, "web", false)
	if err := unstructured.SetNestedField(policy.Object, true, "spec", "propagateDeps"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"member1", "member3"}, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	shared.Control.Create(t, policy)
	shared.Control.Create(t, web)
	first, second := fleetrig.ConfigMap(t, namespace, "first", ""), fleetrig.ConfigMap(t, namespace, "second", "")
	for _, i := range []int{0, 2} {
		shared.Members[i].Await(t, first, "what a workload needs goes with it", fleetrig.HoldsValue("first"))
		shared.Members[i].Await(t, second, "what nobody needs stays", fleetrig.IsGone)
	}
	shared.Members[1].Await(t, first, "it goes nowhere else", fleetrig.IsGone)
	shared.Control.Patch(t, web, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.27.0","envFrom":[{"configMapRef":{"name":"second"}}]}]}}}}`)
	for _, i := range []int{0, 2} {
		shared.Members[i].Await(t, second, "what a workload comes to need goes there", fleetrig.HoldsValue("second"))
		shared.Members[i].Await(t, first, "what it needs no more leaves", fleetrig.IsGone)
	}
	shared.Control.Delete(t, web)
	for _, i := range []int{0, 2} {
		shared.Members[i].Await(t, second, "with the workload it leaves", fleetrig.IsGone)
	}
	shared.Control.Await(t, second, "the template stays", fleetrig.HoldsValue("second"))
}

// TestClashes checks that objects whose classic names are the same do not get into each other's way.
func TestClashes(t *testing.T) {
	role := func(name string) *unstructured.Unstructured {
		return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %q, labels: {clash: "yes"}, annotations: {who: %q}},
			rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`, name, name))
	}
	policy := policyFor(role("x"), "clashes", false)
	selectors := []any{map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "labelSelector": map[string]any{"matchLabels": map[string]any{"clash": "yes"}}}}
	if err := unstructured.SetNestedSlice(policy.Object, selectors, "spec", "resourceSelectors"); err != nil {
		t.Fatal(err)
	}
	shared.Control.Create(t, policy)
	roles := []string{"clash:a", "clash.a", "Clash:A", "clash-b_c"}
	for _, name := range roles {
		shared.Control.Create(t, role(name))
	}
	is := func(name string) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if u == nil {
				return errors.New("it is not there")
			}
			if got := u.GetAnnotations()["who"]; got != name {
				return fmt.Errorf("it is %q, want %q", got, name)
			}
			return fleetrig.IsOurs(u)
		}
	}
	for _, name := range roles {
		for _, m := range shared.Members {
			m.Await(t, role(name), "each of them is there", is(name))
		}
	}
	shared.Control.Delete(t, role(roles[0]))
	for _, m := range shared.Members {
		m.Await(t, role(roles[0]), "it goes alone", fleetrig.IsGone)
		for _, name := range roles[1:] {
			m.Await(t, role(name), "the others stay", is(name))
		}
	}
	for _, name := range roles[1:] {
		shared.Control.Delete(t, role(name))
	}
	shared.Control.Delete(t, policy)
}

// TestPlacement checks that replicas are divided as the policy says, and move when it says something else.
func TestPlacement(t *testing.T) {
	const namespace = "places"
	shared.MakeNamespace(t, namespace)
	web := fleetrig.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: places}, spec: {replicas: 12, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`)
	policy := fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: places}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		placement: {clusterAffinity: {clusterNames: [member1, member2, member3]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted,
		  weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1]}, weight: 3}, {targetCluster: {clusterNames: [member2]}, weight: 2}, {targetCluster: {clusterNames: [member3]}, weight: 1}]}}}}}`)
	shared.Control.Create(t, policy)
	shared.Control.Create(t, web)
	replicas := func(want int64) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if u == nil {
				return errors.New("it is not there")
			}
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); got != want {
				return fmt.Errorf("it has %d replicas, want %d", got, want)
			}
			return nil
		}
	}
	for i, want := range []int64{6, 4, 2} {
		shared.Members[i].Await(t, web, "replicas are divided by weight", replicas(want))
	}
	shared.Control.Patch(t, web, `{"spec":{"replicas":14}}`)
	for i, want := range []int64{7, 5, 2} {
		shared.Members[i].Await(t, web, "more replicas are divided, too", replicas(want))
	}
	shared.Control.Patch(t, policy, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member2"]}}}}`)
	shared.Members[1].Await(t, web, "all move to the one that is left", replicas(14))
	shared.Members[0].Await(t, web, "it leaves the others", fleetrig.IsGone)
	shared.Members[2].Await(t, web, "it leaves the others", fleetrig.IsGone)
	shared.Control.Await(t, web, "its status is that of the one member", func(u *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); got != 14 {
			return fmt.Errorf("readyReplicas is %d, want 14", got)
		}
		return nil
	})
	shared.Control.Delete(t, web)
	shared.Members[1].Await(t, web, "it goes", fleetrig.IsGone)
}

// TestTooLarge checks that an object that fits into no Work is refused with a reason, and that nothing waits for it.
func TestTooLarge(t *testing.T) {
	const namespace = "large"
	shared.MakeNamespace(t, namespace)
	definition := fleetrig.Object(t, crd("crates", "Crate"))
	shared.Control.Create(t, policyFor(definition, "crates", false))
	shared.Control.Create(t, definition)
	shared.Control.Create(t, every(t, namespace, "shop.example.com/v1", "Crate"))
	crate := func(name, content string) *unstructured.Unstructured {
		u := fleetrig.Object(t, fmt.Sprintf(`{apiVersion: shop.example.com/v1, kind: Crate, metadata: {namespace: %s, name: %s}}`, namespace, name))
		u.Object["data"] = map[string]any{"value": content}
		return u
	}
	large := crate("large", strings.Repeat("x", binding.MaxManifest+100))
	shared.Control.Create(t, large)
	shared.HasEvent(t, large, names.EventApplyPolicyFailed, strconv.Itoa(binding.MaxManifest), "make it smaller")
	small := crate("small", "v")
	shared.Control.Create(t, small)
	for _, m := range shared.Members {
		m.Await(t, small, "what fits goes on", fleetrig.HoldsValue("v"))
	}
	shared.Control.Patch(t, large, `{"data":{"value":"w"}}`)
	for _, m := range shared.Members {
		m.Await(t, large, "once it is smaller it goes, too", fleetrig.HoldsValue("w"))
	}
}

// TestBrokenDiscovery checks that a member with an API that does not answer still gets what it can take, and that
// nothing is removed from it.
func TestBrokenDiscovery(t *testing.T) {
	const namespace = "discovery"
	shared.MakeNamespace(t, namespace)
	shared.Control.Create(t, every(t, namespace, "v1", "ConfigMap"))
	old := fleetrig.ConfigMap(t, namespace, "old", "v")
	shared.Control.Create(t, old)
	broken := fleetrig.Object(t, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.dead.example.com}, spec: {group: dead.example.com, version: v1,
		groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: dead, namespace: default, port: 443}}}`)
	uids := map[string]string{}
	for _, m := range shared.Members {
		uids[m.Name] = string(m.Await(t, old, "it is created", fleetrig.HoldsValue("v")).GetUID())
		m.Create(t, broken)
	}
	fresh := fleetrig.ConfigMap(t, namespace, "fresh", "v")
	shared.Control.Create(t, fresh)
	shared.Control.Patch(t, old, `{"data":{"value":"w"}}`)
	for _, m := range shared.Members {
		m.Await(t, fresh, "what comes new is created", fleetrig.HoldsValue("v"))
		now := m.Await(t, old, "what is there is changed", fleetrig.HoldsValue("w"))
		if string(now.GetUID()) != uids[m.Name] {
			t.Errorf("on %s it was made anew", m.Name)
		}
		m.Delete(t, broken)
	}
}
