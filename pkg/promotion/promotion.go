package promotion

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A Request says what is to be promoted.
type Request struct {
	// Cluster is the member.
	Cluster string
	// Type is the kind of the object as users write it: deploy, deployments.apps,
	// Deployment.
	Type string
	// Namespace and Name are the object's. The namespace does not count for kinds
	// of cluster scope.
	Namespace, Name string
	// Dependencies says that what the object refers to is promoted, too.
	Dependencies bool
	// Policy says that a policy is to place the object, and PolicyName its name,
	// "" for one that is derived from the object's.
	Policy     bool
	PolicyName string
}

// An Interpreter knows what an object refers to, and what of it its member
// decides about.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Dependencies(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// A Promoter promotes objects of one member, once: what it has learnt of the
// control plane it does not ask about again.
type Promoter struct {
	// Member and ControlPlane are clients for objects of any kind. Member's mapper
	// knows the short names of kinds.
	Member, ControlPlane client.Client
	// Kinds lists what the member serves in namespaces. Only ReadAll needs it, for
	// requests that name no kind.
	Kinds Kinds
	// Cluster is the member as the control plane knows it: override policies select
	// by it.
	Cluster     *clusterv1alpha1.Cluster
	Interpreter Interpreter
	// AllowRestart lets objects be promoted whose pods are started anew by that.
	AllowRestart bool
	// Note is told what the user should know. It may be called by each step.
	Note func(string)
	// Program is what users type, in what they are told to do.
	Program string

	known survey
}

// An Item is an object that the control plane gets.
type Item struct {
	Object   *unstructured.Unstructured
	Resource schema.GroupVersionResource
	// Exists says that the control plane has it. Check finds that out.
	Exists bool
	// Held says that a demotion has left it in the control plane, where it goes
	// nowhere until Make takes it up again.
	Held bool

	original *unstructured.Unstructured // what the member has
	planned  *unstructured.Unstructured // what the control plane has, or will have
}

// String names the object, as messages do.
func (i Item) String() string {
	return fmt.Sprintf("%s %s", i.Object.GetKind(), Path(i.Object))
}

// id tells items apart, in any version.
func (i Item) id() string { return i.Resource.GroupResource().String() + " " + Path(i.Object) }

// Path returns the name of an object behind its namespace, if it has one.
func Path(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// A Plan is what a promotion makes.
type Plan struct {
	Cluster  string
	Template Item
	// Dependencies come before the template. Interpreted says that somebody knew
	// what they are.
	Dependencies []Item
	Interpreted  bool
	// Policy is nil when there is to be none.
	Policy *Policy
	// Changes are what becomes of the objects of the member. Check finds them out.
	Changes []Change
}

// A Policy is a propagation policy that the control plane gets.
type Policy struct {
	policy.Object
	// Exists says that the control plane has it, or one of that name which does
	// the same. Check finds that out.
	Exists bool
}

// Kind returns the kind of a policy.
func (p Policy) Kind() string {
	if p.GetNamespace() == "" {
		return "ClusterPropagationPolicy"
	}
	return "PropagationPolicy"
}

// String names a policy as the lines do that users' scripts match
// (spec: cli/commands.md 8.1).
func (p Policy) String() string {
	if p.GetNamespace() == "" {
		return p.Kind() + " " + p.GetName()
	}
	return fmt.Sprintf("%s (%s)", p.Kind(), Path(p))
}

// IsDone says whether nothing is left to be made.
func (p *Plan) IsDone() bool {
	for _, i := range p.items() {
		if !i.Exists || i.Held {
			return false
		}
	}
	return p.Policy == nil || p.Policy.Exists
}

// items returns everything but the policy, in the order in which it is made.
func (p *Plan) items() []*Item {
	all := make([]*Item, 0, len(p.Dependencies)+1)
	for i := range p.Dependencies {
		all = append(all, &p.Dependencies[i])
	}
	return append(all, &p.Template)
}

// Read looks at the member, and says what is to be made. It asks the control
// plane nothing.
func (p *Promoter) Read(ctx context.Context, r Request) (*Plan, error) {
	mapping, err := MappingFor(p.Member.RESTMapper(), r.Type)
	if err != nil {
		return nil, fmt.Errorf("find out what %q is in cluster %s: %w", r.Type, r.Cluster, err)
	}
	key := client.ObjectKey{Name: r.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = r.Namespace
	}
	if err := p.mayTravel(mapping.GroupVersionKind, key); err != nil {
		return nil, err
	}
	found, err := get(ctx, p.Member, mapping.GroupVersionKind, key)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
		// Scripts match these words (spec: cli/commands.md 8.1, step 5).
		return nil, fmt.Errorf("the %s or %s don't exist in cluster(%s)", r.Type, r.Name, r.Cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s from cluster %s: %w", r.Type, r.Name, r.Cluster, err)
	}
	if found.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %s is being deleted in cluster %s", found.GetKind(), Path(found), r.Cluster)
	}
	return p.planFor(ctx, r, found, mapping.Resource)
}

// planFor says what is to be made for an object of the member.
func (p *Promoter) planFor(ctx context.Context, r Request, found *unstructured.Unstructured, resource schema.GroupVersionResource) (*Plan, error) {
	p.noteOrigin(found, r.Cluster)
	plan := &Plan{Cluster: r.Cluster, Template: Item{Object: template(found), Resource: resource, original: found}}
	overwrite(plan.Template.Object)
	if r.Policy {
		plan.Policy = &Policy{Object: newPolicy(plan.Template.Object, r)}
	}
	if r.Dependencies {
		if err := p.readDependencies(ctx, plan, r.Name != ""); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// mayTravel refuses what is never propagated.
func (p *Promoter) mayTravel(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	if err := kindTravels(gvk); err != nil {
		return err
	}
	if gvk.Group == "" && gvk.Kind == "Namespace" {
		return p.namespaceTravels(key.Name)
	}
	return p.namespaceTravels(key.Namespace)
}

func kindTravels(gvk schema.GroupVersionKind) error {
	if (exempt.APIs{}).Has(gvk) {
		return fmt.Errorf("objects of kind %s (%s) are never propagated to member clusters, and so cannot be promoted", gvk.Kind, gvk.GroupVersion())
	}
	return nil
}

func (p *Promoter) namespaceTravels(namespace string) error {
	switch {
	case names.IsReservedNamespace(namespace):
		return fmt.Errorf("namespace %s belongs to the control plane's own machinery: it is never propagated, nor is anything in it, and so cannot be promoted", namespace)
	case strings.HasPrefix(namespace, "kube-"):
		p.Note(fmt.Sprintf("namespace %s is what a cluster itself runs on: by default nothing in it is propagated (--skipped-propagating-namespaces of karmada-controller-manager), "+
			"and where it is, a mistake in the control plane can break the member", namespace))
	}
	return nil
}

// noteOrigin tells of what is odd about an object that is to be promoted.
func (p *Promoter) noteOrigin(o *unstructured.Unstructured, cluster string) {
	if owner := metav1.GetControllerOf(o); owner != nil {
		p.Note(fmt.Sprintf("%s %s belongs to %s %s, which goes on changing it in cluster %s: that is what should be promoted", o.GetKind(), Path(o), owner.Kind, owner.Name, cluster))
	}
	if o.GetLabels()[names.ManagedLabel] == names.True && o.GetAnnotations()[names.WorkNamespaceAnnotation] != names.ExecutionNamespace(cluster) {
		p.Note(fmt.Sprintf("%s %s is managed by a control plane already (Work %s/%s): if that is another one, the two will fight over it",
			o.GetKind(), Path(o), o.GetAnnotations()[names.WorkNamespaceAnnotation], o.GetAnnotations()[names.WorkNameAnnotation]))
	}
}

func get(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, key, u); err != nil {
		return nil, err
	}
	return u, nil
}

// MappingFor returns the kind that users mean, as kubectl understands them: a
// resource, with its version and group or without, or a kind.
func MappingFor(m meta.RESTMapper, typed string) (*meta.RESTMapping, error) {
	gvr, gr := schema.ParseResourceArg(typed)
	gvk := schema.GroupVersionKind{}
	if gvr != nil {
		gvk, _ = m.KindFor(*gvr) // the version may be a part of the group
	}
	var err error
	if gvk.Empty() {
		gvk, err = m.KindFor(gr.WithVersion(""))
	}
	if err == nil {
		return m.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	full, gk := schema.ParseKindArg(typed)
	if full != nil {
		if mapping, err := m.RESTMapping(full.GroupKind(), full.Version); err == nil {
			return mapping, nil
		}
	}
	if mapping, kindErr := m.RESTMapping(gk); kindErr == nil {
		return mapping, nil
	}
	return nil, err
}

// newPolicy returns the policy that places one object where it is, and nowhere
// else (spec: cli/commands.md 8.1, step 6). When it goes the object stays.
func newPolicy(o *unstructured.Unstructured, r Request) policy.Object {
	preserve := true
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors:           []policyv1alpha1.ResourceSelector{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName()}},
		PropagateDeps:               r.Dependencies,
		Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{r.Cluster}}},
		ConflictResolution:          policyv1alpha1.ConflictOverwrite,
		PreserveResourcesOnDeletion: &preserve,
	}
	name := r.PolicyName
	if name == "" {
		name = names.GeneratedPolicy(o.GroupVersionKind(), o.GetName(), o.GetNamespace())
	}
	if o.GetNamespace() == "" {
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		p.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"))
		return p
	}
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name}, Spec: spec}
	p.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	return p
}

// Make makes what is missing: what the template refers to, then the policy, so
// that no other one takes the template when it comes, and then the template. It
// tells made of each: of the template before the policy, as users expect.
// What an error leaves behind is taken up when the promotion is repeated.
func (p *Promoter) Make(ctx context.Context, plan *Plan, made func(client.Object)) error {
	for _, d := range plan.Dependencies {
		if d.Exists {
			continue
		}
		if p.known.made[d.id()] {
			continue // for another object of this run
		}
		if err := p.ControlPlane.Create(ctx, d.Object.DeepCopy()); err != nil {
			return fmt.Errorf("create %s in the control plane: %w", d, err)
		}
		p.known.noteMade(d)
		made(d.Object)
	}
	tell := func() {}
	if q := plan.Policy; q != nil && !q.Exists {
		o, ok := q.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("a policy must be an object")
		}
		if err := p.ControlPlane.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s in the control plane: %w", q.Kind(), Path(q), err)
		}
		tell = func() { made(q.Object) }
	}
	switch {
	case !plan.Template.Exists:
		if err := p.ControlPlane.Create(ctx, plan.Template.Object.DeepCopy()); err != nil {
			tell()
			return fmt.Errorf("create %s in the control plane: %w", plan.Template, err)
		}
		p.known.noteMade(plan.Template)
		made(plan.Template.Object)
	case plan.Template.Held:
		if err := takeUp(ctx, p.ControlPlane, plan.Template.planned); err != nil {
			tell()
			return fmt.Errorf("take up %s in the control plane again: %w", plan.Template, err)
		}
		made(plan.Template.Object)
	}
	tell()
	return nil
}

// NewScheme returns the types that a client of the control plane must know.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(policyv1alpha1.AddToScheme(s), workv1alpha1.AddToScheme(s), workv1alpha2.AddToScheme(s), clusterv1alpha1.AddToScheme(s))
	if err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	return s, nil
}
