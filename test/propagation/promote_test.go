package propagation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
