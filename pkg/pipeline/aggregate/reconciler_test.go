package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/names"
)

var (
	errBoom     = errors.New("boom")
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// A world is a control plane in memory that notes every write.
type world struct {
	client  client.WithWatch
	dynamic *fakedynamic.FakeDynamicClient
	cached  *unstructured.Unstructured // the template, unless nil
	before  func() error               // may fail a write of the binding
	writes  []string
	events  []string
	now     time.Time
	pace    *pacer
	r       *Reconciler[*workv1alpha2.ResourceBinding]
	global  *Reconciler[*workv1alpha2.ClusterResourceBinding]
}

type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, value client.IndexerFunc) error {
	i.WithIndex(o, field, value)
	return nil
}

func template(status string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web","uid":"uid-web","generation":1},"spec":{"replicas":3},"status":` + status + `}`
	if err := json.Unmarshal([]byte(text), u); err != nil {
		panic(err)
	}
	return u
}

func newWorld(t *testing.T, live *unstructured.Unstructured, b binding.Object, works ...workv1alpha1.Work) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1alpha1.AddToScheme(scheme), workv1alpha1.AddToScheme(scheme), workv1alpha2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{now: time.Unix(1000, 0), cached: live}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).
		WithStatusSubresource(&workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{})
	if err := binding.Index(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	for i := range works {
		builder.WithObjects(&works[i])
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes = append(w.writes, "patch binding "+sub)
			if w.before != nil {
				if err := w.before(); err != nil {
					return err
				}
			}
			b, _ := o.(binding.Object)
			former := b.BindingStatus().AggregatedStatus
			err := c.SubResource(sub).Patch(ctx, o, p, opts...)
			copy(former, b.BindingStatus().AggregatedStatus) // a client reads the answer into the memory of what it was given
			return err
		},
	}).Build()
	var objects []runtime.Object
	if live != nil {
		objects = append(objects, live)
	}
	w.dynamic = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{deployments: "DeploymentList"}, objects...)
	w.pace = newPacer(func() time.Time { return w.now })
	i := interpreter.New(interpreter.Options{})
	w.r = &Reconciler[*workv1alpha2.ResourceBinding]{client: w.client, live: w.client, templates: w, interpreter: i, record: w, pace: w.pace}
	w.global = &Reconciler[*workv1alpha2.ClusterResourceBinding]{client: w.client, live: w.client, templates: w, interpreter: i, record: w, pace: w.pace}
	return w
}

// Get is that of Templates.
func (w *world) Get(context.Context, workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	if w.cached == nil {
		return nil, apierrors.NewNotFound(deployments.GroupResource(), "web")
	}
	return w.cached, nil
}

// Resource is that of Templates.
func (w *world) Resource(schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, bool, error) {
	return w.dynamic.Resource(deployments), true, nil
}

// Eventf is that of a recorder.
func (w *world) Eventf(on, _ runtime.Object, kind, reason, _, format string, args ...any) {
	where := "binding"
	if _, ok := on.(*corev1.ObjectReference); ok {
		where = "template"
	}
	w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", where, kind, reason, fmt.Sprintf(format, args...)))
}

// reconcile has the binding reconciled as it is, and returns all that was written.
func (w *world) reconcile(t *testing.T, b binding.Object) (reconcile.Result, error) {
	t.Helper()
	w.writes, w.events = nil, nil
	w.dynamic.ClearActions()
	now, _ := b.DeepCopyObject().(binding.Object)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	var (
		result reconcile.Result
		err    error
	)
	switch now := now.(type) {
	case *workv1alpha2.ResourceBinding:
		result, err = w.r.Reconcile(t.Context(), now)
	case *workv1alpha2.ClusterResourceBinding:
		result, err = w.global.Reconcile(t.Context(), now)
	}
	for _, a := range w.dynamic.Actions() {
		if a.GetVerb() != "get" {
			w.writes = append(w.writes, a.GetVerb()+" template "+a.GetSubresource())
		}
	}
	return result, err
}

func (w *world) status(t *testing.T, b binding.Object) *workv1alpha2.ResourceBindingStatus {
	t.Helper()
	now, _ := b.DeepCopyObject().(binding.Object)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	return now.BindingStatus()
}

// templateReplicas returns status.replicas of the template as it is live.
func (w *world) templateReplicas(t *testing.T) int64 {
	t.Helper()
	u, err := w.dynamic.Resource(deployments).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	return n
}

// update changes a Work as its cluster does.
func (w *world) update(t *testing.T, cluster string, change func(*workv1alpha1.Work)) {
	t.Helper()
	work := &workv1alpha1.Work{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: names.ExecutionNamespace(cluster), Name: "web-1"}, work); err != nil {
		t.Fatal(err)
	}
	change(work)
	if err := w.client.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

func aBinding(clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-deployment", UID: "uid-rb", Labels: map[string]string{names.ResourceBindingIDLabel: "id-1"},
	}}
	b.Spec.Resource = ref
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: "Success", LastTransitionTime: metav1.Unix(1, 0)}}
	return b
}

func ok(replicas int) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		applied(metav1.ConditionTrue, "")(w)
		w.Status.ManifestStatuses = nil
		says("v1", fmt.Sprintf(`{"replicas":%d}`, replicas), "Healthy")(w)
	}
}

func TestReconcile(t *testing.T) {
	b := aBinding("m1", "m2")
	w := newWorld(t, template(`{}`), b, aWork("m1", ok(1)), aWork("m2", ok(2)))
	if result, err := w.reconcile(t, b); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("the first is written at once: %+v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"patch binding status", "update template status"}, w.writes); diff != "" {
		t.Errorf("one write each (-want +got):\n%s", diff)
	}
	status := w.status(t, b)
	if len(status.AggregatedStatus) != 2 || !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionFullyApplied) ||
		!meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionScheduled) {
		t.Errorf("the binding says what its Works do, and what the scheduler did: %+v", status)
	}
	if n := w.templateReplicas(t); n != 3 {
		t.Errorf("the template has %d replicas", n)
	}
	for _, e := range []string{"binding Normal AggregateStatusSucceed", "template Normal AggregateStatusSucceed"} {
		if !slices.ContainsFunc(w.events, func(s string) bool { return strings.HasPrefix(s, e) }) {
			t.Errorf("no event %q in %q", e, w.events)
		}
	}

	if _, err := w.reconcile(t, b); err != nil || len(w.writes)+len(w.events) > 0 {
		t.Errorf("nothing new is not written: %q, %q, %v", w.writes, w.events, err)
	}

	w.update(t, "m1", func(work *workv1alpha1.Work) {
		work.Status.ManifestStatuses[0].Status.Raw = []byte(`{ "replicas" : 1 }`)
	})
	if _, err := w.reconcile(t, b); err != nil || len(w.writes) > 0 {
		t.Errorf("the same, written otherwise, is nothing new: %q, %v", w.writes, err)
	}

	w.update(t, "m1", ok(5))
	if result, err := w.reconcile(t, b); err != nil || result.RequeueAfter != window || len(w.writes) > 0 {
		t.Errorf("the next waits a while: %+v, %q, %v", result, w.writes, err)
	}
	w.now = w.now.Add(window)
	w.update(t, "m2", ok(6))
	if result, err := w.reconcile(t, b); err != nil || result.RequeueAfter != 0 || len(w.writes) != 2 {
		t.Errorf("then one write tells of all: %+v, %q, %v", result, w.writes, err)
	}
	if n := w.templateReplicas(t); n != 11 {
		t.Errorf("the template has %d replicas", n)
	}
}

// What an agent could not apply is told on the template from here: it has no rights
// there. Who applies to clusters in push mode tells it itself.
func TestPulledFails(t *testing.T) {
	b := aBinding("m1", "m2")
	refused := func(why string) func(*workv1alpha1.Work) { return applied(metav1.ConditionFalse, why) }
	w := newWorld(t, template(`{}`), b, aWork("m1", refused("it is there")), aWork("m2", refused("it is there")))
	for name, mode := range map[string]clusterv1alpha1.ClusterSyncMode{"m1": clusterv1alpha1.Push, "m2": clusterv1alpha1.Pull} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
		if err := w.client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	failures := func() []string {
		w.now = w.now.Add(time.Minute)
		if _, err := w.reconcile(t, b); err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(w.events, func(e string) bool { return !strings.HasPrefix(e, "template Warning") })
	}
	if diff := cmp.Diff([]string{"template Warning SyncFailed: it is there"}, failures()); diff != "" {
		t.Errorf("once, for the one that pulls (-want +got):\n%s", diff)
	}
	w.update(t, "m1", ok(1))
	if again := failures(); len(again) > 0 {
		t.Errorf("what was told is not told again: %q", again)
	}
	w.update(t, "m2", refused("it is something else"))
	if diff := cmp.Diff([]string{"template Warning SyncFailed: it is something else"}, failures()); diff != "" {
		t.Errorf("another reason is (-want +got):\n%s", diff)
	}
}

func TestRestart(t *testing.T) {
	items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true, Health: "Healthy", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}}
	cases := map[string]struct {
		reason string
		cached string // status of the template as it is known
		live   string
		writes []string
	}{
		"Same":     {"All is as it was.", `{"replicas":1}`, `{"replicas":1}`, nil},
		"Template": {"The template was not told before the end.", `{}`, `{}`, []string{"update template status"}},
		"Lagging":  {"It was told, which is not known yet.", `{}`, `{"replicas":1}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := aBinding("m1")
			b.Status.AggregatedStatus = items
			meta.SetStatusCondition(&b.Status.Conditions, fullyApplied([]string{"m1"}, items))
			w := newWorld(t, template(tc.live), b, aWork("m1", ok(1)))
			w.cached = template(tc.cached)
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.writes, w.writes); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	b := aBinding("m1", "m2")
	w := newWorld(t, template(`{}`), b, aWork("m1", ok(1)), aWork("m2"))
	if result, err := w.reconcile(t, b); err != nil || result.RequeueAfter != window || len(w.writes) > 0 {
		t.Errorf("a cluster is about to say something: %+v, %q, %v", result, w.writes, err)
	}
	w.now = w.now.Add(window)
	if _, err := w.reconcile(t, b); err != nil || len(w.writes) != 2 {
		t.Errorf("it did not in time: %q, %v", w.writes, err)
	}
	if meta.IsStatusConditionTrue(w.status(t, b).Conditions, workv1alpha2.ConditionFullyApplied) {
		t.Error("so it is not fully applied")
	}
}

func TestNothingToDo(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha2.ResourceBinding)
	}{
		"Deleted": {"A binding that goes needs no status.", func(b *workv1alpha2.ResourceBinding) {
			b.DeletionTimestamp, b.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{"x"}
		}},
		"NoIdentity": {"One that has no identity yet has no Works.", func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := aBinding("m1")
			tc.change(b)
			w := newWorld(t, template(`{}`), b, aWork("m1", ok(1)))
			if _, err := w.reconcile(t, b); err != nil || len(w.writes)+len(w.events) > 0 {
				t.Errorf("%q, %v\n%s", w.writes, err, tc.reason)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template *unstructured.Unstructured
		change   func(*workv1alpha2.ResourceBinding)
		react    func(*world)
		writes   int // of the template
		err      error
	}{
		"Gone":    {reason: "A template that is gone needs no status.", template: nil},
		"Another": {reason: "Another template of that name is not the one.", template: template(`{}`), change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "former" }},
		"NoStatus": {
			reason: "A kind may have no status to write.", template: template(`{}`), writes: 1,
			react: func(w *world) {
				w.dynamic.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewNotFound(deployments.GroupResource(), "web")
				})
			},
		},
		"Conflict": {
			reason: "Somebody has written the template meanwhile.", template: template(`{}`), writes: 2,
			react: func(w *world) {
				first := true
				w.dynamic.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					if !first {
						return false, nil, nil
					}
					first = false
					return true, nil, apierrors.NewConflict(deployments.GroupResource(), "web", errBoom)
				})
			},
		},
		"Refused": {
			reason: "Anything else is told, and tried again.", template: template(`{}`), writes: 1, err: errBoom,
			react: func(w *world) {
				w.dynamic.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errBoom })
			},
		},
		"Unsupported": {
			reason: "A kind may have no status to speak of.", template: template(`{}`),
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Resource.Kind, b.Spec.Resource.APIVersion = "ConfigMap", "v1"
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := aBinding("m1")
			if tc.change != nil {
				tc.change(b)
			}
			w := newWorld(t, tc.template, b, aWork("m1", ok(1)))
			if tc.react != nil {
				tc.react(w)
			}
			if _, err := w.reconcile(t, b); !errors.Is(err, tc.err) {
				t.Errorf("%v\n%s", err, tc.reason)
			}
			if got := len(w.writes) - 1; got != tc.writes || w.writes[0] != "patch binding status" {
				t.Errorf("%q, want %d of the template\n%s", w.writes, tc.writes, tc.reason)
			}
			failed := slices.ContainsFunc(w.events, func(s string) bool { return strings.HasPrefix(s, "template Warning AggregateStatusFailed") })
			if failed != (tc.err != nil) {
				t.Errorf("%q\n%s", w.events, tc.reason)
			}
		})
	}
}

func TestBehind(t *testing.T) {
	b := aBinding("m1")
	w := newWorld(t, template(`{}`), b, aWork("m1", ok(1)))
	w.cached = template(`{"replicas":1}`) // of long ago
	fail := true
	w.dynamic.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		if fail {
			return true, nil, errBoom
		}
		return false, nil, nil
	})
	if _, err := w.reconcile(t, b); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	fail = false
	if _, err := w.reconcile(t, b); err != nil || w.templateReplicas(t) != 1 {
		t.Errorf("a template that could not be told is told, whatever is known of it: %q, %v", w.writes, err)
	}
}

func TestWriteBinding(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(*testing.T, *world) func() error
		writes int
		err    error
	}{
		"Conflict": {
			reason: "What the scheduler has written meanwhile stays.", writes: 2,
			before: func(t *testing.T, w *world) func() error {
				first := true
				return func() error {
					if !first {
						return nil
					}
					first = false
					now := &workv1alpha2.ResourceBinding{}
					key := client.ObjectKey{Namespace: "default", Name: "web-deployment"}
					if err := w.client.Get(t.Context(), key, now); err != nil {
						return err
					}
					meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Reason: "NoClusterFit"})
					return w.client.Status().Update(t.Context(), now)
				}
			},
		},
		"Gone": {
			reason: "A binding that is gone needs no status.", writes: 1,
			before: func(*testing.T, *world) func() error {
				return func() error { return apierrors.NewNotFound(schema.GroupResource{}, "x") }
			},
		},
		"Refused": {
			reason: "Anything else is told, and tried again.", writes: 1, err: errBoom,
			before: func(*testing.T, *world) func() error { return func() error { return errBoom } },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := aBinding("m1")
			w := newWorld(t, nil, b, aWork("m1", ok(1)))
			w.before = tc.before(t, w)
			if _, err := w.reconcile(t, b); !errors.Is(err, tc.err) || len(w.writes) != tc.writes {
				t.Errorf("%v, %q\n%s", err, w.writes, tc.reason)
			}
			status := w.status(t, b)
			if name == "Conflict" && (!meta.IsStatusConditionFalse(status.Conditions, workv1alpha2.ConditionScheduled) ||
				!meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionFullyApplied) || len(status.AggregatedStatus) != 1) {
				t.Errorf("%+v\n%s", status, tc.reason)
			}
			if failed := len(w.events) == 1 && strings.HasPrefix(w.events[0], "binding Warning AggregateStatusFailed"); failed != (tc.err != nil) {
				t.Errorf("%q\n%s", w.events, tc.reason)
			}
		})
	}
}

func TestClusterScope(t *testing.T) {
	b := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "view-clusterrole", Labels: map[string]string{names.ClusterResourceBindingIDLabel: "id-2"}}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	w := newWorld(t, nil, b, aWork("m1", applied(metav1.ConditionTrue, ""), func(w *workv1alpha1.Work) {
		w.Labels = map[string]string{names.ClusterResourceBindingIDLabel: "id-2"}
	}))
	if _, err := w.reconcile(t, b); err != nil || len(w.writes) != 1 {
		t.Fatalf("%q, %v", w.writes, err)
	}
	if !meta.IsStatusConditionTrue(w.status(t, b).Conditions, workv1alpha2.ConditionFullyApplied) {
		t.Error("both scopes are treated alike")
	}
}

func TestIncompleteOptions(t *testing.T) {
	if err := Setup(nil, Options{}); err == nil {
		t.Error("what is missing is told at start, not by a crash")
	}
}

func TestBindingChanged(t *testing.T) {
	scheduled := func(clusters ...string) *workv1alpha2.ResourceBinding {
		b := aBinding(clusters...)
		b.Status.LastScheduledTime = ptr.To(metav1.Unix(1, 0))
		return b
	}
	edited := scheduled("m1")
	edited.Spec.Resource.ResourceVersion = "8"
	unscheduled := aBinding("m1")
	unscheduled.Spec.Resource.ResourceVersion = "8"
	own := scheduled("m1")
	own.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}}
	cases := map[string]struct {
		reason string
		after  *workv1alpha2.ResourceBinding
		want   bool
	}{
		"Template":    {"Its status has to be about the new one.", edited, true},
		"Unscheduled": {"What has not been scheduled is nowhere.", unscheduled, false},
		"Moved":       {"Other clusters are expected to have it.", scheduled("m2"), true},
		"Own":         {"What was written here is nothing new.", own, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bindingChanged().Update(event.UpdateEvent{ObjectOld: scheduled("m1"), ObjectNew: tc.after}); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
	if !bindingChanged().Create(event.CreateEvent{Object: scheduled("m1")}) || bindingChanged().Create(event.CreateEvent{Object: aBinding()}) {
		t.Error("after a start those that are scheduled are looked at")
	}
}

func TestStatusChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"Status":  {"The cluster says something new.", ok(2), true},
		"Deleted": {"It says nothing any more.", deleted, true},
		"LetGo":   {"It is not this binding's any more.", func(w *workv1alpha1.Work) { w.Labels, w.Annotations = nil, nil }, true},
		"Spec":    {"That is for the cluster.", func(w *workv1alpha1.Work) { w.Generation++ }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := aWork("m1", ok(1)), aWork("m1", ok(1), tc.change)
			if got := statusChanged().Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: &after}); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
	fresh, told := aWork("m1"), aWork("m1", ok(1))
	if statusChanged().Create(event.CreateEvent{Object: &fresh}) || !statusChanged().Create(event.CreateEvent{Object: &told}) || !statusChanged().Delete(event.DeleteEvent{Object: &told}) {
		t.Error("a new Work says nothing; one that was there at the start, or is gone, does")
	}
	if got := bindingOf(true)(t.Context(), &told); len(got) != 1 || got[0].String() != "default/web-deployment" || len(bindingOf(false)(t.Context(), &told)) > 0 {
		t.Errorf("a Work belongs to the binding that its annotations name: %v", got)
	}
}
