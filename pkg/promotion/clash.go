package promotion

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clash says who has what a Service needs for itself in a cluster, when the control
// plane refuses it for that reason; else it returns the refusal.
func (p *Promoter) clash(ctx context.Context, i *Item, refusal error) error {
	gvk := i.Object.GroupVersionKind()
	if !apierrors.IsInvalid(refusal) || gvk.Group != "" || gvk.Kind != "Service" {
		return refusal
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ServiceList"})
	if err := p.ControlPlane.List(ctx, list); err != nil {
		return refusal // which tells enough
	}
	wanted := claims(i.Object)
	var found []string
	for n := range list.Items {
		other := &list.Items[n]
		for _, has := range claims(other) {
			for _, want := range wanted {
				if has == want {
					found = append(found, fmt.Sprintf("%s is that of Service %s there", has, Path(other)))
				}
			}
		}
	}
	if len(found) == 0 {
		return refusal
	}
	return fmt.Errorf("%s: change it in one of the clusters, or give up the other: %w", strings.Join(found, "; "), refusal)
}

// claims returns what only one Service of a cluster can have: the addresses that it
// says itself, and its ports on nodes.
func claims(service *unstructured.Unstructured) []string {
	var all []string
	ip, _, err := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if err == nil && ip != "" && ip != "None" {
		all = append(all, "clusterIP "+ip)
	}
	if port, _, err := unstructured.NestedInt64(service.Object, "spec", "healthCheckNodePort"); err == nil && port > 0 {
		all = append(all, fmt.Sprintf("node port %d", port))
	}
	ports, _, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if err != nil {
		return all
	}
	for _, entry := range ports {
		m, _ := entry.(map[string]any)
		protocol, _ := m["protocol"].(string)
		if protocol == "TCP" {
			protocol = ""
		}
		if port, ok := number(m["nodePort"]); ok && port > 0 {
			all = append(all, strings.TrimSpace(fmt.Sprintf("node port %.0f %s", port, protocol)))
		}
	}
	return all
}
