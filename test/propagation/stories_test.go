package propagation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// makeNamespace creates a namespace of its own for a test, and waits until it is everywhere.
func makeNamespace(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
	shared.control.create(t, u)
	for _, m := range shared.members {
		m.await(t, u, "namespaces are propagated by themselves", isThere)
	}
	return u
}

func configMap(t *testing.T, namespace, name, value string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: {value: %q}}`, namespace, name, value))
}

// holdsValue checks the value of a configMap.
func holdsValue(want string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is not there")
		}
		if got, _, _ := unstructured.NestedString(u.Object, "data", "value"); got != want {
			return fmt.Errorf("its value is %q, want %q", got, want)
		}
		return nil
	}
}

// every is a policy for all ConfigMaps of a namespace.
func every(t *testing.T, namespace, apiVersion, kind string) *unstructured.Unstructured {
	t.Helper()
	policy := policyFor(object(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {namespace: %s, name: x}}`, apiVersion, kind, namespace)), "every-"+strings.ToLower(kind), false)
	selectors := []any{map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if err := unstructured.SetNestedSlice(policy.Object, selectors, "spec", "resourceSelectors"); err != nil {
		t.Fatal(err)
	}
	return policy
}

// hasEvent waits for an event on an object whose note has all the texts.
func hasEvent(t *testing.T, u *unstructured.Unstructured, reason string, texts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s has an event %s that says %q", u.GetKind(), u.GetName(), reason, texts), func() error {
		r, err := shared.control.resource(object(t, `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {namespace: `+or(u.GetNamespace(), "default")+`}}`))
		if err != nil {
			return err
		}
		list, err := r.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			kind, _, _ := unstructured.NestedString(e.Object, "regarding", "kind")
			got, _, _ := unstructured.NestedString(e.Object, "reason")
			note, _, _ := unstructured.NestedString(e.Object, "note")
			if name != u.GetName() || kind != u.GetKind() {
				continue
			}
			notes = append(notes, got+": "+note)
			if got == reason && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(note, text) }) {
				return nil
			}
		}
		return fmt.Errorf("its events are %q", notes)
	})
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// TestNotOurs checks that what a member had before is left alone, unless the policy says otherwise, and that what was
// taken over can be given back.
func TestNotOurs(t *testing.T) {
	const namespace = "not-ours"
	makeNamespace(t, namespace)
	theirs := configMap(t, namespace, "settings", "theirs")
	for _, m := range shared.members {
		m.create(t, theirs)
	}
	ours := configMap(t, namespace, "settings", "ours")
	policy := policyFor(ours, "settings", true)
	shared.control.create(t, policy)
	shared.control.create(t, ours)
	hasEvent(t, ours, names.EventSyncFailed, "Karmada will not manage this resource")
	for _, m := range shared.members {
		m.await(t, theirs, "it is as it was", holdsValue("theirs"))
	}
	shared.control.patch(t, policy, `{"spec":{"conflictResolution":"Overwrite"}}`)
	for _, m := range shared.members {
		m.await(t, ours, "it is taken over when the policy says so", all(holdsValue("ours"), isOurs))
	}
	shared.control.delete(t, ours)
	shared.control.await(t, ours, "it goes", isGone)
	for _, m := range shared.members {
		m.await(t, ours, "it is preserved", all(holdsValue("ours"), func(u *unstructured.Unstructured) error {
			if isOurs(u) == nil {
				return errors.New("it is still ours")
			}
			return nil
		}))
	}
}

// TestLostMark checks that an object from which somebody takes our mark is neither removed nor made again.
func TestLostMark(t *testing.T) {
	const namespace = "lost-mark"
	makeNamespace(t, namespace)
	shared.control.create(t, every(t, namespace, "v1", "ConfigMap"))
	u := configMap(t, namespace, "marked", "ours")
	shared.control.create(t, u)
	for _, m := range shared.members {
		before := m.await(t, u, "it is created", all(holdsValue("ours"), isOurs))
		m.patch(t, u, `{"metadata":{"labels":{"karmada.io/managed":null}},"data":{"value":"kept"}}`)
		hasEvent(t, u, names.EventSyncFailed, "Karmada will not manage this resource")
		after := m.await(t, u, "it is as whoever took the mark off left it", holdsValue("kept"))
		if before.GetUID() != after.GetUID() {
			t.Errorf("on %s it was made anew", m.name)
		}
		m.patch(t, u, `{"metadata":{"labels":{"karmada.io/managed":"true"}}}`)
		m.await(t, u, "with the mark it is ours again", holdsValue("ours"))
	}
}

// TestNamespaceOnMember checks that a namespace that is deleted on a member comes back with everything in it.
func TestNamespaceOnMember(t *testing.T) {
	const namespace = "back-again"
	u := makeNamespace(t, namespace)
	shared.control.create(t, every(t, namespace, "v1", "ConfigMap"))
	var content []*unstructured.Unstructured
	for i := range 5 {
		c := configMap(t, namespace, fmt.Sprintf("c%d", i), "v")
		content = append(content, c)
		shared.control.create(t, c)
	}
	for _, m := range shared.members {
		for _, c := range content {
			m.await(t, c, "it is created", isOurs)
		}
		before := m.await(t, u, "the namespace is there", isThere)
		m.delete(t, u)
		m.await(t, u, "the namespace comes back", func(now *unstructured.Unstructured) error {
			if now == nil || now.GetUID() == before.GetUID() {
				return errors.New("it has not gone and come back yet")
			}
			return nil
		})
		for _, c := range content {
			m.await(t, c, "it comes back with its namespace", isOurs)
		}
	}
	shared.control.delete(t, u)
	for _, m := range shared.members {
		m.await(t, u, "with the namespace in the control plane it goes", isGone)
	}
}

// TestOverrides checks that each member has its own variant, and that an override that fails changes nothing.
func TestOverrides(t *testing.T) {
	const namespace = "variants"
	makeNamespace(t, namespace)
	shared.control.create(t, every(t, namespace, "apps/v1", "Deployment"))
	web := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: variants}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`)
	shared.control.create(t, object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: images, namespace: variants}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		overrideRules: [
		  {targetCluster: {clusterNames: [member1]}, overriders: {imageOverrider: [{component: Registry, operator: replace, value: one.example.com}]}},
		  {targetCluster: {clusterNames: [member3]}, overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 3}]}}]}}`))
	shared.control.create(t, web)
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
	for i, m := range shared.members {
		m.await(t, web, "it has its variant", wants[i])
	}

	broken := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: zz-broken, namespace: variants}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		overrideRules: [{targetCluster: {clusterNames: [member2]}, overriders: {plaintext: [{path: /spec/nothing/here, operator: replace, value: 3}]}}]}}`)
	shared.control.create(t, broken)
	hasEvent(t, web, names.EventApplyOverridePolicyFailed, "zz-broken", "/spec/nothing/here")
	shared.control.patch(t, web, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}`)
	seconds := func(want int64) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "template", "spec", "terminationGracePeriodSeconds"); got != want {
				return fmt.Errorf("terminationGracePeriodSeconds is %d, want %d", got, want)
			}
			return nil
		}
	}
	shared.members[0].await(t, web, "members without a failing override go on", seconds(5))
	shared.members[2].await(t, web, "members without a failing override go on", seconds(5))
	shared.members[1].await(t, web, "a member whose override fails is as it was", all(seconds(30), wants[1]))
	shared.control.delete(t, broken)
	shared.members[1].await(t, web, "it goes on when the override is gone", seconds(5))
}

// TestDependencies checks that what a workload needs goes with it, and leaves with it.
func TestDependencies(t *testing.T) {
	const namespace = "needs"
	makeNamespace(t, namespace)
	for _, name := range []string{"first", "second"} {
		shared.control.create(t, configMap(t, namespace, name, name))
	}
	web := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: needs}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0", envFrom: [{configMapRef: {name: first}}]}]}}}}`)
	policy := policyFor(web, "web", false)
	if err := unstructured.SetNestedField(policy.Object, true, "spec", "propagateDeps"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"member1", "member3"}, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	shared.control.create(t, policy)
	shared.control.create(t, web)
	first, second := configMap(t, namespace, "first", ""), configMap(t, namespace, "second", "")
	for _, i := range []int{0, 2} {
		shared.members[i].await(t, first, "what a workload needs goes with it", holdsValue("first"))
		shared.members[i].await(t, second, "what nobody needs stays", isGone)
	}
	shared.members[1].await(t, first, "it goes nowhere else", isGone)
	shared.control.patch(t, web, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.27.0","envFrom":[{"configMapRef":{"name":"second"}}]}]}}}}`)
	for _, i := range []int{0, 2} {
		shared.members[i].await(t, second, "what a workload comes to need goes there", holdsValue("second"))
		shared.members[i].await(t, first, "what it needs no more leaves", isGone)
	}
	shared.control.delete(t, web)
	for _, i := range []int{0, 2} {
		shared.members[i].await(t, second, "with the workload it leaves", isGone)
	}
	shared.control.await(t, second, "the template stays", holdsValue("second"))
}

// TestClashes checks that objects whose classic names are the same do not get into each other's way.
func TestClashes(t *testing.T) {
	role := func(name string) *unstructured.Unstructured {
		return object(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %q, labels: {clash: "yes"}, annotations: {who: %q}},
			rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`, name, name))
	}
	policy := policyFor(role("x"), "clashes", false)
	selectors := []any{map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "labelSelector": map[string]any{"matchLabels": map[string]any{"clash": "yes"}}}}
	if err := unstructured.SetNestedSlice(policy.Object, selectors, "spec", "resourceSelectors"); err != nil {
		t.Fatal(err)
	}
	shared.control.create(t, policy)
	roles := []string{"clash:a", "clash.a", "Clash:A", "clash-b_c"}
	for _, name := range roles {
		shared.control.create(t, role(name))
	}
	is := func(name string) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if u == nil {
				return errors.New("it is not there")
			}
			if got := u.GetAnnotations()["who"]; got != name {
				return fmt.Errorf("it is %q, want %q", got, name)
			}
			return isOurs(u)
		}
	}
	for _, name := range roles {
		for _, m := range shared.members {
			m.await(t, role(name), "each of them is there", is(name))
		}
	}
	shared.control.delete(t, role(roles[0]))
	for _, m := range shared.members {
		m.await(t, role(roles[0]), "it goes alone", isGone)
		for _, name := range roles[1:] {
			m.await(t, role(name), "the others stay", is(name))
		}
	}
	for _, name := range roles[1:] {
		shared.control.delete(t, role(name))
	}
	shared.control.delete(t, policy)
}

// TestPlacement checks that replicas are divided as the policy says, and move when it says something else.
func TestPlacement(t *testing.T) {
	const namespace = "places"
	makeNamespace(t, namespace)
	web := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: places}, spec: {replicas: 12, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`)
	policy := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: places}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		placement: {clusterAffinity: {clusterNames: [member1, member2, member3]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted,
		  weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1]}, weight: 3}, {targetCluster: {clusterNames: [member2]}, weight: 2}, {targetCluster: {clusterNames: [member3]}, weight: 1}]}}}}}`)
	shared.control.create(t, policy)
	shared.control.create(t, web)
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
		shared.members[i].await(t, web, "replicas are divided by weight", replicas(want))
	}
	shared.control.patch(t, web, `{"spec":{"replicas":14}}`)
	for i, want := range []int64{7, 5, 2} {
		shared.members[i].await(t, web, "more replicas are divided, too", replicas(want))
	}
	shared.control.patch(t, policy, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member2"]}}}}`)
	shared.members[1].await(t, web, "all move to the one that is left", replicas(14))
	shared.members[0].await(t, web, "it leaves the others", isGone)
	shared.members[2].await(t, web, "it leaves the others", isGone)
	shared.control.await(t, web, "its status is that of the one member", func(u *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); got != 14 {
			return fmt.Errorf("readyReplicas is %d, want 14", got)
		}
		return nil
	})
	shared.control.delete(t, web)
	shared.members[1].await(t, web, "it goes", isGone)
}

// TestTooLarge checks that an object that fits into no Work is refused with a reason, and that nothing waits for it.
func TestTooLarge(t *testing.T) {
	const namespace = "large"
	makeNamespace(t, namespace)
	definition := object(t, crd("crates", "Crate"))
	shared.control.create(t, policyFor(definition, "crates", false))
	shared.control.create(t, definition)
	shared.control.create(t, every(t, namespace, "shop.example.com/v1", "Crate"))
	crate := func(name, content string) *unstructured.Unstructured {
		u := object(t, fmt.Sprintf(`{apiVersion: shop.example.com/v1, kind: Crate, metadata: {namespace: %s, name: %s}}`, namespace, name))
		u.Object["data"] = map[string]any{"value": content}
		return u
	}
	large := crate("large", strings.Repeat("x", binding.MaxManifest+100))
	shared.control.create(t, large)
	hasEvent(t, large, names.EventApplyPolicyFailed, strconv.Itoa(binding.MaxManifest), "make it smaller")
	small := crate("small", "v")
	shared.control.create(t, small)
	for _, m := range shared.members {
		m.await(t, small, "what fits goes on", holdsValue("v"))
	}
	shared.control.patch(t, large, `{"data":{"value":"w"}}`)
	for _, m := range shared.members {
		m.await(t, large, "once it is smaller it goes, too", holdsValue("w"))
	}
}

// TestBrokenDiscovery checks that a member with an API that does not answer still gets what it can take, and that
// nothing is removed from it.
func TestBrokenDiscovery(t *testing.T) {
	const namespace = "discovery"
	makeNamespace(t, namespace)
	shared.control.create(t, every(t, namespace, "v1", "ConfigMap"))
	old := configMap(t, namespace, "old", "v")
	shared.control.create(t, old)
	broken := object(t, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.dead.example.com}, spec: {group: dead.example.com, version: v1,
		groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: dead, namespace: default, port: 443}}}`)
	uids := map[string]string{}
	for _, m := range shared.members {
		uids[m.name] = string(m.await(t, old, "it is created", holdsValue("v")).GetUID())
		m.create(t, broken)
	}
	fresh := configMap(t, namespace, "fresh", "v")
	shared.control.create(t, fresh)
	shared.control.patch(t, old, `{"data":{"value":"w"}}`)
	for _, m := range shared.members {
		m.await(t, fresh, "what comes new is created", holdsValue("v"))
		now := m.await(t, old, "what is there is changed", holdsValue("w"))
		if string(now.GetUID()) != uids[m.name] {
			t.Errorf("on %s it was made anew", m.name)
		}
		m.delete(t, broken)
	}
}
