package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// DemotedBy is the value of names.ClaimedByLabel on a template that a demotion has
// taken from its policies: none claims it, until it is promoted again.
const DemotedBy = "karmadactl-demote"

// A Farewell says what is to be demoted.
type Farewell struct {
	// Type is the kind as users write it. Namespace does not count for kinds of
	// cluster scope.
	Type, Namespace, Name string
	// Dependencies says that what the object refers to is demoted, too, if nothing
	// else needs it.
	Dependencies bool
	// KeepTemplate lets the template stay in the control plane, where it goes
	// nowhere.
	KeepTemplate bool
}

// A Demoter has the control plane let go of objects, which go on in their members
// as they are. It is the undo of a promotion, and works for everything that was
// propagated (spec: behaviour/02 2.5, preserveResourcesOnDeletion).
//
// Nothing on a member is removed, wherever it is cut off. Demote's phases are in
// doc.go.
type Demoter struct {
	// ControlPlane is a client for objects of any kind, without a cache. Its mapper
	// knows the short names of kinds.
	ControlPlane client.Client
	// Kinds lists what the control plane serves in namespaces. Only ReadAll needs
	// it, for requests that name no kind.
	Kinds       Kinds
	Interpreter Interpreter
	// Patience is how long the control plane may take for each phase, and Interval
	// how long it is left alone between two looks.
	Patience, Interval time.Duration
	// Note is told what the user should know.
	Note func(string)
	// Program is what users type, in what they are told to do.
	Program string
}

// A Demotion is one object of which the control plane lets go.
type Demotion struct {
	Template Item
	// Binding is nil when it has gone already.
	Binding binding.Object
	// Clusters are those in which the object goes on.
	Clusters []string
	// Policy is the one that was made for the object alone, and goes with it. Nil
	// when there is none.
	Policy *Policy
	// KeepTemplate lets the template stay.
	KeepTemplate bool

	attached []*workv1alpha2.ResourceBinding
	works    []client.ObjectKey
	after    []*Demotion // whose bindings must have gone before
}

// IsDone says whether there is nothing left to do.
func (x *Demotion) IsDone() bool {
	return x.KeepTemplate && x.Binding == nil && x.Policy == nil && len(x.works) == 0 && isHeld(x.Template.Object)
}

// Read says what there is to do about one object, and about what it refers to when
// that is asked for. The first is the object itself. It is NotFound when the
// control plane does not have it. Nothing is written.
func (d *Demoter) Read(ctx context.Context, f Farewell) ([]*Demotion, error) {
	m, err := MappingFor(d.ControlPlane.RESTMapper(), f.Type)
	if err != nil {
		return nil, fmt.Errorf("find out what %q is in the control plane: %w", f.Type, err)
	}
	key := client.ObjectKey{Name: f.Name}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = f.Namespace
	}
	t, err := get(ctx, d.ControlPlane, m.GroupVersionKind, key)
	if err != nil {
		return nil, fmt.Errorf("read %s %s of the control plane: %w", m.GroupVersionKind.Kind, f.Name, err)
	}
	bound, err := d.bindings(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	x := d.demotion(t, m.Resource, f, bound)
	if x == nil {
		return nil, fmt.Errorf("%s is not propagated to any cluster, so that there is nothing to let go of: to remove it from the control plane, run %q",
			Item{Object: t}, fmt.Sprintf("%s delete %s %s", d.Program, m.Resource.GroupResource(), d.nameAndSpace(t)))
	}
	all := []*Demotion{x}
	if f.Dependencies {
		more, err := d.dependencies(ctx, x, f, bound)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, d.complete(ctx, all)
}

func (d *Demoter) nameAndSpace(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetName() + " -n " + o.GetNamespace()
}

// ReadAll does what Read does for all objects of the kinds that are named,
// separated by commas, or for all of the namespace when none is. Those that do not
// have the labels are no matter, and neither is what is not propagated.
func (d *Demoter) ReadAll(ctx context.Context, f Farewell, having labels.Selector) ([]*Demotion, error) {
	l := lister{client: d.ControlPlane, kinds: d.Kinds, where: "the control plane", note: d.Note}
	mappings, err := l.mappings(ctx, f.Type)
	if err != nil {
		return nil, err
	}
	spaces := map[string]boundTemplates{}
	var all []*Demotion
	left := leftOut{}
	for _, m := range mappings {
		namespace := ""
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = f.Namespace
		}
		bound, err := remembered(&spaces, namespace, func() (boundTemplates, error) { return d.bindings(ctx, namespace) })
		if err != nil {
			return nil, err
		}
		found, err := l.list(ctx, m, namespace, having)
		if err != nil {
			return nil, err
		}
		for i := range found {
			t := &found[i]
			switch x := d.demotion(t, m.Resource, f, bound); {
			case x == nil && f.Type != "":
				left.add("is not propagated", t)
			case x == nil:
			case x.isAttached() && !f.Dependencies && f.Type == "":
				left.add("is propagated only for what needs it (--dependencies takes it, too)", t)
			default:
				all = append(all, x)
			}
		}
	}
	for _, text := range left.texts() {
		d.Note(text)
	}
	return all, d.complete(ctx, all)
}

// boundTemplates are the bindings of a namespace, by what they bind. A template in
// two versions has one.
type boundTemplates map[string]binding.Object

// bindings lists the bindings of a namespace, or those that are in none.
func (d *Demoter) bindings(ctx context.Context, namespace string) (boundTemplates, error) {
	all := boundTemplates{}
	if namespace == "" {
		var list workv1alpha2.ClusterResourceBindingList
		if err := d.ControlPlane.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("list the ClusterResourceBindings of the control plane: %w", err)
		}
		for i := range list.Items {
			all[binding.TemplateKey(list.Items[i].Spec.Resource)] = &list.Items[i]
		}
		return all, nil
	}
	var list workv1alpha2.ResourceBindingList
	if err := d.ControlPlane.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the ResourceBindings in namespace %s of the control plane: %w", namespace, err)
	}
	for i := range list.Items {
		all[binding.TemplateKey(list.Items[i].Spec.Resource)] = &list.Items[i]
	}
	return all, nil
}

func keyOf(o *unstructured.Unstructured) string {
	return binding.TemplateKey(workv1alpha2.ObjectReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
}

// demotion returns what is known of a template, nil when it is not propagated.
func (d *Demoter) demotion(t *unstructured.Unstructured, resource schema.GroupVersionResource, f Farewell, bound boundTemplates) *Demotion {
	x := &Demotion{Template: Item{Object: t, Resource: resource, Exists: true, Held: isHeld(t)}, KeepTemplate: f.KeepTemplate}
	x.Binding = bound[keyOf(t)]
	_, claimed := policy.ClaimOf(t)
	if x.Binding == nil && !x.Template.Held && !claimed {
		return nil
	}
	if x.Binding == nil {
		return x
	}
	x.Clusters = binding.Expected(x.Binding.BindingSpec())
	for _, b := range bound {
		if a, ok := b.(*workv1alpha2.ResourceBinding); ok && requires(x.Binding, a) {
			x.attached = append(x.attached, a)
		}
	}
	slices.SortFunc(x.attached, func(a, b *workv1alpha2.ResourceBinding) int { return strings.Compare(a.Name, b.Name) })
	return x
}

// isHeld says whether a demotion has taken a template from its policies.
func isHeld(t *unstructured.Unstructured) bool {
	return t.GetLabels()[names.ClaimedByLabel] == DemotedBy
}

// isAttached says whether the object is, or was, in clusters only because others
// need it.
func (x *Demotion) isAttached() bool {
	return x.Binding != nil && x.Binding.BindingSpec().Placement == nil && !x.Template.Held
}

// requires says whether what is bound by a goes along with what b binds.
func requires(b binding.Object, a *workv1alpha2.ResourceBinding) bool {
	return slices.ContainsFunc(a.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
		return s.Namespace == b.GetNamespace() && s.Name == b.GetName()
	})
}

// dependencies returns the demotions of what goes along with an object, and of what
// went along when an earlier run was interrupted: that is found by what the object
// refers to. What others need, too, is left to them.
func (d *Demoter) dependencies(ctx context.Context, x *Demotion, f Farewell, bound boundTemplates) ([]*Demotion, error) {
	references, err := d.references(ctx, x)
	if err != nil {
		return nil, err
	}
	for _, a := range x.attached {
		references = append(references, configv1alpha1.DependentObjectReference{
			APIVersion: a.Spec.Resource.APIVersion, Kind: a.Spec.Resource.Kind, Namespace: a.Spec.Resource.Namespace, Name: a.Spec.Resource.Name,
		})
	}
	l := lister{client: d.ControlPlane, where: "the control plane", note: d.Note}
	var all []*Demotion
	for _, r := range references {
		items, err := l.referred(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("read %s %s of the control plane: %w", r.Kind, nameOf(r), err)
		}
		for _, i := range items {
			if slices.ContainsFunc(all, func(y *Demotion) bool { return y.Template.id() == i.id() }) {
				continue
			}
			y := d.demotion(i.original, i.Resource, f, bound)
			if y == nil || !y.Template.Held && !y.goesAlong(x) {
				continue
			}
			if by := y.othersThan(x); by != "" {
				d.Note(fmt.Sprintf("%s stays, as ResourceBinding %s needs it, too", y.Template, by))
				continue
			}
			all = append(all, y)
		}
	}
	return all, nil
}

// references returns what the template refers to, as far as anybody knows.
func (d *Demoter) references(ctx context.Context, x *Demotion) ([]configv1alpha1.DependentObjectReference, error) {
	t := x.Template.Object
	if !d.Interpreter.Supports(t.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretDependency) {
		return nil, nil
	}
	references, err := d.Interpreter.Dependencies(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("find out what %s refers to: %w", x.Template, err)
	}
	return references, nil
}

// goesAlong says whether the object is in clusters because another is, or was.
func (y *Demotion) goesAlong(x *Demotion) bool {
	return y.isAttached() || slices.ContainsFunc(x.attached, func(a *workv1alpha2.ResourceBinding) bool {
		return y.Binding != nil && a.UID == y.Binding.GetUID()
	})
}

// othersThan names a binding that needs the object, but for that of another one.
func (y *Demotion) othersThan(x *Demotion) string {
	if y.Binding == nil {
		return ""
	}
	for _, s := range y.Binding.BindingSpec().RequiredBy {
		if x.Binding == nil || s.Namespace != x.Binding.GetNamespace() || s.Name != x.Binding.GetName() {
			return s.Namespace + "/" + s.Name
		}
	}
	return ""
}

// complete finds out what goes with each object, and which must be done before
// which.
func (d *Demoter) complete(ctx context.Context, all []*Demotion) error {
	policies := map[string][]policy.Object{}
	for _, x := range all {
		t := x.Template.Object
		ps, err := remembered(&policies, t.GetNamespace(), func() ([]policy.Object, error) {
			return listPolicies(ctx, d.ControlPlane, t.GetNamespace())
		})
		if err != nil {
			return err
		}
		for _, p := range ps {
			if isMadeFor(p, t) {
				x.Policy = &Policy{Object: p, Exists: true}
			}
		}
		for _, y := range all {
			if a, ok := x.Binding.(*workv1alpha2.ResourceBinding); ok && y.Binding != nil && y != x && requires(y.Binding, a) {
				x.after = append(x.after, y)
			}
		}
		if x.works, err = d.worksOf(ctx, x.Binding); err != nil {
			return err
		}
	}
	return nil
}

// isMadeFor says whether a policy is as a promotion makes it for a template, and
// does nothing else.
func isMadeFor(p policy.Object, t *unstructured.Unstructured) bool {
	spec := p.PropagationSpec()
	a := spec.Placement.ClusterAffinity
	if a == nil || len(a.ClusterNames) != 1 {
		return false
	}
	made := newPolicy(t, Request{Cluster: a.ClusterNames[0], PolicyName: p.GetName(), Dependencies: spec.PropagateDeps})
	return sameBut(made.PropagationSpec(), spec)
}

// Check makes sure that the control plane can let go of everything, and that it
// would not be taken up again. Nothing is written. The errors are those of objects
// that must stay.
func (d *Demoter) Check(ctx context.Context, all []*Demotion) map[*Demotion]error {
	errs := map[*Demotion]error{}
	for _, x := range all {
		if err := d.check(ctx, x, all); err != nil {
			errs[x] = err
		}
	}
	return errs
}

func (d *Demoter) check(ctx context.Context, x *Demotion, all []*Demotion) error {
	t := x.Template.Object
	if t.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		return fmt.Errorf("namespace %s is on every member as long as the control plane has it: demote what is in it (%q); "+
			"with the label %s=%s clusters that join later do not get it", t.GetName(), d.Program+" demote --all -n "+t.GetName(), names.SkipAutoPropagationLabel, names.True)
	}
	if by := t.GetLabels()[names.ClaimedByLabel]; by != "" && by != DemotedBy {
		return fmt.Errorf("%s says where %s goes: let go of what that was made for", by, x.Template)
	}
	if t.GetDeletionTimestamp() != nil && !isHeld(t) {
		return fmt.Errorf("%s is being deleted in the control plane already", x.Template)
	}
	if !x.KeepTemplate && names.IsDeletionProtected(t.GetLabels()) {
		return fmt.Errorf("%s cannot be removed from the control plane: %s; or let it stay there, with --keep-template", x.Template, names.DeletionProtectedRefusal)
	}
	if err := d.checkBinding(x, all); err != nil {
		return err
	}
	if !x.KeepTemplate {
		if err := d.hasInstances(ctx, x); err != nil {
			return err
		}
	}
	return d.try(ctx, x)
}

// checkBinding refuses what somebody would propagate again, or remove with what
// is let go of.
func (d *Demoter) checkBinding(x *Demotion, all []*Demotion) error {
	b := x.Binding
	if b == nil {
		if !isHeld(x.Template.Object) {
			return fmt.Errorf("a policy has just claimed %s, which is not in any cluster yet: try again in a moment", x.Template)
		}
		return nil
	}
	kind := binding.ScopeOf(b).Kind
	if by := b.GetLabels()[names.BindingManagedByLabel]; by != "" {
		return fmt.Errorf("%s says where %s goes: let go of what that was made for", by, x.Template)
	}
	if b.GetDeletionTimestamp() != nil && !isHeld(x.Template.Object) {
		return fmt.Errorf("%s %s is being deleted already", kind, Path(b))
	}
	for _, s := range b.BindingSpec().RequiredBy {
		if !slices.ContainsFunc(x.after, func(y *Demotion) bool {
			return y.Binding.GetNamespace() == s.Namespace && y.Binding.GetName() == s.Name
		}) {
			return fmt.Errorf("ResourceBinding %s/%s needs %s, and would bring it to its clusters again: demote that first, with --dependencies", s.Namespace, s.Name, x.Template)
		}
	}
	return d.checkAttached(x, all)
}

// checkAttached refuses what would take along something that its own policy removes
// from clusters: what preserves nothing.
func (d *Demoter) checkAttached(x *Demotion, all []*Demotion) error {
	for _, a := range x.attached {
		isOne := func(y *Demotion) bool { return y.Binding != nil && y.Binding.GetUID() == a.UID }
		if a.Spec.Placement == nil || preserves(a) || slices.ContainsFunc(all, isOne) {
			continue
		}
		rest := a.Spec.DeepCopy()
		rest.RequiredBy = slices.DeleteFunc(rest.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
			return s.Namespace == x.Binding.GetNamespace() && s.Name == x.Binding.GetName()
		})
		for _, c := range binding.Targets(&a.Spec) {
			if !slices.Contains(binding.Expected(rest), c.Name) {
				return fmt.Errorf("%s %s/%s is in cluster %s only because %s needs it, and its policy removes it there when that is let go of: "+
					"demote it, too, with --dependencies, or set preserveResourcesOnDeletion in its policy", a.Spec.Resource.Kind, a.Spec.Resource.Namespace, a.Spec.Resource.Name, c.Name, x.Template)
			}
		}
	}
	return nil
}

// hasInstances refuses to remove the definition of a kind of which the control
// plane has objects: they would go, and then from the members as well.
func (d *Demoter) hasInstances(ctx context.Context, x *Demotion) error {
	t := x.Template.Object
	if t.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return nil
	}
	group, _, err := unstructured.NestedString(t.Object, "spec", "group")
	if err != nil {
		return fmt.Errorf("read %s: %w", x.Template, err)
	}
	kind, _, err := unstructured.NestedString(t.Object, "spec", "names", "kind")
	if err != nil {
		return fmt.Errorf("read %s: %w", x.Template, err)
	}
	versions, _, err := unstructured.NestedSlice(t.Object, "spec", "versions")
	if err != nil {
		return fmt.Errorf("read %s: %w", x.Template, err)
	}
	for _, v := range versions {
		m, _ := v.(map[string]any)
		version, _ := m["name"].(string)
		if m["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
		err := d.ControlPlane.List(ctx, list, client.Limit(1))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find out whether the control plane has objects of kind %s: %w", kind, err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("the control plane has objects of kind %s, such as %s: without %s they would go, and then from clusters, too; demote them first (%q), or keep it with --keep-template",
				kind, Path(&list.Items[0]), x.Template, d.Program+" demote "+t.GetName()+" --all")
		}
	}
	return nil
}

// try has the API server look at every deletion that is to come.
func (d *Demoter) try(ctx context.Context, x *Demotion) error {
	var all []client.Object
	if x.Binding != nil && x.Binding.GetDeletionTimestamp() == nil {
		all = append(all, x.Binding)
	}
	if x.Policy != nil {
		all = append(all, x.Policy.Object)
	}
	if !x.KeepTemplate && x.Template.Object.GetDeletionTimestamp() == nil {
		all = append(all, x.Template.Object)
	}
	var errs []error
	for _, o := range all {
		copied, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", o)
		}
		if err := d.ControlPlane.Delete(ctx, copied, client.DryRunAll); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("%s could not be demoted: %w", x.Template, err))
		}
	}
	return errors.Join(errs...)
}
