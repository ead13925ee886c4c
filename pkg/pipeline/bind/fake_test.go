package bind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/match"
	"github.com/karmadactl/karmadactl/pkg/policy"
	"github.com/karmadactl/karmadactl/pkg/template"
)

var (
	errBoom     = errors.New("boom")
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	roles       = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	foreign     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}
)

// indexes gives a fake client the indices that a cache would have.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

// schemeOnce returns the scheme of all tests, which takes a while to make.
var schemeOnce = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	scheme.AddKnownTypeWithName(foreign, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(foreign.GroupVersion().WithKind("DeploymentList"), &unstructured.UnstructuredList{})
	return scheme, nil
})

// A world is a control plane in memory, and what this stage is made of.
type world struct {
	*reconciler
	policies policyReconciler
	control  client.WithWatch // counts and fails nothing
	fakes    *fakeTemplates
	index    *match.Index
	events   *fakeRecorder
	keys     *fakeQueue
	gates    featuregate.MutableFeatureGate
	pods     *fakeInterpreter

	writes []string
	// before, unless nil, is called before each write, and may fail it.
	before func(write string) error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := schemeOnce()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objects {
		b.WithObjects(o.DeepCopyObject().(client.Object))
	}
	if err := errors.Join(binding.Index(t.Context(), indexes{b}), indexPolicies(t.Context(), indexes{b})); err != nil {
		t.Fatal(err)
	}
	w := &world{control: b.Build(), index: match.NewIndex(), events: &fakeRecorder{}, pods: &fakeInterpreter{}}
	counted := interceptor.NewClient(w.control, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	w.fakes = &fakeTemplates{client: counted, errs: map[schema.GroupVersionKind]error{}}
	w.gates, err = features.New()
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMeters(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	claims := &claimer{client: counted, live: w.control, templates: w.fakes}
	w.reconciler = &reconciler{
		claimer: claims, matcher: w.index, interpreter: w.pods, gate: w.gates, record: w.events, ledger: newLedger(), meters: m,
	}
	queue := newInbox(func(namespace string) bool { return namespace == "kube-system" })
	w.keys = &fakeQueue{}
	queue.open(w.keys)
	w.policies = policyReconciler{
		claimer: claims, matcher: w.index, record: w.events, ledger: w.ledger, queue: queue, meters: m, preemption: true,
	}
	w.learn(t)
	return w
}

func (w *world) write(verb string, o client.Object, do func() error) error {
	kind := fmt.Sprintf("%T", o)
	kind = kind[strings.LastIndex(kind, ".")+1:]
	if u, ok := o.(*unstructured.Unstructured); ok {
		kind = u.GetKind()
	}
	write := verb + " " + kind + " " + o.GetName()
	w.writes = append(w.writes, write)
	if w.before != nil {
		if err := w.before(write); err != nil {
			return err
		}
	}
	return do()
}

// learn tells the index of all policies, as its informers would.
func (w *world) learn(t *testing.T) {
	t.Helper()
	var pps policyv1alpha1.PropagationPolicyList
	var cpps policyv1alpha1.ClusterPropagationPolicyList
	if err := errors.Join(w.control.List(t.Context(), &pps), w.control.List(t.Context(), &cpps)); err != nil {
		t.Fatal(err)
	}
	for i := range pps.Items {
		w.index.Set(&pps.Items[i])
	}
	for i := range cpps.Items {
		w.index.Set(&cpps.Items[i])
	}
}

// take returns the writes since it was called last.
func (w *world) take() []string {
	writes := w.writes
	w.writes = nil
	return writes
}

func (w *world) template(t *testing.T, k Key) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	if err := w.control.Get(t.Context(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

// change changes something behind the back of this stage.
func (w *world) change(t *testing.T, o client.Object, change func()) {
	t.Helper()
	if err := w.control.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	change()
	if err := w.control.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// changeTemplate is change for a template.
func (w *world) changeTemplate(t *testing.T, k Key, change func(*unstructured.Unstructured)) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace(k.Namespace)
	u.SetName(k.Name)
	w.change(t, u, func() { change(u) })
}

func (w *world) bound(t *testing.T, namespace, name string) binding.Object {
	t.Helper()
	b := binding.New(namespace)
	err := w.control.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *world) reconcile1(t *testing.T, k Key) (reconcile.Result, error) {
	t.Helper()
	return w.Reconcile(t.Context(), k)
}

// done reconciles a template and expects nothing to be wrong.
func (w *world) done(t *testing.T, k Key) {
	t.Helper()
	if result, err := w.Reconcile(t.Context(), k); err != nil || result != (reconcile.Result{}) {
		t.Fatalf("reconcile %s: %+v, %v", k.Name, result, err)
	}
}

// fakeTemplates are the templates of a fake client.
type fakeTemplates struct {
	client   client.Client
	errs     map[schema.GroupVersionKind]error // why a kind cannot be asked for
	unsynced bool
	// stale, unless nil, is what the cache has, whatever there is.
	stale    map[Key]*unstructured.Unstructured
	followed []schema.GroupVersionKind
	handle   func(template.Event)
}

func (f *fakeTemplates) Follow(gvk schema.GroupVersionKind) {
	if !slices.Contains(f.followed, gvk) {
		f.followed = append(f.followed, gvk)
	}
}

func (f *fakeTemplates) Subscribe(handle func(template.Event)) func() {
	f.handle = handle
	return func() { f.handle = nil }
}

func (f *fakeTemplates) Synced(gvk schema.GroupVersionKind) bool {
	return !f.unsynced && f.errs[gvk] == nil
}

func (f *fakeTemplates) Cached(gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, bool) {
	if !f.Synced(gvk) {
		return nil, false
	}
	if u, ok := f.stale[Key{gvk, namespace, name}]; ok {
		return u, true
	}
	u, err := f.Live(context.Background(), gvk, namespace, name)
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	return u, true
}

func (f *fakeTemplates) Live(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	if err := f.errs[gvk]; err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	if err := f.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		return nil, err
	}
	return u, nil
}

func (f *fakeTemplates) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	if err := f.errs[gvk]; err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := f.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

func (f *fakeTemplates) ListClaimed(ctx context.Context, gvk schema.GroupVersionKind, namespace, label, id string) ([]*unstructured.Unstructured, error) {
	return f.List(ctx, gvk, namespace, labels.SelectorFromSet(labels.Set{label: id}))
}

func (f *fakeTemplates) Resource(gvk schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, bool, error) {
	return &fakeResource{client: f.client, gvk: gvk}, gvk != roles, f.errs[gvk]
}

// A fakeResource patches the objects of one kind.
type fakeResource struct {
	dynamic.NamespaceableResourceInterface
	client    client.Client
	gvk       schema.GroupVersionKind
	namespace string
}

func (f *fakeResource) Namespace(namespace string) dynamic.ResourceInterface {
	return &fakeResource{client: f.client, gvk: f.gvk, namespace: namespace}
}

func (f *fakeResource) Patch(ctx context.Context, name string, how types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(f.gvk)
	u.SetNamespace(f.namespace)
	u.SetName(name)
	err := f.client.Patch(ctx, u, client.RawPatch(how, data))
	return u, err
}

type fakeRecorder struct{ got []string }

var _ events.EventRecorder = (*fakeRecorder)(nil)

func (r *fakeRecorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.got = append(r.got, fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...)))
}

func (r *fakeRecorder) take() []string {
	got := r.got
	r.got = nil
	return got
}

// A fakeInterpreter knows Deployments.
type fakeInterpreter struct {
	requirements *workv1alpha2.ReplicaRequirements
	components   []workv1alpha2.Component
	err          error
}

func (f *fakeInterpreter) Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return gvk == deployments && (op == configv1alpha1.InterpreterOperationInterpretReplica ||
		op == configv1alpha1.InterpreterOperationInterpretComponent && f.components != nil)
}

func (f *fakeInterpreter) Replicas(_ context.Context, u *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return int32(n), f.requirements.DeepCopy(), errors.Join(err, f.err)
}

func (f *fakeInterpreter) Components(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	return f.components, f.err
}

// A fakeQueue keeps the keys that were added.
type fakeQueue struct {
	workqueue.TypedRateLimitingInterface[Key]
	got []string
}

func (q *fakeQueue) Add(k Key) { q.got = append(q.got, k.Kind+" "+k.Namespace+"/"+k.Name) }

func (q *fakeQueue) take() []string {
	got := q.got
	q.got = nil
	slices.Sort(got)
	return slices.Compact(got)
}

func keyIn(gvk schema.GroupVersionKind, namespace, name string) Key { return Key{gvk, namespace, name} }

var web = keyIn(deployments, "shop", "web")

// aTemplate is a Deployment with two replicas, as it is in the control plane.
func aTemplate(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	u.SetGroupVersionKind(deployments)
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetUID("web-uid")
	u.SetLabels(map[string]string{"app": "web"})
	u.SetCreationTimestamp(metav1.Unix(1000, 0))
	for _, f := range change {
		f(u)
	}
	return u
}

// role is a template of cluster scope.
func role(u *unstructured.Unstructured) {
	u.Object = map[string]any{"rules": []any{}}
	u.SetGroupVersionKind(roles)
	u.SetName("reader")
	u.SetUID("role-uid")
	u.SetLabels(map[string]string{"app": "web"})
}

func named(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetName(name)
		u.SetUID(types.UID(name + "-uid"))
	}
}

func in(namespace string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetNamespace(namespace) }
}

func claimedBy(p policy.Object) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { policy.By(p).Put(u) }
}

// selector selects all Deployments, as changed.
func selector(change ...func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
	s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	for _, f := range change {
		f(&s)
	}
	return s
}

func byName(name string) func(*policyv1alpha1.ResourceSelector) {
	return func(s *policyv1alpha1.ResourceSelector) { s.Name = name }
}

func byLabel(app string) func(*policyv1alpha1.ResourceSelector) {
	return func(s *policyv1alpha1.ResourceSelector) {
		s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

// aPolicy is a PropagationPolicy that selects all Deployments of its namespace.
func aPolicy(name string, change ...func(policy.Object)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{}
	p.Namespace, p.Name = "shop", name
	p.Labels = map[string]string{names.PropagationPolicyIDLabel: name + "-id"}
	p.Finalizers = []string{names.PropagationPolicyFinalizer}
	fill(p, change)
	return p
}

// aClusterPolicy is a ClusterPropagationPolicy that selects all Deployments and
// ClusterRoles.
func aClusterPolicy(name string, change ...func(policy.Object)) *policyv1alpha1.ClusterPropagationPolicy {
	p := &policyv1alpha1.ClusterPropagationPolicy{}
	p.Name = name
	p.Labels = map[string]string{names.ClusterPropagationPolicyIDLabel: name + "-id"}
	p.Finalizers = []string{names.ClusterPropagationPolicyFinalizer}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}}
	fill(p, change)
	return p
}

func fill(p policy.Object, change []func(policy.Object)) {
	p.SetCreationTimestamp(metav1.Unix(1000, 0))
	p.SetGeneration(1)
	spec := p.PropagationSpec()
	spec.ResourceSelectors = append(spec.ResourceSelectors, selector())
	spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{p.GetName() + "-cluster"}}
	spec.SchedulerName = "default-scheduler"
	for _, f := range change {
		f(p)
	}
}

func selecting(all ...policyv1alpha1.ResourceSelector) func(policy.Object) {
	return func(p policy.Object) { p.PropagationSpec().ResourceSelectors = all }
}

func priority(n int32) func(policy.Object) {
	return func(p policy.Object) { p.PropagationSpec().Priority = ptr.To(n) }
}

func lazy(p policy.Object) { p.PropagationSpec().ActivationPreference = policyv1alpha1.LazyActivation }

func preempting(p policy.Object) { p.PropagationSpec().Preemption = policyv1alpha1.PreemptAlways }

func deleting(p policy.Object) { p.SetDeletionTimestamp(ptr.To(metav1.Unix(2000, 0))) }

func created(at int64) func(policy.Object) {
	return func(p policy.Object) { p.SetCreationTimestamp(metav1.Unix(at, 0)) }
}

// isClaimedBy reports whether a policy has its claim, and nobody else's, on o.
func isClaimedBy(o metav1.Object, p policy.Object) bool {
	c, ok := policy.ClaimOf(o)
	if p == nil {
		return !ok
	}
	return ok && c == policy.By(p)
}

// clusterOf returns the cluster of the policy that made a binding say what it says.
func clusterOf(b binding.Object) string {
	if p := b.BindingSpec().Placement; p != nil && p.ClusterAffinity != nil {
		return strings.Join(p.ClusterAffinity.ClusterNames, ",")
	}
	return ""
}

var noMatchErr = &meta.NoKindMatchError{GroupKind: deployments.GroupKind()}
