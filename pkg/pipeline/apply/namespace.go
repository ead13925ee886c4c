package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const (
	// inventoryPage is how many objects are listed at a time.
	inventoryPage = 500
	// namedOthers is how many objects a message names.
	namedOthers = 3
)

// isNamespace reports whether the target is a namespace, whose deletion takes
// along everything in it.
func (t *target) isNamespace() bool {
	return t.place.gvr.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// mustStay reports whether an object is not ours to delete, as others would go
// with it: a namespace or the definition of a kind. We did not make it, or there is
// something in it that we did not put there, or nobody can tell. Unless it is for
// the first reason, why says so to users.
func (t *target) mustStay(ctx context.Context, observed *unstructured.Unstructured) (stays bool, why string) {
	switch {
	case t.isNamespace():
		return t.namespaceMustStay(ctx, observed)
	case t.isDefinition():
		return t.definitionMustStay(ctx, observed)
	default:
		return false, ""
	}
}

func (t *target) namespaceMustStay(ctx context.Context, observed *unstructured.Unstructured) (stays bool, why string) {
	if observed.GetAnnotations()[names.AdoptedAnnotation] == names.True {
		return true, ""
	}
	reason := ""
	others, err := t.others(ctx)
	switch {
	case err != nil:
		reason = fmt.Sprintf("what is in it could not be found out: %v", err)
	case len(others) > namedOthers:
		reason = fmt.Sprintf("it holds %d objects that were not propagated to it, such as %s", len(others), strings.Join(others[:namedOthers], ", "))
	case len(others) > 0:
		reason = "it holds what was not propagated to it: " + strings.Join(others, ", ")
	default:
		return false, ""
	}
	return true, fmt.Sprintf("Namespace %s was not deleted from cluster %s but released, as %s. Delete it there if it is not needed any more.",
		t.place.name, t.member.Name(), reason)
}

// others lists what in a namespace is neither ours nor Kubernetes', each as
// Kind/name, in order.
func (t *target) others(ctx context.Context) ([]string, error) {
	client, err := t.member.Metadata()
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	all, err := listNamespace(ctx, t.member.Discovery(), client, t.place.name)
	if err != nil {
		return nil, err
	}
	return all.others(t.work.Namespace), nil
}

// An inventory is what is in a namespace.
type inventory struct {
	kinds   map[schema.GroupKind]bool // that were looked for
	objects map[types.UID]item
}

type item struct {
	kind string
	metav1.ObjectMeta
}

// listNamespace finds out all that is in a namespace, by its metadata, except
// what Kubernetes derives from other objects. That it cannot tell about some
// kind is an error.
func listNamespace(ctx context.Context, d discovery.DiscoveryInterface, m metadata.Interface, namespace string) (inventory, error) {
	all := inventory{kinds: map[schema.GroupKind]bool{}, objects: map[types.UID]item{}}
	lists, err := discovery.ServerPreferredNamespacedResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(d))
	if err != nil {
		return all, fmt.Errorf("find out what kinds of objects there are: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return all, fmt.Errorf("find out what kinds of objects there are: %w", err)
		}
		for _, r := range list.APIResources {
			gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			// What cannot be deleted is no object of anybody's, but a view of some.
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || isDerived(gk) {
				continue
			}
			all.kinds[gk] = true
			if err := all.add(ctx, m.Resource(gv.WithResource(r.Name)).Namespace(namespace), r.Kind); err != nil {
				return all, fmt.Errorf("list %s in namespace %s: %w", gv.WithResource(r.Name).GroupResource(), namespace, err)
			}
		}
	}
	return all, nil
}

// add lists the objects of one kind, to the last: the one that matters may be it.
func (all inventory) add(ctx context.Context, from metadata.ResourceInterface, kind string) error {
	options := metav1.ListOptions{Limit: inventoryPage}
	for {
		page, err := from.List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil // the kind has gone since
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			all.objects[page.Items[i].UID] = item{kind: kind, ObjectMeta: page.Items[i].ObjectMeta}
		}
		if page.Continue == "" {
			return nil
		}
		options.Continue = page.Continue
	}
}

// isDerived reports whether objects of a kind say only what others do: what
// matters about them is in those.
func isDerived(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, schema.GroupKind{Kind: "Endpoints"},
		schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return true
	}
	return false
}

// others returns what is neither Kubernetes' nor goes by itself nor came by Works
// of this namespace.
func (all inventory) others(works string) []string {
	known := map[types.UID]bool{}
	var found []string
	for uid, o := range all.objects {
		if o.DeletionTimestamp.IsZero() && !registration.IsInEveryNamespace(o.kind, &o.ObjectMeta) && !all.isOurs(uid, works, known) {
			found = append(found, o.kind+"/"+o.Name)
		}
	}
	slices.Sort(found)
	return found
}

// isOurs reports whether an object came by a Work of this namespace, or goes with
// such: each of its owners does, or has gone already, so that the garbage
// collector is about to come for it.
func (all inventory) isOurs(uid types.UID, works string, known map[types.UID]bool) bool {
	if answer, ok := known[uid]; ok {
		return answer
	}
	known[uid] = false // owners in a circle are nobody's
	o := all.objects[uid]
	owners := o.OwnerReferences
	if account := o.Annotations[corev1.ServiceAccountUIDKey]; o.kind == "Secret" && account != "" { // a token goes with its account
		owners = append(slices.Clone(owners), metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", UID: types.UID(account)})
	}
	ours := len(owners) > 0 && !slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool {
		if _, there := all.objects[owner.UID]; there {
			return !all.isOurs(owner.UID, works, known)
		}
		return !all.kinds[schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()] // not of this namespace
	})
	work, named := o.Annotations[names.WorkNamespaceAnnotation]
	known[uid] = ours || o.Labels[names.ManagedLabel] == names.True && (!named || work == works)
	return known[uid]
}
