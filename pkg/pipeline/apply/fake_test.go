package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/metrics"
)

var errBoom = errors.New("boom")

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// A fakeMember is a member cluster in memory.
type fakeMember struct {
	client  client.Client
	mapper  *meta.DefaultRESTMapper
	calls   []string
	watched map[string][]schema.GroupVersionResource
	// before, unless nil, is called before each request, and may fail it.
	before func(call string) error
	// cached, unless nil, is what Cached knows.
	cached map[place]*unstructured.Unstructured
	// starting says that what is there will be known soon.
	starting bool
	// refuses, unless nil, says why an update is not taken.
	refuses func(*unstructured.Unstructured) error
	// ignore makes updates change nothing.
	ignore bool
	noKind error
	// inside is what there is in namespaces, by kind; notListed, unless nil, is
	// why nobody can list the Secrets and Widgets among it.
	inside    []runtime.Object
	notListed error
}

func newFakeMember(t *testing.T, objects ...*unstructured.Unstructured) *fakeMember {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Version: "v1", Kind: "ConfigMap"}:                                       meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Service"}:                                         meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Namespace"}:                                       meta.RESTScopeRoot,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                       meta.RESTScopeNamespace,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: meta.RESTScopeRoot,

		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: meta.RESTScopeRoot,
	} {
		mapper.Add(gvk, scope)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
	for _, o := range objects {
		builder.WithObjects(o.DeepCopy())
	}
	return &fakeMember{client: builder.Build(), mapper: mapper}
}

func (m *fakeMember) Name() string               { return "m1" }
func (m *fakeMember) Dynamic() dynamic.Interface { return &fakeDynamic{member: m} }
func (m *fakeMember) Mapper() meta.RESTMapper {
	return &fakeMapper{DefaultRESTMapper: m.mapper, err: m.noKind}
}

func (m *fakeMember) Discovery() discovery.DiscoveryInterface {
	all, view := metav1.Verbs{"list", "delete"}, metav1.Verbs{"get", "list"}
	kind := func(name, kind string, verbs metav1.Verbs) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: kind != "Namespace", Verbs: verbs}
	}
	return &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			kind("configmaps", "ConfigMap", all), kind("secrets", "Secret", all), kind("serviceaccounts", "ServiceAccount", all),
			kind("events", "Event", all), kind("endpoints", "Endpoints", all), kind("pods", "Pod", all), kind("namespaces", "Namespace", all),
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{kind("replicasets", "ReplicaSet", all)}},
		{GroupVersion: "coordination.k8s.io/v1", APIResources: []metav1.APIResource{kind("leases", "Lease", all)}},
		{GroupVersion: "metrics.k8s.io/v1beta1", APIResources: []metav1.APIResource{kind("pods", "PodMetrics", view)}},
	}}}
}

func (m *fakeMember) Metadata() (metadata.Interface, error) {
	scheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	c := fakemetadata.NewSimpleMetadataClient(scheme, m.inside...)
	if m.notListed != nil {
		refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, m.notListed }
		c.PrependReactor("list", "secrets", refuse)
		c.PrependReactor("list", "widgets", refuse)
	}
	return c, nil
}

func (m *fakeMember) Watch(work string, kinds ...schema.GroupVersionResource) error {
	if m.watched == nil {
		m.watched = map[string][]schema.GroupVersionResource{}
	}
	m.watched[work] = kinds
	return nil
}

func (m *fakeMember) Starting(schema.GroupVersionResource) bool { return m.starting }

func (m *fakeMember) Cached(gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, bool) {
	if m.cached == nil {
		return nil, false
	}
	return m.cached[place{gvr: gvr, namespace: namespace, name: name}], true
}

// know makes the cache know what is there now.
func (m *fakeMember) know(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	m.cached = map[place]*unstructured.Unstructured{}
	for _, o := range objects {
		current := m.get(t, o)
		if current == nil {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		m.cached[place{gvr: plural, namespace: o.GetNamespace(), name: o.GetName()}] = current
	}
}

// get returns an object of the member, nil when there is none.
func (m *fakeMember) get(t *testing.T, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(like.GroupVersionKind())
	err := m.client.Get(t.Context(), client.ObjectKeyFromObject(like), u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// change changes an object of the member as somebody else would.
func (m *fakeMember) change(t *testing.T, like *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	t.Helper()
	u := m.get(t, like)
	change(u)
	if err := m.client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// take returns the requests since it was called last.
func (m *fakeMember) take() []string {
	calls := m.calls
	m.calls = nil
	return calls
}

type fakeMapper struct {
	*meta.DefaultRESTMapper
	err error
}

func (m *fakeMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.DefaultRESTMapper.RESTMapping(gk, versions...)
}

// A fakeDynamic is a dynamic client over controller-runtime's fake, which knows
// resource versions.
type fakeDynamic struct {
	dynamic.NamespaceableResourceInterface
	member    *fakeMember
	gvr       schema.GroupVersionResource
	namespace string
}

func (d *fakeDynamic) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &fakeDynamic{member: d.member, gvr: gvr}
}

func (d *fakeDynamic) Namespace(namespace string) dynamic.ResourceInterface {
	return &fakeDynamic{member: d.member, gvr: d.gvr, namespace: namespace}
}

func (d *fakeDynamic) call(verb, name string) (*unstructured.Unstructured, error) {
	gvk, err := d.member.mapper.KindFor(d.gvr)
	if err != nil {
		return nil, err
	}
	call := strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, gvk.Kind, key(place{namespace: d.namespace, name: name})))
	d.member.calls = append(d.member.calls, call)
	if d.member.before != nil {
		if err := d.member.before(call); err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(d.namespace)
	u.SetName(name)
	return u, nil
}

func (d *fakeDynamic) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	u, err := d.call("get", name)
	if err != nil {
		return nil, err
	}
	return u, d.member.client.Get(ctx, client.ObjectKeyFromObject(u), u)
}

func (d *fakeDynamic) Create(ctx context.Context, obj *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if _, err := d.call("create", obj.GetName()); err != nil {
		return nil, err
	}
	obj = obj.DeepCopy()
	obj.SetUID(types.UID("uid of " + obj.GetName()))
	return obj, d.member.client.Create(ctx, obj)
}

func (d *fakeDynamic) Update(ctx context.Context, obj *unstructured.Unstructured, _ metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if _, err := d.call("update", obj.GetName()); err != nil {
		return nil, err
	}
	if d.member.refuses != nil {
		if err := d.member.refuses(obj); err != nil {
			return nil, err
		}
	}
	obj = obj.DeepCopy()
	if d.member.ignore {
		return obj, nil
	}
	return obj, d.member.client.Update(ctx, obj)
}

func (d *fakeDynamic) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	u, err := d.call("patch", name)
	if err != nil {
		return nil, err
	}
	return u, d.member.client.Patch(ctx, u, client.RawPatch(kind, data))
}

func (d *fakeDynamic) Delete(ctx context.Context, name string, o metav1.DeleteOptions, _ ...string) error {
	verb := "delete"
	if o.PropagationPolicy != nil {
		verb += " in the " + strings.ToLower(string(*o.PropagationPolicy)) + ":"
	}
	u, err := d.call(verb, name)
	if err != nil {
		return err
	}
	if o.Preconditions == nil || o.Preconditions.UID == nil {
		return errors.New("a deletion must say which object it means")
	}
	return d.member.client.Delete(ctx, u)
}

// A world is a control plane with one cluster, and its member.
type world struct {
	*Reconciler
	member  *fakeMember
	control client.Client
	writes  []string // to the control plane
	refuse  func(statusPatch map[string]any) error
	cached  *workv1alpha1.Work
	events  *fakeRecorder
	metrics *prometheus.Registry
}

func newWorld(t *testing.T, m *fakeMember, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1alpha1.AddToScheme(scheme), workv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{member: m, events: &fakeRecorder{}, metrics: prometheus.NewPedanticRegistry()}
	w.control = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&workv1alpha1.Work{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				w.writes = append(w.writes, "patch")
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes = append(w.writes, "patch "+sub)
				if w.refuse != nil {
					patch := map[string]any{}
					if data, err := p.Data(o); err != nil || json.Unmarshal(data, &patch) != nil {
						return errBoom
					}
					if err := w.refuse(patch); err != nil {
						return err
					}
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	resources, err := metrics.NewResources(w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	durations, err := newDurations(w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler = &Reconciler{
		client: w.control, live: w.control,
		members: func(context.Context, *clusterv1alpha1.Cluster) (Member, error) { return m, nil },
		mine:    Options{}.mine,
		unwatch: func(_, work string) { delete(m.watched, work) },
		record:  w.events, tellsTemplates: true,
		resources: resources, durations: durations,
		ledger: newLedger(), waits: newWaits(), repairs: newRepairs(), written: newWritten(),
		interpreter: interpreter.New(interpreter.Options{}),
	}
	return w
}

func (w *world) reconcile(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return reconcile.AsReconciler(w.control, w.Reconciler).Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}})
}

func (w *world) work(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	got := &workv1alpha1.Work{}
	err := w.control.Get(t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}, got)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// take returns the writes to the control plane since it was called last.
func (w *world) take() []string {
	writes := w.writes
	w.writes = nil
	return writes
}

type fakeRecorder struct{ got []string }

var _ events.EventRecorder = (*fakeRecorder)(nil)

func (r *fakeRecorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	on := "Template"
	if _, ok := regarding.(*workv1alpha1.Work); ok {
		on = "Work"
	}
	r.got = append(r.got, fmt.Sprintf("%s: %s %s: %s", on, kind, reason, fmt.Sprintf(note, args...)))
}

func (r *fakeRecorder) take() []string {
	got := r.got
	r.got = nil
	return got
}

func aCluster(change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", Finalizers: []string{"karmada.io/cluster-controller"}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func orphaning(c *clusterv1alpha1.Cluster) {
	c.Annotations = map[string]string{"cluster.karmadactl.io/cascade": "orphan"}
}

func notReady(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }
func pull(c *clusterv1alpha1.Cluster)     { c.Spec.SyncMode = clusterv1alpha1.Pull }
func leaving(c *clusterv1alpha1.Cluster) {
	c.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time}
}

func aWork(t *testing.T, manifests []*unstructured.Unstructured, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", Generation: 1, Finalizers: []string{"karmada.io/execution-controller"},
	}}
	for _, m := range manifests {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	for _, f := range change {
		f(w)
	}
	return w
}

func suspended(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr(true) }
func preserved(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = ptr(true) }
func deleted(w *workv1alpha1.Work)   { w.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time} }

func ptr[T any](v T) *T { return &v }

// obj makes an object from JSON.
func obj(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return u
}

func config(data string) *unstructured.Unstructured {
	return obj(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"key":"` + data + `"}}`)
}

// with returns a copy of an object that has a label or annotation more.
func with(u *unstructured.Unstructured, where, key, value string) *unstructured.Unstructured {
	u = u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, value, "metadata", where, key); err != nil {
		panic(err)
	}
	return u
}

// ours returns a copy of an object as it is on the member.
func ours(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = binding.Manifest(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}}, u)
	u.SetUID(types.UID("uid of " + u.GetName()))
	return u
}

func conditionsOf(w *workv1alpha1.Work) []string {
	var lines []string
	for _, c := range w.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(lines)
	return lines
}
