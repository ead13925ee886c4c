package binding

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// configMap is a template as it is in the control plane.
func configMap() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": "default", "name": "c", "uid": "template-uid", "resourceVersion": "7", "generation": int64(3),
			"creationTimestamp": "2026-01-02T03:04:05Z", "finalizers": []any{"a"}, "labels": map[string]any{"app": "web"},
		},
		"data":   map[string]any{"k": "v"},
		"status": map[string]any{"phase": "Active"},
	}}
}

func wanted() *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-m1", Name: "c-1", Labels: map[string]string{"made-by": "test"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "default", UID: "owner"}},
		},
		Spec: workv1alpha1.WorkSpec{SuspendDispatching: ptr.To(true)},
	}
}

func TestManifest(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
		labels map[string]string
		also   map[string]string // annotations beyond those that are always there
		keys   string            // managed annotations
	}{
		"Plain": {
			"The marks by which the object is known on the member.", func(*workv1alpha1.Work) {},
			map[string]string{"app": "web", names.ManagedLabel: "true"}, nil,
			"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/name,work.karmada.io/namespace",
		},
		"Webhook": {
			"The permanent identity of the Work, once it has one.",
			func(w *workv1alpha1.Work) { w.Labels[names.WorkIDLabel] = "id" },
			map[string]string{"app": "web", names.ManagedLabel: "true", names.WorkIDLabel: "id"}, nil,
			"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/name,work.karmada.io/namespace",
		},
		"Conflict": {
			"What to do about an object of others.",
			func(w *workv1alpha1.Work) {
				w.Annotations = map[string]string{names.ConflictResolutionAnnotation: "overwrite"}
			},
			map[string]string{"app": "web", names.ManagedLabel: "true"}, map[string]string{names.ConflictResolutionAnnotation: "overwrite"},
			"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := wanted()
			tc.change(w)
			template := configMap()
			m := Manifest(w, template)
			if diff := cmp.Diff(configMap(), template); diff != "" {
				t.Errorf("the template was changed (-want +got):\n%s", diff)
			}
			annotations := map[string]string{
				names.WorkNamespaceAnnotation: "karmada-es-m1", names.WorkNameAnnotation: "c-1", names.TemplateUIDAnnotation: "template-uid",
				names.ManagedAnnotationsAnnotation: tc.keys, names.ManagedLabelsAnnotation: keys(tc.labels),
			}
			for k, v := range tc.also {
				annotations[k] = v
			}
			if diff := cmp.Diff(annotations, m.GetAnnotations()); diff != "" {
				t.Errorf("annotations: %s\n(-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.labels, m.GetLabels()); diff != "" {
				t.Errorf("labels: %s\n(-want +got):\n%s", tc.reason, diff)
			}
			m.SetLabels(nil)
			m.SetAnnotations(nil)
			rest := map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
				"metadata": map[string]any{"namespace": "default", "name": "c"},
			}
			if diff := cmp.Diff(rest, m.Object); diff != "" {
				t.Errorf("what a server fills in does not travel (-want +got):\n%s", diff)
			}
		})
	}
}

// A world is an API server that counts writes.
type world struct {
	client client.WithWatch
	writes int
}

func newWorld(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	w.client = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			w.writes++
			return c.Update(ctx, o, opts...)
		},
	})
	return w
}

func (w *world) work(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	now := &workv1alpha1.Work{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(wanted()), now); err != nil {
		t.Fatal(err)
	}
	return now
}

func TestEnsureWork(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work, *unstructured.Unstructured) // after the first time, to what is there
		want   func(*workv1alpha1.Work, *unstructured.Unstructured) // to what is asked for the second time
		writes int
		check  func(*workv1alpha1.Work) string
	}{
		"Same": {reason: "The same again writes nothing."},
		"Rewritten": {
			reason: "It does not matter how a server writes JSON down.",
			change: func(w *workv1alpha1.Work, _ *unstructured.Unstructured) {
				w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(w.Spec.Workload.Manifests[0].Raw), `"data":`, "\n  \"data\" : ", 1))
			},
		},
		"Others": {
			reason: "Labels, annotations, finalizers and owners of others stay, and are no reason to write.",
			change: func(w *workv1alpha1.Work, _ *unstructured.Unstructured) {
				w.Labels["theirs"] = "x"
				w.Annotations = map[string]string{"theirs": "x"}
				w.Finalizers = append([]string{"theirs/first"}, w.Finalizers...)
				w.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "s"}}, w.OwnerReferences...)
			},
			check: func(w *workv1alpha1.Work) string {
				if w.Labels["theirs"] != "x" || w.Labels["made-by"] != "test" || w.Annotations["theirs"] != "x" || len(w.Finalizers) != 2 || len(w.OwnerReferences) != 2 {
					return "something is lost"
				}
				return ""
			},
		},
		"Drift": {
			reason: "The spec is what the producer says.", writes: 1,
			change: func(w *workv1alpha1.Work, _ *unstructured.Unstructured) {
				w.Spec.SuspendDispatching = nil
				w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, w.Spec.Workload.Manifests[0])
			},
			check: func(w *workv1alpha1.Work) string {
				if !ptr.Deref(w.Spec.SuspendDispatching, false) || len(w.Spec.Workload.Manifests) != 1 {
					return "it was not mended"
				}
				return ""
			},
		},
		"NewData": {
			reason: "A change of the object travels.", writes: 1,
			want: func(_ *workv1alpha1.Work, o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "w"} },
			check: func(w *workv1alpha1.Work) string {
				if !strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), `"k":"w"`) {
					return "it did not"
				}
				return ""
			},
		},
		"OnlyVersion": {
			reason: "A change of what does not travel is none.",
			want: func(_ *workv1alpha1.Work, o *unstructured.Unstructured) {
				o.SetResourceVersion("8")
				o.SetGeneration(4)
			},
		},
		"Overrides": {
			reason: "Override policies that apply no longer are not named any longer.", writes: 1,
			change: func(w *workv1alpha1.Work, _ *unstructured.Unstructured) {
				w.Annotations = map[string]string{names.AppliedOverridesAnnotation: "[]", "theirs": "x"}
			},
			check: func(w *workv1alpha1.Work) string {
				if _, ok := w.Annotations[names.AppliedOverridesAnnotation]; ok || w.Annotations["theirs"] != "x" {
					return "they are, or something else is lost"
				}
				return ""
			},
		},
		"NoID": {
			reason: "A Work of before, without a permanent identity, is no reason to write.",
			change: func(w *workv1alpha1.Work, o *unstructured.Unstructured) {
				delete(w.Labels, names.WorkIDLabel)
				m := Manifest(w, configMap())
				w.Spec.Workload.Manifests[0].Raw, _ = m.MarshalJSON()
			},
		},
		"NewOwner": {
			reason: "An owner that was made anew replaces the one before.", writes: 1,
			want: func(w *workv1alpha1.Work, _ *unstructured.Unstructured) { w.OwnerReferences[0].UID = "anew" },
			check: func(w *workv1alpha1.Work) string {
				if len(w.OwnerReferences) != 1 || w.OwnerReferences[0].UID != "anew" {
					return "it has both"
				}
				return ""
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{})
			changed, err := EnsureWork(t.Context(), w.client, wanted(), configMap())
			if err != nil || !changed || w.writes != 1 {
				t.Fatalf("the first time: changed %v, %d writes, %v", changed, w.writes, err)
			}
			if now := w.work(t); len(now.Finalizers) != 1 || now.Finalizers[0] != names.WorkFinalizer {
				t.Errorf("finalizers %q", now.Finalizers)
			}
			if tc.change != nil {
				now := w.work(t)
				tc.change(now, nil)
				if err := w.client.Update(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			w.writes = 0
			want, object := wanted(), configMap()
			if tc.want != nil {
				tc.want(want, object)
			}
			changed, err = EnsureWork(t.Context(), w.client, want, object)
			if err != nil {
				t.Fatal(err)
			}
			if w.writes != tc.writes || changed != (tc.writes > 0) {
				t.Errorf("%d writes, want %d; changed %v\n%s", w.writes, tc.writes, changed, tc.reason)
			}
			if tc.check != nil {
				if problem := tc.check(w.work(t)); problem != "" {
					t.Errorf("%s\n%s", problem, tc.reason)
				}
			}
		})
	}
}

func TestEnsureWorkIdentity(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	if _, err := EnsureWork(t.Context(), w.client, wanted(), configMap()); err != nil {
		t.Fatal(err)
	}
	now := w.work(t)
	id := now.Labels[names.WorkIDLabel]
	if id == "" || !strings.Contains(string(now.Spec.Workload.Manifests[0].Raw), id) {
		t.Errorf("a Work and its manifest have a permanent identity from the start, so that no webhook need give them one; it is %q", id)
	}
}

func TestEnsureWorkRace(t *testing.T) {
	stale := errors.New("the cache was asked again")
	raced, asked := 0, 0
	w := newWorld(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if raced++; raced == 1 { // a cache that did not know
				if err := c.Create(ctx, o.DeepCopyObject().(client.Object), opts...); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
	})
	cached := interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if asked++; asked > 1 {
				return stale
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if changed, err := EnsureWork(t.Context(), cached, wanted(), configMap(), Live(w.client)); err != nil || changed {
		t.Errorf("a Work that somebody else has just made is the same Work: changed %v, %v", changed, err)
	}
}

func TestEnsureWorkOnlyIf(t *testing.T) {
	foreign := errors.New("not ours")
	w := newWorld(t, interceptor.Funcs{}, wanted())
	changed, err := EnsureWork(t.Context(), w.client, wanted(), configMap(), OnlyIf(func(*workv1alpha1.Work) error { return foreign }))
	if changed || w.writes != 0 || !errors.Is(err, foreign) {
		t.Errorf("a Work of others is left alone, and the caller can tell why: changed %v, %d writes, %v", changed, w.writes, err)
	}
}

func TestEnsureWorkErrors(t *testing.T) {
	boom := errors.New("boom")
	deleted := wanted()
	deleted.Finalizers, deleted.DeletionTimestamp = []string{names.WorkFinalizer}, ptr.To(metav1.Now())
	cases := map[string]struct {
		reason  string
		objects []client.Object
		fail    error
		is      func(error) bool
	}{
		"Deleted": {"A Work that goes is not brought back; its successor is made when it is gone.", []client.Object{deleted}, nil, func(err error) bool {
			return errors.Is(err, ErrWorkDeleted) && strings.Contains(err.Error(), "work karmada-es-m1/c-1 is being deleted")
		}},
		"NoNamespace": {"The caller can tell that the namespace is not there yet.", nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "karmada-es-m1"), apierrors.IsNotFound},
		"Refused":     {"Anything else.", nil, boom, func(err error) bool { return errors.Is(err, boom) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.fail }}, tc.objects...)
			changed, err := EnsureWork(t.Context(), w.client, wanted(), configMap())
			if err == nil || changed || !tc.is(err) {
				t.Errorf("changed %v, %v\n%s", changed, err, tc.reason)
			}
		})
	}
}
