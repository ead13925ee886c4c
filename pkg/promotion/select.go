package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// Kinds lists what a cluster serves in namespaces, as discovery does: what it
// returns beside an error is what could be found out.
type Kinds func(context.Context) ([]*metav1.APIResourceList, error)

// page is how many objects are listed at a time.
const page = 500

// ReadAll does what Read does for all objects of the kinds that a request names,
// separated by commas, or for all that is in its namespace when it names none.
// Those that do not have the labels are no matter, and neither is what a cluster
// makes by itself. The plans are in the order in which they should be made.
func (p *Promoter) ReadAll(ctx context.Context, r Request, having labels.Selector) ([]*Plan, error) {
	l := lister{client: p.Member, kinds: p.Kinds, where: "cluster " + r.Cluster, note: p.Note}
	mappings, err := l.mappings(ctx, r.Type)
	if err != nil {
		return nil, err
	}
	namespaced := func(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }
	for _, m := range mappings {
		if err := kindTravels(m.GroupVersionKind); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(mappings, namespaced) {
		if err := p.namespaceTravels(r.Namespace); err != nil {
			return nil, err
		}
	}
	var plans []*Plan
	left := leftOut{}
	for _, m := range mappings {
		namespace := ""
		if namespaced(m) {
			namespace = r.Namespace
		}
		found, err := l.list(ctx, m, namespace, having)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if why := notPromoted(&found[i]); why != "" {
				left.add(why, &found[i])
				continue
			}
			plan, err := p.planFor(ctx, r, &found[i], m.Resource)
			if err != nil {
				return nil, err
			}
			plans = append(plans, plan)
		}
	}
	for _, text := range left.texts() {
		p.Note(text)
	}
	return ordered(plans), nil
}

// ordered sorts plans so that what others refer to comes first, and makes nothing
// a dependency of one that is promoted itself.
func ordered(plans []*Plan) []*Plan {
	rank := func(kind string) int {
		order := []string{
			"Namespace", "CustomResourceDefinition", "ServiceAccount", "ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim",
			"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "Service",
		}
		if i := slices.Index(order, kind); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(plans, func(a, b *Plan) int {
		return cmp.Compare(rank(a.Template.Object.GetKind()), rank(b.Template.Object.GetKind()))
	})
	itself := map[string]bool{}
	for _, p := range plans {
		itself[p.Template.id()] = true
	}
	for _, p := range plans {
		p.Dependencies = slices.DeleteFunc(p.Dependencies, func(d Item) bool { return itself[d.id()] })
	}
	return plans
}

// notPromoted says why an object that was not asked for by name is not promoted, ""
// when it is.
func notPromoted(o *unstructured.Unstructured) string {
	token := o.GetAnnotations()[corev1.ServiceAccountNameKey]
	switch gvk := o.GroupVersionKind(); {
	case o.GetDeletionTimestamp() != nil:
		return "is being deleted"
	case metav1.GetControllerOf(o) != nil:
		return "belongs to another object, which makes it"
	case registration.IsInEveryNamespace(gvk.Kind, o), isOfEveryCluster(gvk, o):
		return "is made by the cluster itself"
	case gvk.Kind == "Secret" && gvk.Group == "" && token != "" && strings.HasPrefix(o.GetName(), token+"-token-"):
		return "is made by the cluster itself"
	case o.GetLabels()[names.SystemLabel] == names.True:
		return "is part of what connects the cluster to its control plane"
	default:
		return ""
	}
}

// isOfEveryCluster says whether an object outside of namespaces is one that every
// cluster has.
func isOfEveryCluster(gvk schema.GroupVersionKind, o *unstructured.Unstructured) bool {
	name := o.GetName()
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") || names.IsReservedNamespace(name)
	case schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:
		return strings.HasPrefix(name, "system-")
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return o.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != ""
	}
	return strings.HasPrefix(name, "system:") || o.GetLabels()["kubernetes.io/bootstrapping"] != "" ||
		strings.HasPrefix(gvk.Group, "flowcontrol.") && o.GetAnnotations()["apf.kubernetes.io/autoupdate-spec"] != ""
}

// isDerived says whether objects of a kind only tell about others.
func isDerived(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, schema.GroupKind{Kind: "Endpoints"},
		schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return true
	}
	return false
}

// leftOut are objects that are left out, by the reason for that.
type leftOut map[string][]string

func (l leftOut) add(why string, o *unstructured.Unstructured) {
	l[why] = append(l[why], o.GetKind()+" "+Path(o))
}

// texts says what is left out, and why.
func (l leftOut) texts() []string {
	const most = 3
	var all []string
	for why, who := range l {
		rest := ""
		if len(who) > most {
			rest = fmt.Sprintf(" and %d more of the same", len(who)-most)
		}
		all = append(all, fmt.Sprintf("left out, as each %s: %s%s", why, strings.Join(who[:min(len(who), most)], ", "), rest))
	}
	slices.Sort(all)
	return all
}

// A lister lists objects of many kinds.
type lister struct {
	client client.Client
	kinds  Kinds
	where  string
	note   func(string)
}

// mappings returns the kinds that are named, separated by commas, or all that are
// in namespaces and can be propagated.
func (l lister) mappings(ctx context.Context, types string) ([]*meta.RESTMapping, error) {
	var all []*meta.RESTMapping
	if types != "" {
		for typed := range strings.SplitSeq(types, ",") {
			m, err := MappingFor(l.client.RESTMapper(), typed)
			if err != nil {
				return nil, fmt.Errorf("find out what %q is in %s: %w", typed, l.where, err)
			}
			same := func(other *meta.RESTMapping) bool {
				return other.GroupVersionKind.GroupKind() == m.GroupVersionKind.GroupKind()
			}
			if !slices.ContainsFunc(all, same) {
				all = append(all, m)
			}
		}
		return all, nil
	}
	if l.kinds == nil {
		return nil, errors.New("no kind is named")
	}
	lists, err := l.kinds(ctx)
	var partly *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partly):
		l.note(fmt.Sprintf("%s does not tell of all that it has, so that some may be missed: %v", l.where, err))
	case err != nil:
		return nil, fmt.Errorf("find out what kinds of objects %s has: %w", l.where, err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("find out what kinds of objects %s has: %w", l.where, err)
		}
		for _, r := range list.APIResources {
			gvk := gv.WithKind(r.Kind)
			if !r.Namespaced || strings.Contains(r.Name, "/") || isDerived(gvk.GroupKind()) || (exempt.APIs{}).Has(gvk) || !canTravel(r.Verbs) {
				continue
			}
			all = append(all, &meta.RESTMapping{Resource: gv.WithResource(r.Name), GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace})
		}
	}
	return all, nil
}

// canTravel says whether a kind with these verbs can be propagated
// (spec: behaviour/01 1.2).
func canTravel(verbs []string) bool {
	for _, v := range []string{"create", "delete", "list", "watch"} {
		if !slices.Contains(verbs, v) {
			return false
		}
	}
	return true
}

// list returns the objects of a kind that have some labels.
func (l lister) list(ctx context.Context, m *meta.RESTMapping, namespace string, having labels.Selector) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := &client.ListOptions{Namespace: namespace, LabelSelector: having, Limit: page}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(m.GroupVersionKind.GroupVersion().WithKind(m.GroupVersionKind.Kind + "List"))
		err := l.client.List(ctx, list, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" { // it took too long: from the start
			all, options.Continue = nil, ""
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s of %s: %w", m.Resource.GroupResource(), l.where, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// referred returns the objects that a reference means, as they are.
func (l lister) referred(ctx context.Context, r configv1alpha1.DependentObjectReference) ([]Item, error) {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	mapping, err := l.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if r.Name != "" {
		o, err := get(ctx, l.client, gvk, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
		if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []Item{{Object: o, Resource: mapping.Resource, original: o}}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(r.LabelSelector)
	if err != nil {
		return nil, err
	}
	found, err := l.list(ctx, mapping, r.Namespace, selector)
	if err != nil {
		return nil, err
	}
	var all []Item
	for i := range found {
		all = append(all, Item{Object: &found[i], Resource: mapping.Resource, original: &found[i]})
	}
	return all, nil
}
