package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/names"
)

var errBoom = errors.New("boom")

// A world is a control plane in memory that notes every write.
type world struct {
	client    client.WithWatch
	live      client.Reader // unless nil, what is live differs from what is cached
	writes    []string
	before    func(verb string, o client.Object) error // may fail a write
	templates map[string]*unstructured.Unstructured
	failing   error // of templates
	events    []string
}

// An indexer gives a fake client the indices of the real one.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, value client.IndexerFunc) error {
	i.WithIndex(o, field, value)
	return nil
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		workv1alpha1.AddToScheme, workv1alpha2.AddToScheme, policyv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, corev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{templates: map[string]*unstructured.Unstructured{}}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{})
	if err := binding.Index(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			w.templates[u.GetNamespace()+"/"+u.GetName()] = u
			continue
		}
		builder.WithObjects(o)
	}
	wrote := func(verb string, o client.Object) error {
		w.writes = append(w.writes, fmt.Sprintf("%s %T %s/%s", verb, o, o.GetNamespace(), o.GetName()))
		if w.before != nil {
			return w.before(verb, o)
		}
		return nil
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := wrote("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := wrote("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := wrote("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := wrote("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	return w
}

// Get is that of Templates.
func (w *world) Get(_ context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	if w.failing != nil {
		return nil, w.failing
	}
	if u, ok := w.templates[ref.Namespace+"/"+ref.Name]; ok {
		return u, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name)
}

// Eventf is that of a recorder.
func (w *world) Eventf(on, _ runtime.Object, kind, reason, _, format string, args ...any) {
	name := ""
	switch on := on.(type) {
	case *corev1.ObjectReference:
		name = on.Kind + " " + on.Name
	case client.Object:
		kind := fmt.Sprintf("%T", on)
		name = kind[strings.LastIndex(kind, ".")+1:] + " " + on.GetName()
	}
	w.events = append(w.events, fmt.Sprintf("%s: %s %s: %s", name, kind, reason, fmt.Sprintf(format, args...)))
}

func reconcilerOf[B binding.Object](w *world) *Reconciler[B] {
	live := w.live
	if live == nil {
		live = w.client
	}
	return &Reconciler[B]{
		client: w.client, live: live, templates: w, interpreter: interpreter.New(interpreter.Options{}), injectState: true, record: w,
	}
}

// reconcile has a binding reconciled as it is in the control plane.
func (w *world) reconcile(t *testing.T, b binding.Object) (reconcile.Result, error) {
	t.Helper()
	w.writes, w.events = nil, nil
	now, _ := b.DeepCopyObject().(binding.Object)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	switch now := now.(type) {
	case *workv1alpha2.ResourceBinding:
		return reconcilerOf[*workv1alpha2.ResourceBinding](w).Reconcile(t.Context(), now)
	case *workv1alpha2.ClusterResourceBinding:
		return reconcilerOf[*workv1alpha2.ClusterResourceBinding](w).Reconcile(t.Context(), now)
	}
	t.Fatalf("%T is no binding", now)
	return reconcile.Result{}, nil
}

// works returns all Works by namespace and name.
func (w *world) works(t *testing.T) map[string]*workv1alpha1.Work {
	t.Helper()
	list := &workv1alpha1.WorkList{}
	if err := w.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		all[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (w *world) hasEvent(parts ...string) bool {
	return slices.ContainsFunc(w.events, func(e string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(e, part) })
	})
}

func manifestOf(t *testing.T, w *workv1alpha1.Work) *unstructured.Unstructured {
	t.Helper()
	if len(w.Spec.Workload.Manifests) != 1 {
		t.Fatalf("Work %s has %d manifests", w.Name, len(w.Spec.Workload.Manifests))
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func deployment(t *testing.T) *unstructured.Unstructured {
	return object(t, `{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"namespace":"default","name":"web","uid":"uid-web","generation":3,"labels":{"app":"web"}},
		"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}},
		"status":{"replicas":3}}`)
}

// bound returns a binding of a template, as bind makes it, changed.
func bound(template *unstructured.Unstructured, changes ...func(binding.Object)) binding.Object {
	b := binding.New(template.GetNamespace())
	scope := binding.ScopeOf(b)
	b.SetNamespace(template.GetNamespace())
	b.SetName(names.Binding(template.GetKind(), template.GetName()))
	b.SetUID(types.UID("uid-of-" + b.GetName()))
	b.SetGeneration(1)
	b.SetLabels(map[string]string{scope.IDLabel: "id-1"})
	b.SetFinalizers([]string{scope.Finalizer})
	b.BindingSpec().Resource = workv1alpha2.ObjectReference{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(), UID: template.GetUID(),
	}
	b.BindingSpec().Placement = &policyv1alpha1.Placement{}
	for _, change := range changes {
		change(b)
	}
	return b
}

// replicas makes a binding want replicas in all.
func replicas(n int32) func(binding.Object) {
	return func(b binding.Object) { b.BindingSpec().Replicas = n }
}

// to schedules a binding, "m1" or "m1=2".
func to(clusters ...string) func(binding.Object) {
	return func(b binding.Object) { b.BindingSpec().Clusters = targets(clusters...) }
}

func targets(clusters ...string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for _, c := range clusters {
		target := workv1alpha2.TargetCluster{}
		target.Name, _, _ = strings.Cut(c, "=")
		if _, n, ok := strings.Cut(c, "="); ok {
			_, _ = fmt.Sscan(n, &target.Replicas)
		}
		all = append(all, target)
	}
	return all
}

func divided(b binding.Object) {
	b.BindingSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
}

func evicted(cluster string, mode policyv1alpha1.PurgeMode) func(binding.Object) {
	return func(b binding.Object) {
		b.BindingSpec().GracefulEvictionTasks = append(b.BindingSpec().GracefulEvictionTasks,
			workv1alpha2.GracefulEvictionTask{FromCluster: cluster, PurgeMode: mode, Reason: "TaintUntolerated", Producer: "x"})
	}
}

func scheduled(status metav1.ConditionStatus, reason string, observed int64) func(binding.Object) {
	return func(b binding.Object) {
		b.BindingStatus().SchedulerObservedGeneration = observed
		b.BindingStatus().Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionScheduled, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}}
	}
}

// aWork returns a Work of a binding as it was made before.
func aWork(b binding.Object, cluster, name string, changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ExecutionNamespace(cluster), Name: name, UID: types.UID("uid-of-" + cluster + name),
		Labels: binding.WorkLabels(b), Annotations: binding.WorkAnnotations(b), Finalizers: []string{names.WorkFinalizer},
	}}
	for _, change := range changes {
		change(w)
	}
	return w
}

func deleting(w *workv1alpha1.Work) {
	w.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
}

func cluster(name string, labels map[string]string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func raw(s string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(s)} }
