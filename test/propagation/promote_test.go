package propagation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// TestPromote checks that what runs in a member becomes an object of the control plane, with what it needs, and that
// its pods do not notice.
func TestPromote(t *testing.T) {
	const namespace = "shop"
	m := shared.Members[0]
	space := fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
	m.Create(t, space)
	settings := fleetrig.ConfigMap(t, namespace, "settings", "v")
	m.Create(t, settings)
	web := fleetrig.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0", envFrom: [{configMapRef: {name: settings}}], securityContext: {}}], affinity: {}}}}}`)
	m.Create(t, web)
	before := m.Await(t, web, "it runs", func(u *unstructured.Unstructured) error {
		if n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); n != 2 {
			return fmt.Errorf("%d replicas are ready", n)
		}
		return nil
	})
	promote := []string{"promote", "deployment", "web", "-n", namespace, "-C", m.Name, "-d", "--kubeconfig=" + shared.Kubeconfig(), "--cluster-kubeconfig=" + shared.Playground.Kubeconfig(m.Name), "--cluster-context=" + m.Name}

	_, err := shared.Run(t.Context(), "", promote...)
	if err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Fatalf("without its namespace in the control plane the error must say so, got: %v", err)
	}
	shared.Control.Create(t, space)
	if _, err := shared.Run(t.Context(), "", append(promote, "--dry-run")...); err != nil {
		t.Fatal(err)
	}
	if got, err := shared.Control.Get(t.Context(), web); err != nil || got != nil {
		t.Fatalf("a dry run made %v, %v", got, err)
	}
	out, err := shared.Run(t.Context(), "", promote...)
	if err != nil {
		t.Fatal(err)
	}
	if want := `Resource "apps/v1, Resource=deployments"(shop/web) is promoted successfully`; !strings.Contains(out, want) {
		t.Errorf("got %q, want %q in it", out, want)
	}
	after := m.Await(t, web, "it is ours", fleetrig.IsOurs)
	m.Await(t, settings, "what it needs is ours, too", fleetrig.IsOurs)
	if before.GetUID() != after.GetUID() {
		t.Error("it was made anew")
	}
	revision := "deployment.kubernetes.io/revision"
	if before.GetAnnotations()[revision] != after.GetAnnotations()[revision] {
		t.Errorf("its pods were replaced: revision %s, was %s", after.GetAnnotations()[revision], before.GetAnnotations()[revision])
	}
	shared.Control.Await(t, web, "its status is in the control plane", func(u *unstructured.Unstructured) error {
		if n, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); n != 2 {
			return fmt.Errorf("%d replicas are ready", n)
		}
		return nil
	})
	if out, err := shared.Run(t.Context(), "", promote...); err != nil {
		t.Errorf("promoting twice is no error, got %v\n%s", err, out)
	}
	for _, other := range shared.Members[1:] {
		if got, err := other.Get(t.Context(), web); err != nil || got != nil {
			t.Errorf("%s has it, too: %v, %v", other.Name, got, err)
		}
	}
	shared.Control.Delete(t, web)
	shared.Control.Await(t, web, "it goes", fleetrig.IsGone)
	m.Await(t, web, "the policy of a promotion preserves it", func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it went")
		}
		if fleetrig.IsOurs(u) == nil {
			return errors.New("it is still ours")
		}
		return nil
	})
}

// residents are objects of a member, by what they are.
func residents(namespace, tag string) map[string]string {
	pods := func(app, more string) string {
		return fmt.Sprintf(`selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: "nginx:1.27.0", securityContext: {}%[2]s}], affinity: {}}}`, app, more)
	}
	in := fmt.Sprintf("namespace: %s", namespace)
	return map[string]string{
		"Deployment":  fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, %s}, spec: {replicas: 2, %s}}`, in, pods("web", ", envFrom: [{configMapRef: {name: settings}}]")),
		"StatefulSet": fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, %s}, spec: {replicas: 2, serviceName: db, %s}}`, in, pods("db", "")),
		"Service":     fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: web, %s}, spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80}]}}`, in),
		"ConfigMap":   fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, %s}, data: {color: red}}`, in),
		"ClusterRole": fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "back:%s"}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`, tag),
		"Gadget":      fmt.Sprintf(`{apiVersion: shop.example.com/v1, kind: Gadget%[2]s, metadata: {name: one, %[1]s}, spec: {size: 1}}`, in, tag),
		"Definition":  crd("gadget"+tag+"s", "Gadget"+tag),
	}
}

// A resident is an object of a member with what must not change about it.
type resident struct {
	object   *unstructured.Unstructured
	uid      string
	spec     string
	revision int64
}

func (r resident) check(u *unstructured.Unstructured) error {
	switch {
	case u == nil:
		return errors.New("it is not there")
	case string(u.GetUID()) != r.uid:
		return errors.New("it was made anew")
	case specOf(u) != r.spec:
		return fmt.Errorf("it has become %s, was %s", specOf(u), r.spec)
	case u.GetGeneration() != r.revision && u.GetKind() != "Deployment": // whose generation counts annotations, too
		return fmt.Errorf("its spec was written: generation %d, was %d", u.GetGeneration(), r.revision)
	}
	return nil
}

// specOf returns what an object says, without what is said about it.
func specOf(u *unstructured.Unstructured) string {
	rest := u.DeepCopy()
	delete(rest.Object, "metadata")
	delete(rest.Object, "status")
	text, err := json.Marshal(rest.Object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// marks returns the labels and annotations of an object that are the control plane's.
func marks(u *unstructured.Unstructured) []string {
	var all []string
	for _, m := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
		for k := range m {
			if strings.Contains(k, "karmada") {
				all = append(all, k)
			}
		}
	}
	return all
}

// pods returns the UIDs of the pods in a namespace of a member.
func pods(t *testing.T, m *fleetrig.Cluster, namespace string) []string {
	t.Helper()
	r, err := m.Resource(fleetrig.Object(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: %s}}`, namespace)))
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		all = append(all, string(list.Items[i].GetUID()))
	}
	slices.Sort(all)
	return all
}

// TestThereAndBack promotes everything that runs in a namespace of a member, by push and by pull, and demotes it: neither
// changes anything in the member but our marks, and no pod notices.
func TestThereAndBack(t *testing.T) {
	for i, m := range shared.Members[1:] {
		t.Run(m.Name, func(t *testing.T) {
			tag := string(rune('a' + i))
			namespace := "back-" + tag
			shared.MakeNamespace(t, namespace)
			there := settle(t, m, namespace, tag)
			before := pods(t, m, namespace)
			stays := func(t *testing.T, reason string, marked bool) {
				t.Helper()
				for _, r := range there {
					m.Await(t, r.object, reason, func(u *unstructured.Unstructured) error {
						if err := r.check(u); err != nil {
							return err
						}
						if found := marks(u); (len(found) > 0) != marked {
							return fmt.Errorf("it has the marks %q", found)
						}
						return nil
					})
				}
				if diff := cmp.Diff(before, pods(t, m, namespace)); diff != "" {
					t.Errorf("%s: pods are others (-before +after):\n%s", reason, diff)
				}
			}

			all := []string{"promote", "--all", "-n", namespace, "-C", m.Name, "-d"}
			refused(t, "promote crd gadget"+tag+"s.shop.example.com -C "+m.Name, all...)
			definition, role := "gadget"+tag+"s.shop.example.com", "back:"+tag
			shared.Karmadactl(t, "promote", "crd", definition, "-C", m.Name)
			shared.Control.Await(t, there["Definition"].object, "its kind is served", isServed)
			out := shared.Karmadactl(t, append(all, "--dry-run")...)
			if want := "Deployment " + namespace + "/web stays as it is in cluster " + m.Name; !strings.Contains(out, want) {
				t.Errorf("the plan says\n%s\nwant %q in it", out, want)
			}
			if got, err := shared.Control.Get(t.Context(), there["Deployment"].object); err != nil || got != nil {
				t.Fatalf("a dry run made %v, %v", got, err)
			}
			shared.Karmadactl(t, all...)
			shared.Karmadactl(t, "promote", "clusterrole", role, "-C", m.Name)
			stays(t, "it is promoted", true)
			if out := shared.Karmadactl(t, all...); strings.Contains(out, "created") {
				t.Errorf("promoting twice made something:\n%s", out)
			}

			refused(t, "demote them first", "demote", "crd/"+definition)
			back := []string{"demote", "--all", "-n", namespace, "-d"}
			shared.Karmadactl(t, append(back, "--dry-run")...)
			stays(t, "a plan changes nothing", true)
			shared.Karmadactl(t, back...)
			shared.Karmadactl(t, "demote", "clusterrole/"+role)
			shared.Karmadactl(t, "demote", "crd/"+definition)
			stays(t, "it is let go of", false)
			for name, r := range there {
				if name != "Gadget" { // its kind has gone
					shared.Control.Await(t, r.object, "the template goes", fleetrig.IsGone)
				}
			}
			for _, kind := range []string{"PropagationPolicy, apiVersion: policy.karmada.io/v1alpha1", "ResourceBinding, apiVersion: work.karmada.io/v1alpha2"} {
				r, err := shared.Control.Resource(fleetrig.Object(t, fmt.Sprintf("{kind: %s, metadata: {name: x, namespace: %s}}", kind, namespace)))
				if err != nil {
					t.Fatal(err)
				}
				fleetrig.Eventually(t, "the namespace of the control plane is empty", func() error {
					list, err := r.List(t.Context(), metav1.ListOptions{})
					if err == nil && len(list.Items) > 0 {
						err = fmt.Errorf("there is %s", list.Items[0].GetName())
					}
					return err
				})
			}
			if out := shared.Karmadactl(t, "demote", "deployment/web", "-n", namespace); !strings.Contains(out, "is demoted already") {
				t.Errorf("demoting twice says %q", out)
			}
		})
	}
}

// settle makes the residents of a member, and waits for their pods.
func settle(t *testing.T, m *fleetrig.Cluster, namespace, tag string) map[string]resident {
	t.Helper()
	manifests := residents(namespace, tag)
	definition := fleetrig.Object(t, manifests["Definition"])
	m.Create(t, definition)
	m.Await(t, definition, "its kind is served", isServed)
	all := map[string]resident{}
	for name, manifest := range manifests {
		u := fleetrig.Object(t, manifest)
		if name != "Definition" {
			m.Create(t, u)
		}
		got := m.Await(t, u, "it runs", func(u *unstructured.Unstructured) error {
			want, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
			if err != nil {
				return err
			}
			if n, _, err := unstructured.NestedInt64(u.Object, "status", "readyReplicas"); err != nil || n != want {
				return fmt.Errorf("%d of %d replicas are ready, %v", n, want, err)
			}
			return nil
		})
		all[name] = resident{object: u, uid: string(got.GetUID()), spec: specOf(got), revision: got.GetGeneration()}
	}
	return all
}

// refused runs karmadactl, which must fail for a reason.
func refused(t *testing.T, why string, args ...string) {
	t.Helper()
	_, err := shared.Run(t.Context(), "", append(args, "--kubeconfig="+shared.Kubeconfig())...)
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("karmadactl %s: want it to be refused with %q, got: %v", strings.Join(args, " "), why, err)
	}
}

// isServed checks that a definition's kind is there.
func isServed(u *unstructured.Unstructured) error {
	if u == nil {
		return errors.New("it is not there")
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not established")
}

// TestDemoteShared demotes what a policy for many has placed, which preserves nothing, with what goes along.
func TestDemoteShared(t *testing.T) {
	const namespace = "demote-shared"
	shared.MakeNamespace(t, namespace)
	policy := every(t, namespace, "apps/v1", "Deployment")
	if err := unstructured.SetNestedField(policy.Object, true, "spec", "propagateDeps"); err != nil {
		t.Fatal(err)
	}
	shared.Control.Create(t, policy)
	settings := fleetrig.ConfigMap(t, namespace, "settings", "v")
	shared.Control.Create(t, settings)
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: demote-shared}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: "nginx:1.27.0", envFrom: [{configMapRef: {name: settings}}]}]}}}}`
	web, other := fleetrig.Object(t, fmt.Sprintf(manifest, "web")), fleetrig.Object(t, fmt.Sprintf(manifest, "other"))
	shared.Control.Create(t, web)
	shared.Control.Create(t, other)
	uids := map[string]string{}
	for _, m := range shared.Members {
		for _, u := range []*unstructured.Unstructured{web, other, settings} {
			got := m.Await(t, u, "it is propagated", fleetrig.IsOurs)
			uids[m.Name+u.GetKind()+u.GetName()] = string(got.GetUID())
		}
	}
	refused(t, "needs ConfigMap demote-shared/settings", "demote", "configmap/settings", "-n", namespace)
	shared.Karmadactl(t, "demote", "deployment/web", "-n", namespace, "--keep-template")
	released := func(reason string, all ...*unstructured.Unstructured) {
		t.Helper()
		for _, m := range shared.Members {
			for _, u := range all {
				m.Await(t, u, reason, func(now *unstructured.Unstructured) error {
					switch {
					case now == nil:
						return errors.New("it has gone")
					case string(now.GetUID()) != uids[m.Name+u.GetKind()+u.GetName()]:
						return errors.New("it was made anew")
					case len(marks(now)) > 0:
						return fmt.Errorf("it has the marks %q", marks(now))
					}
					return nil
				})
			}
		}
	}
	released("it is let go of", web)
	for _, m := range shared.Members {
		m.Await(t, settings, "others need it still", fleetrig.IsOurs)
	}
	shared.Control.Patch(t, web, `{"spec":{"replicas":3}}`)
	shared.Control.Await(t, web, "its policy does not take it", isUnclaimed)
	released("nothing is sent to it any more", web)

	shared.Karmadactl(t, "demote", "deployment", "other", "-n", namespace, "-d")
	released("what goes along stays, too", other, settings)
	shared.Control.Await(t, settings, "its template goes", fleetrig.IsGone)
	shared.Karmadactl(t, "demote", "deployment/web", "-n", namespace)
	shared.Control.Await(t, web, "the template that was kept goes", fleetrig.IsGone)
	released("and nothing with it", web)
	shared.Control.Await(t, policy, "a policy for many stays", fleetrig.IsThere)
}
