package observe

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
)

var (
	errBoom = errors.New("boom")

	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// A fakeMember knows objects, by resource and key.
type fakeMember struct {
	objects map[string]*unstructured.Unstructured
	watched map[string][]schema.GroupVersionResource
	unknown bool // which kinds there are
	err     error
}

func (m *fakeMember) Watch(work string, kinds ...schema.GroupVersionResource) error {
	m.watched[work] = kinds
	return m.err
}

func (m *fakeMember) Cached(gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, bool) {
	obj := m.objects[gvr.Resource+" "+namespace+"/"+name]
	return obj, obj != nil
}

func (m *fakeMember) Lookup(gvk schema.GroupVersionKind) (*meta.RESTMapping, bool) {
	if m.unknown || gvk.Kind == "Thing" {
		return nil, false
	}
	scope := meta.RESTScopeNamespace
	if gvk.Kind == "Namespace" {
		scope = meta.RESTScopeRoot
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: plural, GroupVersionKind: gvk, Scope: scope}, true
}

// put makes an object be seen, as it comes by Work w.
func (m *fakeMember) put(objects ...*unstructured.Unstructured) {
	for _, o := range objects {
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		m.objects[plural.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = o
	}
}

// A fakeInterpreter is the native one, unless it fails.
type fakeInterpreter struct {
	Interpreter
	status, health error
}

func (i *fakeInterpreter) Status(ctx context.Context, obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	if i.status != nil {
		return nil, i.status
	}
	return i.Interpreter.Status(ctx, obj)
}

func (i *fakeInterpreter) Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return i.Interpreter.Supports(gvk, op)
}

func (i *fakeInterpreter) Healthy(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	if i.health != nil {
		return false, i.health
	}
	return i.Interpreter.Healthy(ctx, obj)
}

// A world is a control plane with one cluster, and its member.
type world struct {
	*Reconciler
	control     client.Client
	member      *fakeMember
	interpreter *fakeInterpreter
	now         time.Time
	patches     []string
	events      []string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1alpha1.AddToScheme(scheme), workv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{
		now:         time.Unix(1000, 0),
		member:      &fakeMember{objects: map[string]*unstructured.Unstructured{}, watched: map[string][]schema.GroupVersionResource{}},
		interpreter: &fakeInterpreter{Interpreter: interpreter.New(interpreter.Options{})},
	}
	w.control = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&workv1alpha1.Work{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				data, err := p.Data(o)
				if err != nil {
					return err
				}
				w.patches = append(w.patches, string(data))
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	w.Reconciler = &Reconciler{
		client:      w.control,
		members:     func(context.Context, *clusterv1alpha1.Cluster) (Member, error) { return w.member, nil },
		unwatch:     func(_, work string) { delete(w.member.watched, work) },
		mine:        Options{}.mine,
		interpreter: w.interpreter,
		record:      w,
		windows:     newWindows(),
		failures:    newFailures(),
	}
	w.windows.now = func() time.Time { return w.now }
	return w
}

var _ events.EventRecorder = (*world)(nil)

func (w *world) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	w.events = append(w.events, fmt.Sprintf("%s %s: %s", kind, reason, fmt.Sprintf(note, args...)))
}

func (w *world) reconcile(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return reconcile.AsReconciler(w.control, w.Reconciler).Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}})
}

func (w *world) work(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	got := &workv1alpha1.Work{}
	if err := w.control.Get(t.Context(), types.NamespacedName{Namespace: "karmada-es-m1", Name: "w"}, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func (w *world) take() (patches, events []string) {
	patches, events = w.patches, w.events
	w.patches, w.events = nil, nil
	return patches, events
}

func aCluster(change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		Status:     clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func notReady(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown }
func pull(c *clusterv1alpha1.Cluster)     { c.Spec.SyncMode = clusterv1alpha1.Pull }

func aWork(t *testing.T, manifests []*unstructured.Unstructured, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Generation: 1}}
	for _, m := range manifests {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	applied(1)(w)
	for _, f := range change {
		f(w)
	}
	return w
}

func applied(generation int64) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: "Applied", Status: metav1.ConditionTrue, Reason: "AppliedSuccessful", ObservedGeneration: generation,
			LastTransitionTime: metav1.Unix(1, 0),
		})
	}
}

func notApplied(w *workv1alpha1.Work) { w.Status.Conditions = nil }

func deleted(w *workv1alpha1.Work) {
	w.Finalizers = []string{"karmada.io/execution-controller"}
	w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func told(statuses ...string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		for _, s := range statuses {
			var status workv1alpha1.ManifestStatus
			if err := json.Unmarshal([]byte(s), &status); err != nil {
				panic(err)
			}
			w.Status.ManifestStatuses = append(w.Status.ManifestStatuses, status)
		}
	}
}

func obj(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return u
}

func config(name string) *unstructured.Unstructured {
	return obj(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`)
}

func deployment(generation int64, status string) *unstructured.Unstructured {
	u := obj(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"d"},"spec":{"replicas":2}}`)
	if status != "" {
		u.Object["status"] = obj(`{"apiVersion":"v1","kind":"X","status":` + status + `}`).Object["status"]
	}
	u = ours(u, status)
	u.SetGeneration(generation)
	return u
}

// ours returns an object as it is on the member.
func ours(u *unstructured.Unstructured, status string) *unstructured.Unstructured {
	u = binding.Manifest(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}}, u)
	if status != "" {
		u.Object["status"] = obj(`{"apiVersion":"v1","kind":"X","status":` + status + `}`).Object["status"]
	}
	return u
}

const (
	configID     = `"identifier":{"ordinal":0,"version":"v1","kind":"ConfigMap","namespace":"default","name":"a"}`
	secondID     = `"identifier":{"ordinal":1,"version":"v1","kind":"ConfigMap","namespace":"default","name":"b"}`
	deploymentID = `"identifier":{"ordinal":0,"group":"apps","version":"v1","kind":"Deployment","namespace":"default","name":"d"}`
)

// ready is the status of a Deployment that is.
const ready = `{"observedGeneration":1,"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,"conditions":[{"type":"Available","status":"True"}]}`

func TestReconcile(t *testing.T) {
	type objects = []*unstructured.Unstructured
	readyIs := `"status":{"availableReplicas":2,"generation":1,"observedGeneration":1,"readyReplicas":2,"replicas":2,"updatedReplicas":2}`
	thing := obj(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"default","name":"a"}}`)
	elsewhere := ours(config("a"), "")
	elsewhere.SetAnnotations(map[string]string{"work.karmada.io/namespace": "karmada-es-m2", "work.karmada.io/name": "w"})
	cases := map[string]struct {
		reason         string
		cluster        *clusterv1alpha1.Cluster // nil: none
		work           *workv1alpha1.Work
		there          objects
		unknown        bool
		status, health error
		want           []string // manifestStatuses; nil: nothing is written
		events         []string
		watched        []schema.GroupVersionResource
		waits          bool
		err            error
	}{
		"First": {
			reason:  "What has no status is there, at least; nobody says that it is not well.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}), there: objects{ours(config("a"), "")},
			want: []string{`{` + configID + `,"health":"Healthy"}`}, events: []string{"Normal InterpretHealthSucceed: ConfigMap default/a is now Healthy."},
			watched: []schema.GroupVersionResource{configMaps},
		},
		"Ready": {
			reason:  "The interpreter says what of a status is kept, and what it means.",
			cluster: aCluster(), work: aWork(t, objects{deployment(0, "")}), there: objects{deployment(1, ready)},
			want: []string{`{` + deploymentID + `,` + readyIs + `,"health":"Healthy"}`},
			events: []string{
				"Normal ReflectStatusSucceed: The status of Deployment default/d was reflected.",
				"Normal InterpretHealthSucceed: Deployment default/d is now Healthy.",
			},
			watched: []schema.GroupVersionResource{deployments},
		},
		"Same": {
			reason:  "Nothing new is not written, whatever the order of fields and who wrote it.",
			cluster: aCluster(), work: aWork(t, objects{deployment(0, "")}, told(`{"identifier":{"ordinal":0,"group":"apps","version":"v1","kind":"Deployment","namespace":"default","name":"d","resource":"deployments"},`+
				`"status":{"updatedReplicas":2,"replicas":2, "readyReplicas":2,"observedGeneration":1,"generation":1,"availableReplicas":2},"health":"Healthy"}`)),
			there: objects{deployment(1, ready)}, watched: []schema.GroupVersionResource{deployments},
		},
		"HealthChanged": {
			reason:  "Health is news of its own.",
			cluster: aCluster(), work: aWork(t, objects{deployment(0, "")}, told(`{`+deploymentID+`,`+readyIs+`,"health":"Unhealthy"}`)), there: objects{deployment(1, ready)},
			want: []string{`{` + deploymentID + `,` + readyIs + `,"health":"Healthy"}`}, events: []string{"Normal InterpretHealthSucceed: Deployment default/d is now Healthy."},
			watched: []schema.GroupVersionResource{deployments},
		},
		"Nulls": {
			reason:  "A patch cannot write a null; it must not be missed the next time.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}), there: objects{ours(config("a"), `{"a":null,"b":{"c":null,"d":1}}`)},
			want: []string{`{` + configID + `,"status":{"b":{"d":1}},"health":"Healthy"}`},
			events: []string{
				"Normal ReflectStatusSucceed: The status of ConfigMap default/a was reflected.", "Normal InterpretHealthSucceed: ConfigMap default/a is now Healthy.",
			},
			watched: []schema.GroupVersionResource{configMaps},
		},
		"Absent": {
			reason:  "What is not there, or not known yet, says nothing: what was told stays.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}, told(`{`+configID+`,"health":"Healthy"}`)), watched: []schema.GroupVersionResource{configMaps},
		},
		"Several": {
			reason:  "Each manifest has a status of its own; one that is not seen keeps its own.",
			cluster: aCluster(), work: aWork(t, objects{config("a"), config("b")}, told(`{`+configID+`,"health":"Unknown"}`)), there: objects{ours(config("b"), "")},
			want:    []string{`{` + configID + `,"health":"Unknown"}`, `{` + secondID + `,"health":"Healthy"}`},
			events:  []string{"Normal InterpretHealthSucceed: ConfigMap default/b is now Healthy."},
			watched: []schema.GroupVersionResource{configMaps},
		},
		"ManifestGone": {
			reason:  "What the Work does not carry any more has no status.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}, told(`{`+configID+`,"health":"Healthy"}`, `{`+secondID+`,"health":"Healthy"}`)), there: objects{ours(config("a"), "")},
			want: []string{`{` + configID + `,"health":"Healthy"}`}, watched: []schema.GroupVersionResource{configMaps},
		},
		"OfAnotherWork": {
			reason:  "What does not come by this Work says nothing about it.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}), there: objects{elsewhere}, watched: []schema.GroupVersionResource{configMaps},
		},
		"NotApplied": {
			reason:  "What is there is told although something fails; but nothing needs to be followed for that.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}, notApplied), there: objects{ours(config("a"), "")},
			want: []string{`{` + configID + `,"health":"Healthy"}`}, events: []string{"Normal InterpretHealthSucceed: ConfigMap default/a is now Healthy."},
		},
		"KindUnknown": {
			reason:  "The member is asked for its kinds, and not waited for.",
			cluster: aCluster(), work: aWork(t, objects{config("a")}), unknown: true, waits: true,
		},
		"KindUnknownNotApplied": {
			reason:  "When it was applied it is looked at again.",
			cluster: aCluster(), work: aWork(t, objects{thing}, notApplied),
		},
		"OneKindUnknown": {
			reason:  "The others are told, and stay followed.",
			cluster: aCluster(), work: aWork(t, objects{config("a"), thing}), there: objects{ours(config("a"), "")}, waits: true,
			want: []string{`{` + configID + `,"health":"Healthy"}`}, events: []string{"Normal InterpretHealthSucceed: ConfigMap default/a is now Healthy."},
		},
		"StatusFails": {
			reason:  "The old status is better than none; why is told.",
			cluster: aCluster(), work: aWork(t, objects{deployment(0, "")}, told(`{`+deploymentID+`,"status":{"replicas":1},"health":"Unhealthy"}`)), there: objects{deployment(1, ready)},
			status: errBoom, err: errBoom,
			want: []string{`{` + deploymentID + `,"status":{"replicas":1},"health":"Healthy"}`},
			events: []string{
				"Warning ReflectStatusFailed: reflect the status: boom", "Normal InterpretHealthSucceed: Deployment default/d is now Healthy.",
			},
			watched: []schema.GroupVersionResource{deployments},
		},
		"HealthFails": {
			reason:  "Not to know is no health.",
			cluster: aCluster(), work: aWork(t, objects{deployment(0, "")}, told(`{`+deploymentID+`,`+readyIs+`,"health":"Healthy"}`)), there: objects{deployment(1, ready)},
			health: errBoom, err: errBoom, want: []string{`{` + deploymentID + `,` + readyIs + `,"health":"Unknown"}`},
			events: []string{"Warning InterpretHealthFailed: interpret the health: boom"}, watched: []schema.GroupVersionResource{deployments},
		},
		"Garbage": {
			reason:  "A manifest that is none has no object.",
			cluster: aCluster(), work: aWork(t, objects{obj(`{"apiVersion":"v1","kind":"ConfigMap"}`)}),
		},
		"Deleting":  {reason: "Nobody reads it any more.", cluster: aCluster(), work: aWork(t, objects{config("a")}, deleted), there: objects{ours(config("a"), "")}},
		"NotReady":  {reason: "What is known of a member that does not answer may not be so.", cluster: aCluster(notReady), work: aWork(t, objects{config("a")}), there: objects{ours(config("a"), "")}},
		"Pull":      {reason: "It has an agent.", cluster: aCluster(pull), work: aWork(t, objects{config("a")}), there: objects{ours(config("a"), "")}},
		"NoCluster": {reason: "There is no member.", work: aWork(t, objects{config("a")})},
		"ClusterScoped": {
			reason:  "A kind without namespace is no special case.",
			cluster: aCluster(), work: aWork(t, objects{obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`)}),
			there: objects{ours(obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`), `{"phase":"Active"}`)},
			want:  []string{`{"identifier":{"ordinal":0,"version":"v1","kind":"Namespace","name":"n"},"status":{"phase":"Active"},"health":"Healthy"}`},
			events: []string{
				"Normal ReflectStatusSucceed: The status of Namespace n was reflected.", "Normal InterpretHealthSucceed: Namespace n is now Healthy.",
			},
			watched: []schema.GroupVersionResource{{Version: "v1", Resource: "namespaces"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.work.DeepCopy()}
			if tc.cluster != nil {
				objects = append(objects, tc.cluster)
			}
			w := newWorld(t, objects...)
			w.member.put(tc.there...)
			w.member.unknown = tc.unknown
			w.interpreter.status, w.interpreter.health = tc.status, tc.health
			result, err := w.reconcile(t)
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("%s\nwant error %v, got %v", tc.reason, tc.err, err)
			}
			if got := result.RequeueAfter > 0; got != tc.waits {
				t.Errorf("%s\nlooked at again by itself: %t", tc.reason, got)
			}
			patches, events := w.take()
			if want := tc.want != nil; len(patches) > 1 || (len(patches) == 1) != want {
				t.Errorf("%s\nwrites: %v", tc.reason, patches)
			}
			for _, p := range patches {
				if strings.Contains(p, "conditions") || strings.Contains(p, "resourceVersion") {
					t.Errorf("%s\nwhat others write is theirs: %s", tc.reason, p)
				}
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Errorf("%s\nevents (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.watched, w.member.watched["w"]); diff != "" {
				t.Errorf("%s\nfollowed (-want +got):\n%s", tc.reason, diff)
			}
			work := w.work(t)
			if tc.want != nil {
				expect := &workv1alpha1.Work{}
				told(tc.want...)(expect)
				if diff := cmp.Diff(texts(expect), texts(work)); diff != "" {
					t.Errorf("%s\nstatus (-want +got):\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.work.Status.Conditions, work.Status.Conditions); diff != "" {
				t.Errorf("%s\nconditions are not ours (-want +got):\n%s", tc.reason, diff)
			}

			// Once more, also after a restart, changes nothing.
			for range 2 {
				w.now = w.now.Add(pause)
				if _, err := w.reconcile(t); !errors.Is(err, tc.err) {
					t.Fatal(err)
				}
				if patches, events := w.take(); patches != nil || events != nil {
					t.Errorf("%s\nbut once more writes %v, %v", tc.reason, patches, events)
				}
				w.windows = newWindows()
			}
		})
	}
}

// texts returns what a Work tells of its objects, each as JSON in order.
func texts(w *workv1alpha1.Work) []string {
	var all []string
	for _, s := range w.Status.ManifestStatuses {
		var status any
		if s.Status != nil {
			status, _ = decode(s.Status)
		}
		text, err := json.Marshal([]any{s.Identifier, status, s.Health})
		if err != nil {
			panic(err)
		}
		all = append(all, string(text))
	}
	return all
}

func TestNewestWins(t *testing.T) {
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{deployment(0, "")}))
	// step lets time pass, then an object be seen, and says what comes of that.
	step := func(reason string, passes time.Duration, status string, wantPatches int, wantWait time.Duration) {
		t.Helper()
		w.now = w.now.Add(passes)
		w.member.put(deployment(1, status))
		result, err := w.reconcile(t)
		if err != nil {
			t.Fatal(err)
		}
		patches, _ := w.take()
		if len(patches) != wantPatches || result.RequeueAfter != wantWait {
			t.Errorf("%s\n%d writes, comes back after %s", reason, len(patches), result.RequeueAfter)
		}
	}
	const ms = time.Millisecond
	step("What is about to get a status is given time for that.", 0, "", 0, pause)
	step("In the meantime nothing is written,", 100*ms, `{"observedGeneration":1,"replicas":1}`, 0, 400*ms)
	step("whatever comes.", 300*ms, `{"observedGeneration":1,"replicas":2}`, 0, 100*ms)
	step("Then what is newest is written, once.", 100*ms, `{"observedGeneration":1,"replicas":2,"readyReplicas":1}`, 1, 0)
	step("Soon after a write nothing is,", 100*ms, `{"observedGeneration":1,"replicas":2,"readyReplicas":2}`, 0, 400*ms)
	step("but later.", 400*ms, `{"observedGeneration":1,"replicas":2,"readyReplicas":2}`, 1, 0)
	step("The first after a while is written at once.", time.Minute, `{"observedGeneration":1,"replicas":3}`, 1, 0)
	step("What was told already is not told.", time.Minute, `{"observedGeneration":1,"replicas":3}`, 0, 0)
	if len(w.windows.works) != 0 {
		t.Errorf("nothing is kept about what does not change: %v", w.windows.works)
	}
	step("What its controller has not seen is put off,", time.Minute, `{"replicas":4,"observedGeneration":0}`, 0, pause)
	step("but not for ever: there may be no controller.", pause, `{"replicas":4,"observedGeneration":0}`, 1, 0)
	step("And again.", pause, `{"replicas":5,"observedGeneration":0}`, 0, pause)
	step("And again.", pause, `{"replicas":5,"observedGeneration":0}`, 1, 0)
}

func TestOnTheWay(t *testing.T) {
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{deployment(0, "")}))
	replicas := 0
	// step lets time pass, then one more replica be seen, or all of them be ready, and says what comes of that.
	step := func(reason string, passes time.Duration, ready string, wantPatches int, wantWait time.Duration) {
		t.Helper()
		w.now = w.now.Add(passes)
		replicas++
		if ready == "" {
			ready = fmt.Sprintf(`{"observedGeneration":1,"replicas":%d}`, replicas)
		}
		w.member.put(deployment(1, ready))
		result, err := w.reconcile(t)
		if err != nil {
			t.Fatal(err)
		}
		patches, _ := w.take()
		if len(patches) != wantPatches || result.RequeueAfter != wantWait {
			t.Errorf("%s\n%d writes, comes back after %s", reason, len(patches), result.RequeueAfter)
		}
	}
	const ms = time.Millisecond
	step("What is seen first is told at once.", 0, "", 1, 0)
	step("A step is told after the shortest pause,", pause, "", 1, 0)
	step("the next one waits longer,", pause, "", 0, 500*ms)
	step("until its time has come,", 500*ms, "", 1, 0)
	step("and so on,", time.Second, "", 0, time.Second)
	step("longer each time,", time.Second, "", 1, 0)
	step("but not for ever longer.", longestPause, "", 1, 0)
	step("The longest pause is that.", longestPause-time.Second, "", 0, time.Second)
	step("That all is well waits for nothing.", 0, ready, 1, 0)
	step("What goes wrong then is told after the shortest pause.", pause, "", 1, 0)
	step("What comes after a while is news again,", giveUp, "", 1, 0)
	step("and its next step is not late.", pause, "", 1, 0)
}

func TestCacheThatLags(t *testing.T) {
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{deployment(0, "")}))
	w.member.put(deployment(1, `{"observedGeneration":1,"replicas":1}`))
	stale := w.work(t)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.take()
	w.now = w.now.Add(pause)
	result, err := w.Reconcile(t.Context(), stale.DeepCopy())
	if patches, _ := w.take(); err != nil || patches != nil || result.RequeueAfter != pause {
		t.Errorf("an old state of the Work must not be compared with: %v, %v, %v", patches, result, err)
	}
	w.now = w.now.Add(giveUp)
	if _, err := w.Reconcile(t.Context(), stale.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if patches, _ := w.take(); len(patches) != 1 {
		t.Errorf("unless it seems to be the newest: %v", patches)
	}
}

func TestFailureIsToldOnce(t *testing.T) {
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{deployment(0, "")}))
	w.member.put(deployment(1, `{"observedGeneration":1}`))
	var all []string
	for _, err := range []error{errBoom, errBoom, errors.New("bang"), nil, errBoom} {
		w.interpreter.status = err
		if _, got := w.reconcile(t); (got == nil) != (err == nil) {
			t.Errorf("want %v, got %v", err, got)
		}
		w.now = w.now.Add(time.Minute)
		_, events := w.take()
		all = append(all, slices.DeleteFunc(events, func(e string) bool { return !strings.HasPrefix(e, corev1.EventTypeWarning) })...)
	}
	want := []string{
		"Warning ReflectStatusFailed: reflect the status: boom", "Warning ReflectStatusFailed: reflect the status: bang",
		"Warning ReflectStatusFailed: reflect the status: boom",
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("what goes on failing is told once (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		spoil  func(*world)
		err    error
	}{
		"Member": {"It may have another address.", func(w *world) { w.member.err = errBoom }, errBoom},
		"NoMember": {"It may get credentials.", func(w *world) {
			w.members = func(context.Context, *clusterv1alpha1.Cluster) (Member, error) { return nil, errBoom }
		}, errBoom},
		"Write": {"What could not be written is written later.", func(w *world) {
			w.client = interceptor.NewClient(fakeWithWatch(w), interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return errBoom
				},
			})
		}, errBoom},
		"Gone": {"A Work that has gone has no status.", func(w *world) {
			w.client = interceptor.NewClient(fakeWithWatch(w), interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "works"}, "w")
				},
			})
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{config("a")}))
			w.member.put(ours(config("a"), ""))
			tc.spoil(w)
			if _, err := w.reconcile(t); !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if len(w.windows.works) != 0 || w.events != nil {
				t.Errorf("%s\nnothing was written: %v, %v", tc.reason, w.windows.works, w.events)
			}
		})
	}
}

func fakeWithWatch(w *world) client.WithWatch {
	c, ok := w.control.(client.WithWatch)
	if !ok {
		panic("the fake client watches")
	}
	return c
}

// someNews is News that are the same until they are told.
type someNews struct {
	conditions []metav1.Condition
	told       bool
}

func (n *someNews) Pending(*workv1alpha1.Work) []metav1.Condition { return n.conditions }

func (n *someNews) Told(_ *workv1alpha1.Work, conditions []metav1.Condition) {
	n.told = len(conditions) > 0
	n.conditions = nil
}

func TestNewsAreTakenAlong(t *testing.T) {
	news := &someNews{}
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{config("a")}, func(w *workv1alpha1.Work) { w.Status.Conditions = nil }))
	w.member.put(ours(config("a"), ""))
	w.news = news
	if result, err := w.reconcile(t); err != nil || result.RequeueAfter != pause || len(w.patches) != 0 {
		t.Fatalf("who applies it will have news in a moment: %v, %v, %q", result, err, w.patches)
	}
	news.conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
	w.now = w.now.Add(pause)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if work := w.work(t); !news.told || len(w.patches) != 1 || !isApplied(work) || len(work.Status.ManifestStatuses) != 1 {
		t.Errorf("both are written by one patch: told %v, %q", news.told, w.patches)
	}
}

func TestNewsAreNotWaitedForTwice(t *testing.T) {
	w := newWorld(t, aCluster(), aWork(t, []*unstructured.Unstructured{config("a")}, func(w *workv1alpha1.Work) { w.Status.Conditions = nil }))
	w.member.put(ours(config("a"), ""))
	w.news = &someNews{}
	for range 2 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(pause)
	}
	if len(w.patches) != 1 || strings.Contains(w.patches[0], "conditions") {
		t.Errorf("what was seen is told without news, too: %q", w.patches)
	}
}
