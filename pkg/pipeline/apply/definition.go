package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// isDefinition reports whether the target is a CustomResourceDefinition, whose
// deletion takes along all objects of its kind.
func (t *target) isDefinition() bool {
	return t.place.gvr.GroupResource() == schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
}

// keptReason is the reason of the event that tells of an object that must stay.
func (t *target) keptReason() string {
	if t.isDefinition() {
		return eventDefinitionKept
	}
	return eventNamespaceKept
}

// definitionMustStay reports whether the member has objects of the kind that were
// not propagated to it, or that cannot be found out.
func (t *target) definitionMustStay(ctx context.Context, observed *unstructured.Unstructured) (stays bool, why string) {
	other, err := t.strayOf(ctx, observed)
	reason := ""
	switch {
	case err != nil:
		reason = fmt.Sprintf("it could not be found out whether there are objects of its kind: %v", err)
	case other != "":
		reason = fmt.Sprintf("there are objects of its kind that were not propagated, such as %s", other)
	default:
		return false, ""
	}
	return true, fmt.Sprintf("CustomResourceDefinition %s was not deleted from cluster %s but released, as %s. Delete it there if it is not needed any more.",
		t.place.name, t.member.Name(), reason)
}

// strayOf names an object of the kind that a definition defines and that is not
// ours, "" when there is none. A kind that is not served has no objects to lose.
func (t *target) strayOf(ctx context.Context, definition *unstructured.Unstructured) (string, error) {
	group, _, err := unstructured.NestedString(definition.Object, "spec", "group")
	if err != nil {
		return "", err
	}
	plural, _, err := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	if err != nil {
		return "", err
	}
	version, err := servedVersion(definition)
	if err != nil || version == "" {
		return "", err
	}
	client, err := t.member.Metadata()
	if err != nil {
		return "", fmt.Errorf("make a metadata client: %w", err)
	}
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: names.ManagedLabel + "!=" + names.True, Limit: 1})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
	}
	for _, o := range list.Items {
		return key(place{namespace: o.Namespace, name: o.Name}), nil
	}
	return "", nil
}

// servedVersion returns a version in which objects of a defined kind can be read,
// "" when there is none.
func servedVersion(definition *unstructured.Unstructured) (string, error) {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			return nameOf(v), nil
		}
	}
	return "", nil
}
