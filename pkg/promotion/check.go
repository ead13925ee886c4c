package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// Check looks at the control plane: what of a plan it has already, and whether
// it would take the rest. Nothing is made there. An error is something that the
// user must decide.
func (p *Promoter) Check(ctx context.Context, plan *Plan) error {
	// What an error says about the namespace must not read as one about the object.
	if err := p.checkNamespaces(ctx, plan); err != nil {
		return err
	}
	if err := p.checkPolicy(ctx, plan); err != nil {
		return err
	}
	if err := p.checkTemplate(ctx, plan); err != nil {
		return err
	}
	for i := range plan.Dependencies {
		if err := p.checkDependency(ctx, plan, &plan.Dependencies[i]); err != nil {
			return err
		}
	}
	if err := p.try(ctx, plan); err != nil || plan.IsDone() {
		return err
	}
	return p.foresee(ctx, plan)
}

// checkNamespaces requires the namespaces of what is to be made. They are not
// made: a namespace of the control plane appears on every member.
func (p *Promoter) checkNamespaces(ctx context.Context, plan *Plan) error {
	var missing []string
	for _, i := range plan.items() {
		namespace := i.Object.GetNamespace()
		if namespace == "" || slices.Contains(missing, namespace) {
			continue
		}
		there, err := p.hasNamespace(ctx, namespace)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, namespace)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the control plane has no namespace %s: create it with %q; it will be made on every member cluster, too, "+
		"unless it has the label %s=%s", strings.Join(missing, ", "), p.Program+" create namespace "+missing[0], names.SkipAutoPropagationLabel, names.True)
}

// checkPolicy finds out whether there is the policy, or another of its name, or
// one that would get the template in its place.
func (p *Promoter) checkPolicy(ctx context.Context, plan *Plan) error {
	if plan.Policy == nil {
		return p.noteUnplaced(ctx, plan)
	}
	s := policy.SubjectOf(plan.Template.Object)
	all, err := p.policies(ctx, s.Namespace)
	if err != nil {
		return err
	}
	for _, q := range all {
		other := Policy{Object: q}
		level := policy.LevelOf(q.PropagationSpec().ResourceSelectors, s)
		switch {
		case q.GetName() == plan.Policy.GetName():
			if level != policy.Name || !places(q, plan.Cluster) || q.GetDeletionTimestamp() != nil {
				return fmt.Errorf("the control plane has a %s %s already, which does something else than to place %s in cluster %s: "+
					"choose another name with --policy-name, or promote with --auto-create-policy=false", other.Kind(), Path(q), plan.Template, plan.Cluster)
			}
			plan.Policy.Exists = true
		case level != policy.None && q.GetDeletionTimestamp() == nil && wins(q, level, plan.Policy):
			return fmt.Errorf("%s %s of the control plane (priority %d) selects %s, too, and would decide where it goes: "+
				"let that place it in cluster %s, and promote with --auto-create-policy=false, or lower its priority",
				other.Kind(), Path(q), policy.Priority(q.PropagationSpec()), plan.Template, plan.Cluster)
		}
	}
	return nil
}

// noteUnplaced tells of a template that is promoted without a policy when none is
// there for it either: it goes nowhere then, and what is in the member stays as it
// is.
func (p *Promoter) noteUnplaced(ctx context.Context, plan *Plan) error {
	s := policy.SubjectOf(plan.Template.Object)
	all, err := p.policies(ctx, s.Namespace)
	if err != nil {
		return err
	}
	if s.Namespace != "" {
		global, err := p.policies(ctx, "")
		if err != nil {
			return err
		}
		all = append(all, global...)
	}
	for _, q := range all {
		if q.GetDeletionTimestamp() == nil && policy.LevelOf(q.PropagationSpec().ResourceSelectors, s) != policy.None {
			return nil
		}
	}
	p.Note(fmt.Sprintf("no policy of the control plane selects %s: until one does it goes nowhere, and what is in cluster %s is not managed", plan.Template, plan.Cluster))
	return nil
}

// places says whether a policy names a cluster.
func places(p policy.Object, cluster string) bool {
	a := p.PropagationSpec().Placement.ClusterAffinity
	return a != nil && slices.Contains(a.ClusterNames, cluster) && !slices.Contains(a.ExcludeClusters, cluster)
}

// wins says whether a policy that selects a template is chosen for it rather
// than ours, which has no priority and selects it by name
// (spec: behaviour/03 3.4).
func wins(p policy.Object, level policy.Level, ours *Policy) bool {
	priority := policy.Priority(p.PropagationSpec())
	return priority > 0 || priority == 0 && level == policy.Name && p.GetName() < ours.GetName()
}

// checkTemplate finds out whether the control plane has the template, and if so
// whether it is ours to go on with.
func (p *Promoter) checkTemplate(ctx context.Context, plan *Plan) error {
	existing, err := p.existing(ctx, plan, plan.Template)
	if err != nil || existing == nil {
		return err
	}
	plan.Template.Exists, plan.Template.planned = true, existing
	switch by := existing.GetLabels()[names.ClaimedByLabel]; by {
	case "":
	case DemotedBy:
		plan.Template.Held = true
	default:
		return fmt.Errorf("the control plane has %s already, and %s says where it goes: promote what that was made for", plan.Template, by)
	}
	if plan.Policy != nil && plan.Policy.Exists {
		return nil // it was promoted before
	}
	here := plan.Template.original.GetLabels()[names.ManagedLabel] == names.True
	c, claimed := policy.ClaimOf(existing)
	switch {
	case claimed && !here:
		return fmt.Errorf("the control plane has %s already, and policy %s says where it goes: to have it in cluster %s as well, "+
			"add that to the policy's placement; what is there now is left alone", plan.Template, c, plan.Cluster)
	case claimed:
		p.Note(fmt.Sprintf("policy %s of the control plane placed %s in cluster %s: it gets no other", c, plan.Template, plan.Cluster))
		plan.Policy = nil
		return nil
	}
	if at := differs(existing, plan.Template.Object); at != "" {
		return fmt.Errorf("the control plane has %s already, and it differs from the one in cluster %s in %s: what is there would be changed by it; "+
			"make the two the same, or delete the one in the control plane, and promote again", plan.Template, plan.Cluster, at)
	}
	return nil
}

// checkDependency finds out whether the control plane has a dependency. One of
// other contents would replace what the member has.
func (p *Promoter) checkDependency(ctx context.Context, plan *Plan, d *Item) error {
	existing, err := p.existing(ctx, plan, *d)
	if err != nil || existing == nil {
		return err
	}
	d.Exists, d.planned = true, existing
	if at := differs(existing, d.Object); at != "" {
		return fmt.Errorf("the control plane has %s already, to which %s refers, and it differs from the one in cluster %s in %s: what is there would be changed by it; "+
			"make the two the same, or promote without --dependencies", d, plan.Template, plan.Cluster, at)
	}
	return nil
}

// existing returns what the control plane has under the name of an item, nil for
// nothing.
func (p *Promoter) existing(ctx context.Context, plan *Plan, i Item) (*unstructured.Unstructured, error) {
	found, err := get(ctx, p.ControlPlane, i.Object.GroupVersionKind(), client.ObjectKeyFromObject(i.Object))
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil
	case meta.IsNoMatchError(err):
		return nil, p.notServed(ctx, plan, i)
	case err != nil:
		return nil, fmt.Errorf("read %s of the control plane: %w", i, err)
	case found.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s is being deleted in the control plane: promote it when it is gone", i)
	}
	return found, nil
}

// notServed says that the control plane does not know a kind, and what to do about
// it.
func (p *Promoter) notServed(ctx context.Context, plan *Plan, i Item) error {
	text := fmt.Sprintf("the control plane does not serve %s (%s), so that it cannot have %s", i.Object.GetKind(), i.Object.GetAPIVersion(), i)
	definition := i.Resource.GroupResource().String()
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	if _, err := get(ctx, p.Member, gvk, client.ObjectKey{Name: definition}); apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: cluster %s does not have it by a CustomResourceDefinition either, so that the control plane must be of a version that serves it", text, plan.Cluster)
	}
	return fmt.Errorf("%s: bring its CustomResourceDefinition there first, with %q, and promote again", text, p.Program+" promote crd "+definition+" -C "+plan.Cluster)
}

// differs returns where what exists is not as it is wanted, "" for nowhere.
// Annotations do not count: they may say who else cares for the object.
func differs(existing, want *unstructured.Unstructured) string {
	want = want.DeepCopy()
	unstructured.RemoveNestedField(want.Object, "metadata", "annotations")
	return difference(existing.Object, want.Object, "")
}

// try has the API server of the control plane look at everything that is to be
// made, without making it: what it would refuse is found out before anything is
// there, and so is what it would make of it.
func (p *Promoter) try(ctx context.Context, plan *Plan) error {
	var errs []error
	for _, i := range plan.items() {
		if i.Exists {
			continue
		}
		i.planned = i.Object.DeepCopy()
		if err := p.ControlPlane.Create(ctx, i.planned, client.DryRunAll); err != nil {
			errs = append(errs, fmt.Errorf("the control plane would not take %s: %w", i, p.clash(ctx, i, err)))
		}
	}
	if q := plan.Policy; q != nil && !q.Exists {
		o, ok := q.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("a policy must be an object")
		}
		if err := p.ControlPlane.Create(ctx, o, client.DryRunAll); err != nil {
			errs = append(errs, fmt.Errorf("the control plane would not take %s %s: %w", q.Kind(), Path(q), err))
		}
	}
	return errors.Join(errs...)
}
