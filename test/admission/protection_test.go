package admission

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// protect puts a value into the label that protects an object, or takes it off when there is none.
func protect(t *testing.T, c *fleetrig.Cluster, u *unstructured.Unstructured, value string) {
	t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	c.Patch(t, u, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, names.DeletionProtectedLabel, text))
}

// kept checks that a deletion is refused because of protection.
func kept(t *testing.T, reason string, err error) {
	t.Helper()
	says(t, reason, err, names.DeletionProtectedRefusal)
	if !apierrors.IsForbidden(err) {
		t.Errorf("want Forbidden: %s\n%v", reason, err)
	}
}

// TestProtectedObject checks that an object with the label stays until the label is off, however it is deleted.
func TestProtectedObject(t *testing.T) {
	const namespace = "protected"
	makeNamespace(t, namespace)
	u := created(t, fleetrig.ConfigMap(t, namespace, "kept", "v"))
	created(t, fleetrig.ConfigMap(t, namespace, "other", "v"))
	protect(t, shared.Control, u, names.DeletionProtectedAlways)
	err := remove(t, u)
	kept(t, "it is protected", err)
	says(t, "the webhook's name is contract", err, denied("resourcedeletionprotection"))

	r, err := shared.Control.Resource(u)
	if err != nil {
		t.Fatal(err)
	}
	kept(t, "one of the collection is protected", r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	shared.Control.Await(t, u, "it is still there", fleetrig.HoldsValue("v"))
	protect(t, shared.Control, u, "Never")
	if err := remove(t, u); err != nil {
		t.Errorf("another value protects nothing: %v", err)
	}
	shared.Control.Await(t, u, "it goes", fleetrig.IsGone)
}

// TestProtectedNamespace checks that neither a protected namespace goes, nor one that holds something protected.
func TestProtectedNamespace(t *testing.T) {
	space := makeNamespace(t, "protected-space")
	protect(t, shared.Control, space, names.DeletionProtectedAlways)
	kept(t, "the namespace is protected", remove(t, space))
	protect(t, shared.Control, space, "")

	u := created(t, fleetrig.ConfigMap(t, space.GetName(), "kept", "v"))
	created(t, fleetrig.ConfigMap(t, space.GetName(), "other", "v"))
	protect(t, shared.Control, u, names.DeletionProtectedAlways)
	says(t, "it would lose everything else", remove(t, space), "namespace protected-space holds protected resources", names.DeletionProtectedLabel+" of configmaps/kept")
	shared.Control.Await(t, fleetrig.ConfigMap(t, space.GetName(), "other", ""), "nothing in it goes", fleetrig.HoldsValue("v"))
	protect(t, shared.Control, u, "")
	if err := remove(t, space); err != nil {
		t.Fatal(err)
	}
	shared.Control.Await(t, space, "it goes", fleetrig.IsGone)
}

// TestProtectedDependant checks that what is protected outlives its owner.
func TestProtectedDependant(t *testing.T) {
	const namespace = "protected-owner"
	makeNamespace(t, namespace)
	owner := created(t, fleetrig.ConfigMap(t, namespace, "owner", "v"))
	dependant := func(name string) *unstructured.Unstructured {
		u := fleetrig.ConfigMap(t, namespace, name, "v")
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID()}})
		return u
	}
	protected := dependant("kept")
	protected.SetLabels(map[string]string{names.DeletionProtectedLabel: names.DeletionProtectedAlways})
	created(t, protected)
	created(t, dependant("other"))
	shared.Control.Delete(t, owner)
	shared.Control.Await(t, dependant("other"), "it goes with its owner", fleetrig.IsGone)
	shared.Control.Await(t, owner, "it goes", fleetrig.IsGone)
	shared.Control.Await(t, protected, "it outlives its owner", fleetrig.HoldsValue("v"))
	protect(t, shared.Control, protected, "")
	shared.Control.Await(t, protected, "without the label it goes, too", fleetrig.IsGone)
}

// TestProtectedDefinition checks that a kind stays as long as an object of it is protected.
func TestProtectedDefinition(t *testing.T) {
	crd := fleetrig.Object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boxes.shop.example.com}, spec: {group: shop.example.com,
		scope: Cluster, names: {plural: boxes, singular: box, kind: Box}, versions: [{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	created(t, crd)
	box := fleetrig.Object(t, `{apiVersion: shop.example.com/v1, kind: Box, metadata: {name: kept}}`)
	shared.Control.Create(t, box)
	protect(t, shared.Control, box, names.DeletionProtectedAlways)
	says(t, "its objects would go unasked", remove(t, crd), "objects of boxes.shop.example.com are protected and would be deleted too", names.DeletionProtectedLabel+" of kept")
	protect(t, shared.Control, box, "")
	if err := remove(t, crd); err != nil {
		t.Fatal(err)
	}
	shared.Control.Await(t, crd, "it goes", fleetrig.IsGone)
}

// TestProtectedCluster checks that a Cluster, which the webhook never sees, stays as well.
func TestProtectedCluster(t *testing.T) {
	u := fleetrig.Object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: `+member+`}}`)
	protect(t, shared.Control, u, names.DeletionProtectedAlways)
	kept(t, "it is protected", remove(t, u))
	r, err := shared.Control.Resource(u)
	if err != nil {
		t.Fatal(err)
	}
	kept(t, "one of the collection is protected", r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	if _, err := shared.Run(t.Context(), "", shared.UnjoinArgs(shared.Playground, member, member)...); err == nil || !strings.Contains(err.Error(), names.DeletionProtectedRefusal) {
		t.Errorf("unjoin has to say that the cluster is protected, got: %v", err)
	}
	protect(t, shared.Control, u, "")
	if _, err := shared.WaitCluster(t.Context(), member, "is as it was", rig.IsReady("True")); err != nil {
		t.Error(err)
	}
}

// proxied is the member as the control plane's administrator reaches it through the control plane.
func proxied(t *testing.T) *fleetrig.Cluster {
	t.Helper()
	config := rest.CopyConfig(shared.Control.Config)
	config.Host = strings.TrimSuffix(config.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + member + "/proxy"
	c, err := shared.Open(member+", through the control plane", config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestProtectedInMember checks that what is protected in a member is not deleted through the control plane.
func TestProtectedInMember(t *testing.T) {
	const namespace = "protected-there"
	through, there := proxied(t), shared.Members[0]
	through.Create(t, fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}`))
	u, other := fleetrig.ConfigMap(t, namespace, "kept", "v"), fleetrig.ConfigMap(t, namespace, "other", "v")
	through.Create(t, u)
	through.Create(t, other)
	protect(t, through, u, names.DeletionProtectedAlways)
	r, err := through.Resource(u)
	if err != nil {
		t.Fatal(err)
	}
	kept(t, "it is protected", r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	kept(t, "one of the collection is protected", r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	there.Await(t, u, "it is still there", fleetrig.HoldsValue("v"))
	there.Await(t, other, "a collection stays as a whole", fleetrig.HoldsValue("v"))
	protect(t, through, u, "")
	if err := r.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	there.Await(t, u, "without the label it goes", fleetrig.IsGone)
	through.Delete(t, fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}`))
}
