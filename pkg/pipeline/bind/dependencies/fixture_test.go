package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/template"
)

var (
	errBoom    = errors.New("boom")
	configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	role       = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
)

// An indexes gives a fake client the indices that a cache would have.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

// A world is a control plane with objects and bindings.
type world struct {
	*Reconciler
	*objects
	api     client.WithWatch
	funcs   interceptor.Funcs // in front of the API, when they are set
	writes  []string
	events  *recorder
	refs    map[string][]reference // by the name of the template
	failure error                  // of the interpreter
	without bool                   // the interpreter knows nothing of dependencies
}

func newWorld(t *testing.T, bindings ...*workv1alpha2.ResourceBinding) *world {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range bindings {
		b.WithObjects(o.DeepCopy())
	}
	if err := errors.Join(binding.Index(t.Context(), indexes{b}), index(t.Context(), indexes{b})); err != nil {
		t.Fatal(err)
	}
	w := &world{objects: &objects{}, api: b.Build(), events: &recorder{}, refs: map[string][]reference{}}
	counting := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.funcs.Get != nil {
				return w.funcs.Get(ctx, c, key, o, opts...)
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.funcs.List != nil {
				return w.funcs.List(ctx, c, list, opts...)
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes = append(w.writes, "create "+o.GetName())
			if w.funcs.Create != nil {
				return w.funcs.Create(ctx, c, o, opts...)
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes = append(w.writes, "patch "+o.GetName())
			if w.funcs.Patch != nil {
				return w.funcs.Patch(ctx, c, o, p, opts...)
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errors.New("an update loses what others have written")
		},
	})
	w.Reconciler = &Reconciler{
		client: counting, live: w.api, templates: w.objects, interpreter: w, record: w.events, ledger: newLedger(),
		exempt: func(gvk schema.GroupVersionKind) bool { return gvk.Kind == "Lease" },
	}
	return w
}

func (w *world) Supports(_ schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return op == configv1alpha1.InterpreterOperationInterpretDependency && !w.without
}

func (w *world) Dependencies(_ context.Context, o *unstructured.Unstructured) ([]reference, error) {
	return w.refs[o.GetName()], w.failure
}

// reconcile works on the binding of a Deployment, or whatever binding has the name.
func (w *world) reconcile(t *testing.T, name string) error {
	t.Helper()
	result, err := reconcile.AsReconciler(w.client, w.Reconciler).Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	if result != (reconcile.Result{}) {
		t.Errorf("result %+v", result)
	}
	return err
}

func (w *world) get(t *testing.T, name string) *workv1alpha2.ResourceBinding {
	t.Helper()
	rb := &workv1alpha2.ResourceBinding{}
	err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, rb)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return rb
}

// change changes a binding as somebody else would.
func (w *world) change(t *testing.T, name string, change func(*workv1alpha2.ResourceBinding)) {
	t.Helper()
	rb := w.get(t, name)
	change(rb)
	if err := w.api.Update(t.Context(), rb); err != nil {
		t.Fatal(err)
	}
}

// take returns the writes since it was called last.
func (w *world) take() []string {
	writes := w.writes
	w.writes = nil
	return writes
}

// attached tells of all bindings that something requires or did, one line each.
func (w *world) attached(t *testing.T) []string {
	t.Helper()
	list := &workv1alpha2.ResourceBindingList{}
	if err := w.api.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range list.Items {
		a := &list.Items[i]
		if a.Spec.Resource.Kind == "Deployment" {
			continue
		}
		var by []string
		for _, s := range a.Spec.RequiredBy {
			text := s.Name + "="
			for _, c := range s.Clusters {
				text += fmt.Sprintf("%s:%d ", c.Name, c.Replicas)
			}
			by = append(by, strings.TrimSpace(text))
		}
		for k, v := range a.Labels {
			if strings.HasPrefix(k, names.DependedByLabelPrefix) {
				by = append(by, "label "+v)
			}
		}
		slices.Sort(by)
		line := fmt.Sprintf("%s of %s@%s by %s", a.Name, a.Spec.Resource.UID, a.Spec.Resource.ResourceVersion, strings.Join(by, ", "))
		if a.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			line += " overwrite"
		}
		if ptr.Deref(a.Spec.PreserveResourcesOnDeletion, false) {
			line += " preserve"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Objects are the objects of the control plane.
type objects struct {
	all      []*unstructured.Unstructured
	followed []string
	unserved string // a kind that is not served
	fail     func(verb, kind string) error
}

func (o *objects) failure(verb, kind string) error {
	if kind == o.unserved {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}
	}
	if o.fail != nil {
		return o.fail(verb, kind)
	}
	return nil
}

func (o *objects) Follow(gvk schema.GroupVersionKind) { o.followed = append(o.followed, gvk.Kind) }

func (o *objects) Get(_ context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	if err := o.failure("get", ref.Kind); err != nil {
		return nil, err
	}
	for _, u := range o.all {
		if u.GetKind() == ref.Kind && u.GetNamespace() == ref.Namespace && u.GetName() == ref.Name {
			return u, nil
		}
	}
	return nil, fmt.Errorf("get: %w", apierrors.NewNotFound(schema.GroupResource{Resource: ref.Kind}, ref.Name))
}

func (o *objects) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, s labels.Selector) ([]*unstructured.Unstructured, error) {
	if err := o.failure("list", gvk.Kind); err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, u := range o.all {
		if u.GetKind() == gvk.Kind && u.GetNamespace() == namespace && s.Matches(labels.Set(u.GetLabels())) {
			found = append(found, u)
		}
	}
	return found, nil
}

func (o *objects) Resource(gvk schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, bool, error) {
	return nil, gvk.Kind != role.Kind, o.failure("discover", gvk.Kind)
}

func (o *objects) Subscribe(func(template.Event)) func() { return func() {} }

func (o *objects) remove(kind, name string) {
	o.all = slices.DeleteFunc(o.all, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
}

type recorder struct{ got []string }

var _ events.EventRecorder = (*recorder)(nil)

func (r *recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	on := cmp.Or(regarding.GetObjectKind().GroupVersionKind().Kind, "ResourceBinding")
	r.got = append(r.got, fmt.Sprintf("%s: %s %s %s", on, kind, reason, fmt.Sprintf(note, args...)))
}

func (r *recorder) take() []string {
	got := r.got
	r.got = nil
	return got
}

// thing makes an object; its UID is its kind and name.
func thing(gvk schema.GroupVersionKind, name, version string, set ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	u.SetNamespace("default")
	u.SetUID(types.UID(strings.ToLower(gvk.Kind) + "-" + name))
	u.SetResourceVersion(version)
	if len(set) > 0 {
		all := map[string]string{}
		for _, pair := range set {
			k, v, _ := strings.Cut(pair, "=")
			all[k] = v
		}
		u.SetLabels(all)
	}
	return u
}

// independent makes the binding of the Deployment of a name, which goes to clusters.
func independent(name string, clusters string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	rb := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name + "-deployment", Generation: 1,
			Labels: map[string]string{names.ResourceBindingIDLabel: "id-" + name},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:      referenceTo(thing(deployment, name, "1")),
			PropagateDeps: true, Placement: &policyv1alpha1.Placement{}, Clusters: targets(clusters),
		},
	}
	for _, f := range change {
		f(rb)
	}
	return rb
}

// targets reads "m1:2 m2".
func targets(text string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for _, field := range strings.Fields(text) {
		c := workv1alpha2.TargetCluster{}
		var replicas string
		c.Name, replicas, _ = strings.Cut(field, ":")
		_, _ = fmt.Sscan(replicas, &c.Replicas)
		all = append(all, c)
	}
	return all
}

func overwrite(rb *workv1alpha2.ResourceBinding) {
	rb.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
}
func preserve(rb *workv1alpha2.ResourceBinding) {
	rb.Spec.PreserveResourcesOnDeletion = ptr.To(true)
}
func nothingFits(rb *workv1alpha2.ResourceBinding) {
	rb.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.ReasonNoClusterFit}}
}
func deleting(rb *workv1alpha2.ResourceBinding) {
	rb.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	if len(rb.Finalizers) == 0 {
		rb.Finalizers = []string{names.ResourceBindingFinalizer}
	}
}

func byName(kind schema.GroupVersionKind, name string) reference {
	return reference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: "default", Name: name}
}

func byLabel(kind schema.GroupVersionKind, key, value string) reference {
	return reference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: "default",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
	}
}
