package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// page is how many objects are listed at a time. Of each no more is kept than is drawn.
const page = 500

// A member is one member cluster, in which objects are looked for.
type member struct {
	client dynamic.Interface
	// mapper is the control plane's: what is propagated is served there, too.
	mapper meta.RESTMapper
}

// grow returns the node of an item, and those of what belongs to it. With an error the
// node, if there is one, is not whole.
func (m *member) grow(ctx context.Context, i item) (*Node, error) {
	n := &Node{Kind: i.Kind, Namespace: i.namespace, Name: i.name}
	mapping, err := m.mapper.RESTMapping(i.GroupKind(), i.Version)
	if meta.IsNoMatchError(err) {
		n.Problem = "not looked for: the control plane does not serve this kind"
		return n, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the API of %s: %w", i.Kind, err)
	}
	var from dynamic.ResourceInterface = m.client.Resource(mapping.Resource)
	if i.namespace != "" {
		from = m.client.Resource(mapping.Resource).Namespace(i.namespace)
	}
	object, err := from.Get(ctx, i.name, metav1.GetOptions{})
	switch {
	case isUnknownKind(err):
		return n.is(false, "this cluster does not serve %s", mapping.Resource.GroupResource()), nil
	case apierrors.IsNotFound(err):
		return n.is(false, "not there"), nil
	case err != nil:
		return nil, err
	}
	n = ofObject(object)
	if !isManaged(object) {
		n.is(false, "not managed by the control plane%s", after("; ", n.State))
	}
	return n, m.addBelow(ctx, n, object)
}

// isUnknownKind tells a path that is not served from an object that is not there.
func isUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// kinds returns what to list for what belongs to an object, and the labels that all of
// that has.
func kinds(o *unstructured.Unstructured) (all []schema.GroupVersionResource, selector string, err error) {
	apps, batch := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Group: "batch", Version: "v1"}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	switch gk := o.GroupVersionKind().GroupKind(); {
	case gk == schema.GroupKind{Group: apps.Group, Kind: "Deployment"}:
		selector, err = selectorOf(o)
		return []schema.GroupVersionResource{apps.WithResource("replicasets"), pods}, selector, err
	case gk.Group == apps.Group, gk == schema.GroupKind{Group: batch.Group, Kind: "Job"}, gk == schema.GroupKind{Kind: "ReplicationController"}:
		selector, err = selectorOf(o)
		return []schema.GroupVersionResource{pods}, selector, err
	case gk == schema.GroupKind{Group: batch.Group, Kind: "CronJob"}:
		return []schema.GroupVersionResource{batch.WithResource("jobs"), pods}, "", nil
	case strings.Contains(gk.Group, ".") && !strings.HasSuffix(gk.Group, ".k8s.io") && o.GetNamespace() != "":
		// What a custom resource is made of nobody but its operator knows.
		return []schema.GroupVersionResource{
			apps.WithResource("deployments"), apps.WithResource("statefulsets"), apps.WithResource("daemonsets"), apps.WithResource("replicasets"),
			batch.WithResource("jobs"), pods,
		}, "", nil
	}
	return nil, "", nil
}

// selectorOf returns the labels by which a workload knows what belongs to it.
func selectorOf(o *unstructured.Unstructured) (string, error) {
	selector, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if err != nil || !found {
		return "", errors.New("it has no selector")
	}
	if o.GetKind() == "ReplicationController" {
		set := labels.Set{}
		for k, v := range selector {
			set[k] = fmt.Sprint(v)
		}
		return set.String(), nil
	}
	parsed := &metav1.LabelSelector{}
	if err := fromUnstructured(selector, parsed); err != nil {
		return "", fmt.Errorf("read its selector: %w", err)
	}
	s, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return "", fmt.Errorf("read its selector: %w", err)
	}
	return s.String(), nil
}

// addBelow adds what is owned by an object, and by that, and so on.
func (m *member) addBelow(ctx context.Context, n *Node, o *unstructured.Unstructured) error {
	resources, selector, err := kinds(o)
	if err != nil {
		n.Problem = "what belongs to it is not known: " + err.Error()
		return nil
	}
	owned := map[types.UID][]owned{}
	for _, r := range resources {
		err := m.list(ctx, r, o.GetNamespace(), selector, func(below *unstructured.Unstructured) {
			if isRetired(below) {
				return
			}
			for _, owner := range below.GetOwnerReferences() {
				owned[owner.UID] = append(owned[owner.UID], ownedBy(below))
			}
		})
		if err != nil && !apierrors.IsNotFound(err) { // a kind that is not there has no objects
			return fmt.Errorf("list %s: %w", r.Resource, err)
		}
	}
	attach(n, o.GetUID(), owned, map[types.UID]bool{})
	return nil
}

// isRetired reports whether a ReplicaSet is only kept for its history.
func isRetired(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ReplicaSet" && number(o, 1, "spec", "replicas") == 0 && number(o, 0, "status", "replicas") == 0
}

// An owned is a node that belongs to another.
type owned struct {
	node *Node
	uid  types.UID
}

func ownedBy(o *unstructured.Unstructured) owned { return owned{node: ofObject(o), uid: o.GetUID()} }

func attach(n *Node, uid types.UID, all map[types.UID][]owned, seen map[types.UID]bool) {
	if seen[uid] {
		return // owners in a circle
	}
	seen[uid] = true
	for _, o := range all[uid] {
		n.Children = append(n.Children, o.node)
		attach(o.node, o.uid, all, seen)
	}
	sortNodes(n.Children)
}

// list hands over all objects of a kind in a namespace, page after page.
func (m *member) list(ctx context.Context, r schema.GroupVersionResource, namespace, selector string, each func(*unstructured.Unstructured)) error {
	options := metav1.ListOptions{Limit: page, LabelSelector: selector}
	for {
		list, err := m.client.Resource(r).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// mostDrawn is how many children of one kind are drawn, those that are not ready first.
const mostDrawn = 20

// drawn returns the children to draw, and how many are left out of which how many are
// ready.
func drawn(children []*Node) (some []*Node, more, ready int) {
	if len(children) <= mostDrawn {
		return children, 0, 0
	}
	isReady := func(n *Node) bool { return n.Ready == nil || *n.Ready }
	ordered := slices.Clone(children)
	slices.SortStableFunc(ordered, func(a, b *Node) int {
		switch {
		case isReady(a) == isReady(b):
			return 0
		case isReady(b):
			return -1
		default:
			return 1
		}
	})
	for _, n := range ordered[mostDrawn:] {
		if isReady(n) {
			ready++
		}
	}
	return ordered[:mostDrawn], len(children) - mostDrawn, ready
}
