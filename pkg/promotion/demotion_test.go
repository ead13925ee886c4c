package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A plane is a control plane in memory, with what its controllers do after each
// write, as far as it matters to what members have.
type plane struct {
	client.Client
	api    client.WithWatch // without the controllers
	away   bool             // the controllers do nothing
	silent bool             // members do not answer: Works stay
	limit  int              // how many writes succeed, <0 for all
	writes []string
	lost   []string // what was removed from members
	// changed says that a controller has written something, to which others may
	// have something to say.
	changed bool
	before  func(verb string, o client.Object)
}

func newPlane(t *testing.T, objects ...client.Object) *plane {
	t.Helper()
	scheme, err := NewScheme()
	if err := errors.Join(err, corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}})
	root := meta.RESTScopeRoot
	for gvk, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                               meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ConfigMap"}:                                               meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Secret"}:                                                  meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ServiceAccount"}:                                          meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Secret"}:                                                  meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ServiceAccount"}:                                          meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Namespace"}:                                               root,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:         root,
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: root,
		{Group: "example.com", Version: "v1", Kind: "Gadget"}:                            meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"):                        meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"):                 root,
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"):                            meta.RESTScopeNamespace,
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"):                     root,
		workv1alpha1.GroupVersion.WithKind("Work"):                                       meta.RESTScopeNamespace,
	} {
		mapper.Add(gvk, scope)
	}
	p := &plane{limit: -1}
	p.api = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build()
	write := func(verb string, o client.Object, do func() error) error {
		if p.limit == 0 {
			return errBoom
		}
		if p.before != nil {
			p.before(verb, o)
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if kind == "" {
			kind = strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha")[2:]
		}
		if err := do(); err != nil {
			return err
		}
		p.limit--
		p.writes = append(p.writes, verb+" "+kind+" "+Path(o))
		return p.control()
	}
	p.Client = interceptor.NewClient(p.api, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return fmt.Errorf("nothing is made by a demotion, least of all %s", o.GetName())
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
			return fmt.Errorf("nothing is replaced by a demotion, least of all %s", o.GetName())
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write("patch", o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if slices.Contains(opts, client.DeleteOption(client.DryRunAll)) {
				return c.Delete(ctx, o, opts...)
			}
			return write("delete", o, func() error {
				if err := p.precondition(ctx, o, opts); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			})
		},
	})
	return p
}

// precondition does what the API server does about them.
func (p *plane) precondition(ctx context.Context, o client.Object, opts []client.DeleteOption) error {
	all := &client.DeleteOptions{}
	all.ApplyOptions(opts)
	if all.Preconditions == nil || all.Preconditions.ResourceVersion == nil || all.Preconditions.UID == nil {
		return fmt.Errorf("%s would be deleted whatever it is", o.GetName())
	}
	now, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return errBoom
	}
	if err := p.api.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if now.GetResourceVersion() != *all.Preconditions.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errBoom)
	}
	return nil
}

// control does what controllers do until nothing is left to do.
func (p *plane) control() error {
	if p.away {
		return nil
	}
	ctx := context.Background()
	for p.changed = true; p.changed; {
		p.changed = false
		var bindings workv1alpha2.ResourceBindingList
		if err := p.api.List(ctx, &bindings); err != nil {
			return err
		}
		for i := range bindings.Items {
			if err := p.bind(ctx, &bindings.Items[i], bindings.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plane) bind(ctx context.Context, b *workv1alpha2.ResourceBinding, all []workv1alpha2.ResourceBinding) error {
	before := b.DeepCopy()
	ref := b.Spec.Resource
	t, err := get(ctx, p.api, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if t == nil && b.DeletionTimestamp == nil { // the garbage collector
		p.changed = true
		if err := p.api.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := p.api.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if b.DeletionTimestamp != nil { // stage render
		p.changed = true
		if err := p.works(ctx, b, func(w *workv1alpha1.Work) error {
			if preserves(b) {
				w.Spec.PreserveResourcesOnDeletion = ptr.To(true)
			}
			return p.withdraw(ctx, w)
		}); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(b, names.ResourceBindingFinalizer)
		return client.IgnoreNotFound(p.api.Update(ctx, b))
	}
	// stage bind: what a policy says, unless the template is nobody's.
	if c, ok := policy.ClaimOf(t); ok && t.GetLabels()[names.ClaimedByLabel] == "" {
		rule := &policyv1alpha1.PropagationPolicy{}
		if err := p.api.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, rule); err == nil {
			b.Spec.PreserveResourcesOnDeletion, b.Spec.Suspension = rule.Spec.PreserveResourcesOnDeletion, nil
		}
	}
	// What goes along does what those say that need it.
	needed := len(b.Spec.RequiredBy) > 0
	b.Spec.RequiredBy = slices.DeleteFunc(b.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
		return !slices.ContainsFunc(all, func(o workv1alpha2.ResourceBinding) bool { return o.Name == s.Name && o.DeletionTimestamp == nil })
	})
	if b.Spec.Placement == nil && needed {
		b.Spec.PreserveResourcesOnDeletion = nil
		for _, s := range b.Spec.RequiredBy {
			for i := range all {
				if all[i].Name == s.Name && preserves(&all[i]) {
					b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
				}
			}
		}
	}
	if !equality.Semantic.DeepEqual(before.Spec, b.Spec) {
		p.changed = true
		if err := p.api.Update(ctx, b); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	expected := map[string]bool{}
	for _, c := range b.Spec.Clusters {
		expected["karmada-es-"+c.Name] = true
	}
	for _, s := range b.Spec.RequiredBy {
		for _, c := range s.Clusters {
			expected["karmada-es-"+c.Name] = true
		}
	}
	return p.works(ctx, b, func(w *workv1alpha1.Work) error {
		if !expected[w.Namespace] {
			return p.withdraw(ctx, w)
		}
		if ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false) == preserves(b) {
			return nil
		}
		p.changed = true
		w.Spec.PreserveResourcesOnDeletion = ptr.To(preserves(b))
		return p.api.Update(ctx, w)
	})
}

func (p *plane) works(ctx context.Context, b *workv1alpha2.ResourceBinding, do func(*workv1alpha1.Work) error) error {
	var works workv1alpha1.WorkList
	if err := p.api.List(ctx, &works, client.MatchingLabels{names.ResourceBindingIDLabel: b.Labels[names.ResourceBindingIDLabel]}); err != nil {
		return err
	}
	for i := range works.Items {
		if err := do(&works.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// withdraw is stage apply: what is not preserved goes from the member.
func (p *plane) withdraw(ctx context.Context, w *workv1alpha1.Work) error {
	if !ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false) {
		p.lost = append(p.lost, w.Namespace+"/"+w.Name)
	}
	if p.silent {
		return nil
	}
	return client.IgnoreNotFound(p.api.Delete(ctx, w))
}

func binds(namespace, name, kind, apiVersion string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: names.Binding(kind, name), UID: "uid-" + "b-" + "x",
			Labels: map[string]string{names.ResourceBindingIDLabel: "id-" + name}, Finalizers: []string{names.ResourceBindingFinalizer},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:  workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name},
			Placement: &policyv1alpha1.Placement{}, Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}},
		},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func carries(name string, clusters ...string) []client.Object {
	var all []client.Object
	for _, c := range clusters {
		all = append(all, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-" + c, Name: name, Labels: map[string]string{names.ResourceBindingIDLabel: "id-" + name},
		}})
	}
	return all
}

// attached makes a binding that of something that goes along with Deployment web.
func attached(b *workv1alpha2.ResourceBinding) {
	b.UID = "uid-attached"
	b.Labels[names.DependedByLabel(names.BindingReferenceKey("shop", "web-deployment"))] = "id-web"
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}}}
	b.Spec.Placement, b.Spec.Clusters = nil, nil
}

func claimedBy(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		policy.Claim{Namespace: "shop", Name: name, ID: "id-" + name}.Put(u)
	}
}

// aPolicy makes one that selects Deployments, or one alone as a promotion does.
func aPolicy(t *testing.T, name string, alone bool) client.Object {
	t.Helper()
	if alone {
		made, ok := newPolicy(object(t, web), Request{Cluster: "m1", PolicyName: name}).(*policyv1alpha1.PropagationPolicy)
		if !ok {
			t.Fatal("no policy was made")
		}
		made.UID = "uid-policy"
		made.Spec.Priority, made.Spec.SchedulerName, made.Spec.Preemption = ptr.To(int32(0)), "default-scheduler", policyv1alpha1.PreemptNever
		return made
	}
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "ConfigMap"}},
	}}
}

func (p *plane) demoter(notes *[]string) *Demoter {
	patience := time.Minute // which ends no test
	if p.away || p.silent {
		patience = time.Millisecond // nothing comes of waiting
	}
	return &Demoter{
		ControlPlane: p, Patience: patience, Interval: time.Millisecond, Program: "karmadactl", Interpreter: interpreter.New(interpreter.Options{}),
		Note: func(s string) { *notes = append(*notes, s) },
		Kinds: func(context.Context) ([]*metav1.APIResourceList, error) {
			verbs := metav1.Verbs{"create", "delete", "list", "watch"}
			return []*metav1.APIResourceList{
				{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Namespaced: true, Kind: "ConfigMap", Verbs: verbs}, {Name: "events", Namespaced: true, Kind: "Event", Verbs: verbs}}},
				{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Namespaced: true, Kind: "Deployment", Verbs: verbs}, {Name: "deployments/scale", Namespaced: true, Kind: "Scale", Verbs: verbs}}},
			}, nil
		},
	}
}

// demoted runs a demotion to its end.
func (p *plane) demoted(f Farewell, many labels.Selector) (notes, told []string, err error) {
	d := p.demoter(&notes)
	ctx := context.Background()
	var all []*Demotion
	if many != nil {
		all, err = d.ReadAll(ctx, f, many)
	} else {
		all, err = d.Read(ctx, f)
	}
	if err != nil {
		return notes, nil, err
	}
	all = slices.DeleteFunc(all, (*Demotion).IsDone)
	for _, e := range d.Check(ctx, all) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return notes, nil, err
	}
	for _, e := range d.Demote(ctx, all, func(line string) { told = append(told, line) }) {
		err = errors.Join(err, e)
	}
	return notes, told, err
}

// has says what of templates, bindings, policies and Works there is.
func (p *plane) has(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "ConfigMap"},
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha1.GroupVersion.WithKind("Work"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := p.api.List(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, kind.Kind+" "+Path(&list.Items[i]))
		}
	}
	return all
}

func farewell() Farewell { return Farewell{Type: "deployments", Namespace: "shop", Name: "web"} }

// A story is a control plane and what is asked of it.
type story struct {
	reason  string
	request func(*Farewell)
	objects func(t *testing.T) []client.Object
	many    labels.Selector
	told    []string
	writes  []string
	left    []string // of what there was
	notes   []string
}

func stories() map[string]story {
	web := func(t *testing.T, policy string, change ...func(*workv1alpha2.ResourceBinding)) []client.Object {
		return append(carries("web", "m1", "m2"), object(t, web, claimedBy(policy)), binds("shop", "web", "Deployment", "apps/v1", change...))
	}
	along := func(t *testing.T, change ...func(*workv1alpha2.ResourceBinding)) []client.Object {
		return append(carries("settings", "m1", "m2"), object(t, settings), binds("shop", "settings", "ConfigMap", "v1", append([]func(*workv1alpha2.ResourceBinding){attached}, change...)...))
	}
	const done = `Resource "apps/v1, Resource=deployments"(shop/web) is demoted successfully`
	return map[string]story{
		"Promoted": {
			reason:  "What a promotion made goes: bindings, policy, template, in this order. Its policy preserves everything already.",
			objects: func(t *testing.T) []client.Object { return append(web(t, "p"), aPolicy(t, "p", true)) },
			told:    []string{"PropagationPolicy (shop/p) is deleted successfully", "ResourceTemplate (shop/web) is deleted successfully", done},
			writes: []string{
				"patch ResourceBinding shop/web-deployment", "patch Deployment shop/web", "delete ResourceBinding shop/web-deployment",
				"delete PropagationPolicy shop/p", "delete Deployment shop/web",
			},
		},
		"SharedPolicy": {
			reason:  "A policy that selects more stays. It does not preserve anything, and says so until the template is nobody's.",
			objects: func(t *testing.T) []client.Object { return append(web(t, "all"), aPolicy(t, "all", false)) },
			told:    []string{"ResourceTemplate (shop/web) is deleted successfully", done},
			left:    []string{"PropagationPolicy shop/all"},
		},
		"KeepTemplate": {
			reason:  "The template stays, and is nobody's.",
			request: func(f *Farewell) { f.KeepTemplate = true },
			objects: func(t *testing.T) []client.Object { return append(web(t, "p"), aPolicy(t, "p", true)) },
			told:    []string{"PropagationPolicy (shop/p) is deleted successfully", done},
			left:    []string{"Deployment shop/web"},
		},
		"Along": {
			reason: "What goes along stays in the clusters, too. Its template stays where it is.",
			objects: func(t *testing.T) []client.Object {
				return slices.Concat(web(t, "all"), along(t), []client.Object{aPolicy(t, "all", false)})
			},
			told: []string{"ResourceTemplate (shop/web) is deleted successfully", done},
			left: []string{"ConfigMap shop/settings", "PropagationPolicy shop/all", "ResourceBinding shop/settings-configmap"},
		},
		"Dependencies": {
			reason:  "With its dependencies their templates go, too.",
			request: func(f *Farewell) { f.Dependencies = true },
			objects: func(t *testing.T) []client.Object {
				return slices.Concat(web(t, "all"), along(t), []client.Object{aPolicy(t, "all", false)})
			},
			told: []string{
				"ResourceTemplate (shop/settings) is deleted successfully", "ResourceTemplate (shop/web) is deleted successfully",
				done, `Resource "/v1, Resource=configmaps"(shop/settings) is demoted successfully`,
			},
			left: []string{"PropagationPolicy shop/all"},
		},
		"ClaimedDependency": {
			reason:  "A dependency with a policy of its own, which would remove it, is held in time.",
			request: func(f *Farewell) { f.Dependencies = true },
			objects: func(t *testing.T) []client.Object {
				claimed := func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} }
				all := slices.Concat(web(t, "all"), along(t, claimed), []client.Object{aPolicy(t, "all", false)})
				for _, o := range all {
					if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "ConfigMap" {
						claimedBy("all")(u)
					}
				}
				return all
			},
			told: []string{
				"ResourceTemplate (shop/settings) is deleted successfully", "ResourceTemplate (shop/web) is deleted successfully",
				done, `Resource "/v1, Resource=configmaps"(shop/settings) is demoted successfully`,
			},
			left: []string{"PropagationPolicy shop/all"},
		},
		"All": {
			reason:  "Of a namespace goes what is propagated; what only goes along is left to what needs it.",
			request: func(f *Farewell) { f.Type, f.Name = "", "" },
			many:    labels.Everything(),
			objects: func(t *testing.T) []client.Object {
				other := object(t, settings)
				other.SetName("mine")
				return slices.Concat(web(t, "p"), along(t), []client.Object{aPolicy(t, "p", true), other})
			},
			told:  []string{"PropagationPolicy (shop/p) is deleted successfully", "ResourceTemplate (shop/web) is deleted successfully", done},
			notes: []string{"left out, as each is propagated only for what needs it (--dependencies takes it, too): ConfigMap shop/settings"},
			left:  []string{"ConfigMap shop/mine", "ConfigMap shop/settings", "ResourceBinding shop/settings-configmap"},
		},
		"AllWithDependencies": {
			reason:  "What needs others goes before them, in whatever order they are found.",
			request: func(f *Farewell) { f.Type, f.Name, f.Dependencies = "configmaps,deployments", "", true },
			many:    labels.Everything(),
			objects: func(t *testing.T) []client.Object {
				return slices.Concat(web(t, "all"), along(t), []client.Object{aPolicy(t, "all", false)})
			},
			told: []string{
				"ResourceTemplate (shop/settings) is deleted successfully", "ResourceTemplate (shop/web) is deleted successfully",
				`Resource "/v1, Resource=configmaps"(shop/settings) is demoted successfully`, done,
			},
			left: []string{"PropagationPolicy shop/all"},
		},
	}
}

func (s story) start(t *testing.T) (*plane, Farewell) {
	t.Helper()
	p := newPlane(t, s.objects(t)...)
	if err := p.control(); err != nil {
		t.Fatal(err)
	}
	f := farewell()
	if s.request != nil {
		s.request(&f)
	}
	return p, f
}

func TestDemote(t *testing.T) {
	for name, tc := range stories() {
		t.Run(name, func(t *testing.T) {
			p, f := tc.start(t)
			notes, told, err := p.demoted(f, tc.many)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Errorf("%s\ntold (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s\nnotes (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.left, p.has(t)); diff != "" {
				t.Errorf("%s\nleft (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, p.writes); tc.writes != nil && diff != "" {
				t.Errorf("%s\nwrites (-want +got):\n%s", tc.reason, diff)
			}
			if len(p.lost) > 0 {
				t.Errorf("%s\nremoved from members: %q", tc.reason, p.lost)
			}
			if tc.many == nil && !f.KeepTemplate {
				if _, _, err := p.demoted(f, nil); !apierrors.IsNotFound(err) {
					t.Errorf("the second time: %v, want that it is not there", err)
				}
				return
			}
			p.limit = 0 // nothing must be written
			if _, told, err := p.demoted(f, tc.many); err != nil || len(told) > 0 {
				t.Errorf("the second time: %v, told %q", err, told)
			}
		})
	}
}

// TestDemoteInterrupted stops each story before each of its writes, and tells it
// again.
func TestDemoteInterrupted(t *testing.T) {
	for name, tc := range stories() {
		t.Run(name, func(t *testing.T) {
			whole, f := tc.start(t)
			if _, _, err := whole.demoted(f, tc.many); err != nil {
				t.Fatal(err)
			}
			for stop := range len(whole.writes) {
				p, f := tc.start(t)
				p.limit = stop
				if _, _, err := p.demoted(f, tc.many); !errors.Is(err, errBoom) {
					t.Errorf("stopped before write %d: error %v", stop, err)
				}
				if len(p.lost) > 0 {
					t.Fatalf("stopped before write %d of %q: removed from members: %q", stop, whole.writes, p.lost)
				}
				p.limit = -1
				if _, _, err := p.demoted(f, tc.many); err != nil {
					t.Errorf("stopped before write %d of %q, the next run: %v", stop, whole.writes, err)
				}
				if diff := cmp.Diff(tc.left, p.has(t)); diff != "" {
					t.Errorf("stopped before write %d of %q: left by the next run (-want +got):\n%s", stop, whole.writes, diff)
				}
				if len(p.lost) > 0 {
					t.Errorf("stopped before write %d of %q: the next run removed from members: %q", stop, whole.writes, p.lost)
				}
			}
		})
	}
}

// TestDemoteHeld checks that a kept template is nobody's, and can be promoted again.
func TestDemoteHeld(t *testing.T) {
	tc := stories()["KeepTemplate"]
	p, f := tc.start(t)
	if _, _, err := p.demoted(f, nil); err != nil {
		t.Fatal(err)
	}
	kept, err := get(context.Background(), p.api, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, client.ObjectKey{Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if _, claimed := policy.ClaimOf(kept); claimed || kept.GetLabels()[names.ClaimedByLabel] != DemotedBy {
		t.Errorf("labels %v: no policy must claim it, now or later", kept.GetLabels())
	}
	if err := takeUp(context.Background(), p, kept); err != nil {
		t.Fatal(err)
	}
	again, err := get(context.Background(), p.api, kept.GroupVersionKind(), client.ObjectKeyFromObject(kept))
	if err != nil || again.GetLabels()[names.ClaimedByLabel] != "" || again.GetLabels()["app"] != "web" {
		t.Errorf("taken up again it has labels %v, %v", again.GetLabels(), err)
	}
}

func TestDemoteRefused(t *testing.T) {
	deployment := func(change ...func(*unstructured.Unstructured)) func(t *testing.T) []client.Object {
		return func(t *testing.T) []client.Object {
			return append(carries("web", "m1"), object(t, web, append([]func(*unstructured.Unstructured){claimedBy("all")}, change...)...), binds("shop", "web", "Deployment", "apps/v1"), aPolicy(t, "all", false))
		}
	}
	labelled := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			l := u.GetLabels()
			l[key] = value
			u.SetLabels(l)
		}
	}
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec: {group: example.com, names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true}]}
`
	root := func(name, kind, apiVersion string) *workv1alpha2.ClusterResourceBinding {
		return &workv1alpha2.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: names.Binding(kind, name), Labels: map[string]string{names.ClusterResourceBindingIDLabel: "id"}},
			Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}},
		}
	}
	tests := map[string]struct {
		reason  string
		request func(*Farewell)
		objects func(t *testing.T) []client.Object
		away    bool
		silent  bool
		before  func(p *plane) func(verb string, o client.Object)
		want    string
		left    string // something that must still be there
	}{
		"NoSuchKind": {
			reason: "A kind that is not known is no missing object.", request: func(f *Farewell) { f.Type = "gizmos" },
			objects: deployment(), want: `find out what "gizmos" is in the control plane`,
		},
		"NotPropagated": {
			reason:  "What goes nowhere cannot be let go of.",
			objects: func(t *testing.T) []client.Object { return []client.Object{object(t, web)} },
			want:    `is not propagated to any cluster, so that there is nothing to let go of: to remove it from the control plane, run "karmadactl delete deployments.apps web -n shop"`,
		},
		"NotBound": {
			reason:  "What a policy has claimed a moment ago is about to be bound.",
			objects: func(t *testing.T) []client.Object { return []client.Object{object(t, web, claimedBy("all"))} },
			want:    "try again in a moment",
		},
		"OfAnother": {
			reason: "What is made for something else is let go of with that.", objects: deployment(labelled(names.ClaimedByLabel, "MultiClusterService")),
			want: "MultiClusterService says where Deployment shop/web goes",
		},
		"Protected": {
			reason: "What must not be deleted is found out before anything is written.", objects: deployment(labelled(names.DeletionProtectedLabel, "Always")),
			want: names.DeletionProtectedRefusal, left: "Deployment shop/web",
		},
		"Needed": {
			reason: "What others need would come again.", request: func(f *Farewell) { f.Type, f.Name = "configmaps", "settings" },
			objects: func(t *testing.T) []client.Object {
				return append(deployment()(t), object(t, settings), binds("shop", "settings", "ConfigMap", "v1", attached))
			},
			want: "ResourceBinding shop/web-deployment needs ConfigMap shop/settings",
		},
		"TakesAlong": {
			reason: "What would be removed with it by its own policy is not forgotten.",
			objects: func(t *testing.T) []client.Object {
				claimed := func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} }
				return append(deployment()(t), object(t, settings, claimedBy("all")), binds("shop", "settings", "ConfigMap", "v1", attached, claimed))
			},
			want: "ConfigMap shop/settings is in cluster m1 only because Deployment shop/web needs it",
		},
		"Namespace": {
			reason: "Every cluster has the namespaces of the control plane.", request: func(f *Farewell) { f.Type, f.Name = "namespaces", "shop" },
			objects: func(t *testing.T) []client.Object {
				return []client.Object{object(t, namespace), root("shop", "Namespace", "v1")}
			},
			want: `demote what is in it ("karmadactl demote --all -n shop")`,
		},
		"Definition": {
			reason: "With a kind all its objects go, also from the members.", request: func(f *Farewell) { f.Type, f.Name = "crd", "gadgets.example.com" },
			objects: func(t *testing.T) []client.Object {
				return []client.Object{
					object(t, definition), root("gadgets.example.com", "CustomResourceDefinition", "apiextensions.k8s.io/v1"),
					object(t, "{apiVersion: example.com/v1, kind: Gadget, metadata: {namespace: shop, name: one}}"),
				}
			},
			want: "the control plane has objects of kind Gadget, such as shop/one", left: "",
		},
		"ControllersAway": {
			reason: "Without controllers nothing goes by itself, and nothing is lost.", objects: deployment(), away: true,
			want: "ResourceBinding shop/web-deployment is being deleted, but still there: what it has in clusters is preserved", left: "Deployment shop/web",
		},
		"AlongAway": {
			reason: "What goes along must be known to be preserved before anything goes.", away: true,
			objects: func(t *testing.T) []client.Object {
				return slices.Concat(deployment()(t), carries("settings", "m1"), []client.Object{object(t, settings), binds("shop", "settings", "ConfigMap", "v1", attached)})
			},
			want: "the control plane does not say yet that Deployment shop/web is preserved (ResourceBinding shop/settings-configmap)", left: "ResourceBinding shop/web-deployment",
		},
		"MemberAway": {
			reason: "A cluster that does not answer is told later; until then it is said.", silent: true,
			objects: func(t *testing.T) []client.Object {
				return append(carries("web", "m1"), object(t, web, claimedBy("p")), binds("shop", "web", "Deployment", "apps/v1"), aPolicy(t, "p", true))
			},
			want: "the control plane has let go of Deployment shop/web, but Work karmada-es-m1/web, by which cluster m1 is told", left: "Work karmada-es-m1/web",
		},
		"Changed": {
			reason: "Who changes the binding in between does not get it deleted as it was.", objects: deployment(),
			before: func(p *plane) func(string, client.Object) {
				return func(verb string, o client.Object) {
					if b, ok := o.(*workv1alpha2.ResourceBinding); ok && verb == "delete" {
						now := &workv1alpha2.ResourceBinding{}
						if p.api.Get(context.Background(), client.ObjectKeyFromObject(b), now) == nil {
							now.Spec.PreserveResourcesOnDeletion = ptr.To(false)
							_ = p.api.Update(context.Background(), now)
						}
					}
				}
			},
			want: "does not preserve what it has any more", left: "ResourceBinding shop/web-deployment",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, tc.objects(t)...)
			p.away, p.silent = tc.away, tc.silent
			m, ok := p.RESTMapper().(*meta.DefaultRESTMapper)
			if !ok {
				t.Fatal("no mapper")
			}
			m.AddSpecific(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
				schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
				schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "crd"}, meta.RESTScopeRoot)
			if tc.before != nil {
				p.before = tc.before(p)
			}
			f := farewell()
			if tc.request != nil {
				tc.request(&f)
			}
			_, _, err := p.demoted(f, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nerror %v, want one with %q", tc.reason, err, tc.want)
			}
			if tc.left != "" && !slices.Contains(p.has(t), tc.left) {
				t.Errorf("%s\nleft %q, want %s among it", tc.reason, p.has(t), tc.left)
			}
			if len(p.lost) > 0 {
				t.Errorf("%s\nremoved from members: %q", tc.reason, p.lost)
			}
		})
	}
}

func TestIsMadeFor(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*policyv1alpha1.PropagationSpec)
		want   bool
	}{
		"Promotion": {reason: "As it was made, with what the API server fills in.", change: func(*policyv1alpha1.PropagationSpec) {}, want: true},
		"Along":     {reason: "Made with dependencies.", change: func(s *policyv1alpha1.PropagationSpec) { s.PropagateDeps = true }, want: true},
		"Namespace": {reason: "Servers fill in the namespace of selectors.", change: func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Namespace = "shop" }, want: true},
		"More": {reason: "It selects something else, too.", change: func(s *policyv1alpha1.PropagationSpec) {
			s.ResourceSelectors = append(s.ResourceSelectors, s.ResourceSelectors[0])
		}},
		"AllOfKind": {reason: "It selects more.", change: func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "" }},
		"Placed": {reason: "A user has added a cluster.", change: func(s *policyv1alpha1.PropagationSpec) {
			s.Placement.ClusterAffinity.ClusterNames = []string{"m1", "m2"}
		}},
		"NotPreserved": {reason: "A user has changed it.", change: func(s *policyv1alpha1.PropagationSpec) { s.PreserveResourcesOnDeletion = nil }},
		"Important":    {reason: "A user has given it a priority.", change: func(s *policyv1alpha1.PropagationSpec) { s.Priority = ptr.To(int32(3)) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, ok := aPolicy(t, "p", true).(policy.Object)
			if !ok {
				t.Fatal("no policy")
			}
			tc.change(p.PropagationSpec())
			if got := isMadeFor(p, object(t, web)); got != tc.want {
				t.Errorf("%s\ngot %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
