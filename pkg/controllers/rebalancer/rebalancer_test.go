package rebalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

var errBoom = errors.New("boom")

// created is when the rebalancers of tests were.
var created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func after(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(created.Add(d))) }

// A world is a control plane that counts writes, a minute after the rebalancer was
// created.
type world struct {
	*Reconciler
	api    client.WithWatch
	mu     sync.Mutex // bindings are written side by side
	writes []string
	fail   map[string]error // by write
}

// An indexes gives a fake client the indices that a cache would have.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

func newAPI(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&appsv1alpha1.WorkloadRebalancer{})
	if err := binding.Index(t.Context(), indexes{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{api: newAPI(t, objects...), fail: map[string]error{}}
	w.Reconciler = &Reconciler{client: w.counting(t, w.api), live: w.api, now: func() time.Time { return created.Add(time.Minute) }}
	return w
}

// counting writes to the world, and reads from a cache.
func (w *world) counting(t *testing.T, cache client.WithWatch) client.Client {
	wrote := func(write string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes = append(w.writes, write)
		return w.fail[write]
	}
	locked := func(o client.Object, p client.Patch) {
		data, err := p.Data(o)
		if err != nil || !strings.Contains(string(data), `"resourceVersion"`) {
			t.Errorf("patch %s (%v) could overwrite what others wrote", data, err)
		}
	}
	return interceptor.NewClient(cache, interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			locked(o, p)
			if err := wrote("patch " + o.GetName()); err != nil {
				return err
			}
			return w.api.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			locked(o, p)
			if err := wrote(sub); err != nil {
				return err
			}
			return w.api.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if p := options.Preconditions; p == nil || p.ResourceVersion == nil || p.UID == nil {
				t.Error("a rebalancer could be deleted that has changed")
			}
			if err := wrote("delete " + o.GetName()); err != nil {
				return err
			}
			return w.api.Delete(ctx, o, opts...)
		},
	})
}

// reconcile returns the writes too, sorted: those of bindings are made at once.
func (w *world) reconcile(t *testing.T) (reconcile.Result, []string, error) {
	t.Helper()
	w.writes = nil
	result, err := reconcile.AsReconciler(w.client, w.Reconciler).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "again"}})
	slices.Sort(w.writes)
	return result, w.writes, err
}

func (w *world) rebalancer(t *testing.T) *appsv1alpha1.WorkloadRebalancer {
	t.Helper()
	got := &appsv1alpha1.WorkloadRebalancer{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: "again"}, got); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return got
}

// asked returns when a binding was asked to be scheduled anew.
func (w *world) asked(t *testing.T, namespace, name string) *metav1.Time {
	t.Helper()
	b := binding.New(namespace)
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, b); err != nil {
		t.Fatal(err)
	}
	return b.BindingSpec().RescheduleTriggeredAt
}

var (
	web  = appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}
	db   = appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "default", Name: "db"}
	role = appsv1alpha1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:reader"}
)

// A change changes an object that a test begins with.
type change[T any] func(T)

func rebalancer(changes ...change[*appsv1alpha1.WorkloadRebalancer]) *appsv1alpha1.WorkloadRebalancer {
	w := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "again", UID: "uid", Generation: 1, CreationTimestamp: created}}
	for _, f := range changes {
		f(w)
	}
	return w
}

func of(workloads ...appsv1alpha1.ObjectReference) change[*appsv1alpha1.WorkloadRebalancer] {
	return func(w *appsv1alpha1.WorkloadRebalancer) { w.Spec.Workloads = workloads }
}

func keptFor(seconds int32) change[*appsv1alpha1.WorkloadRebalancer] {
	return func(w *appsv1alpha1.WorkloadRebalancer) { w.Spec.TTLSecondsAfterFinished = &seconds }
}

// done says that the rebalancer has finished, a while after its creation.
func done(d time.Duration, observed ...appsv1alpha1.ObservedWorkload) change[*appsv1alpha1.WorkloadRebalancer] {
	return func(w *appsv1alpha1.WorkloadRebalancer) {
		w.Status = appsv1alpha1.WorkloadRebalancerStatus{ObservedWorkloads: observed, ObservedGeneration: 1, FinishTime: after(d)}
	}
}

// edited says that its spec has changed since.
func edited(w *appsv1alpha1.WorkloadRebalancer) { w.Generation = 2 }

func successful(w appsv1alpha1.ObjectReference) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{Workload: w, Result: appsv1alpha1.RebalanceSuccessful}
}

func failed(w appsv1alpha1.ObjectReference) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{Workload: w, Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound}
}

func pending(w appsv1alpha1.ObjectReference) appsv1alpha1.ObservedWorkload {
	return appsv1alpha1.ObservedWorkload{Workload: w}
}

// bound returns the binding of a workload.
func bound(name string, w appsv1alpha1.ObjectReference, changes ...change[binding.Object]) client.Object {
	b := binding.New(w.Namespace)
	b.SetNamespace(w.Namespace)
	b.SetName(name)
	b.BindingSpec().Resource = reference(w)
	b.BindingSpec().Resource.UID = "u"
	for _, f := range changes {
		f(b)
	}
	return b
}

func askedAt(t *metav1.Time) change[binding.Object] {
	return func(b binding.Object) { b.BindingSpec().RescheduleTriggeredAt = t }
}

func scheduledAt(t *metav1.Time) change[binding.Object] {
	return func(b binding.Object) { b.BindingStatus().LastScheduledTime = t }
}

func going(b binding.Object) {
	b.SetFinalizers([]string{"karmada.io/binding-controller"})
	b.SetDeletionTimestamp(after(0))
}

func TestReconcile(t *testing.T) {
	type want struct {
		writes   []string
		observed []appsv1alpha1.ObservedWorkload
		finished *metav1.Time
		after    time.Duration
		err      error
		gone     bool
	}
	// now is when the test is.
	now := after(time.Minute)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		fail    map[string]error
		want    want
	}{
		"Both": {
			reason:  "A template without a namespace has a ClusterResourceBinding; its name has no colon. The order of the spec does not matter.",
			objects: []client.Object{rebalancer(of(role, db, web)), bound("web-deployment", web), bound("db-statefulset", db), bound("system.reader-clusterrole", role)},
			want: want{
				writes:   []string{"patch db-statefulset", "patch system.reader-clusterrole", "patch web-deployment", "status"},
				observed: []appsv1alpha1.ObservedWorkload{successful(web), successful(db), successful(role)}, finished: now,
			},
		},
		"Twice": {
			reason:  "A workload that is named twice is asked for once.",
			objects: []client.Object{rebalancer(of(web, web)), bound("web-deployment", web)},
			want:    want{writes: []string{"patch web-deployment", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: now},
		},
		"NotFound": {
			reason:  "One that has no binding failed, for good; it holds up no other.",
			objects: []client.Object{rebalancer(of(db, web)), bound("web-deployment", web)},
			want:    want{writes: []string{"patch web-deployment", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web), failed(db)}, finished: now},
		},
		"Foreign": {
			reason: "A binding that only has the name is another workload's.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment", appsv1alpha1.ObjectReference{
				APIVersion: "example.com/v1", Kind: "Deployment", Namespace: "default", Name: "web",
			})},
			want: want{writes: []string{"status"}, observed: []appsv1alpha1.ObservedWorkload{failed(web)}, finished: now},
		},
		"Beside": {
			reason:  "A binding is found whatever name it has.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment--74dddcbbd4", web)},
			want:    want{writes: []string{"patch web-deployment--74dddcbbd4", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: now},
		},
		"OtherVersion": {
			reason: "The version by which a workload is named is not what it is.",
			objects: []client.Object{
				rebalancer(of(web)), bound("web-deployment", appsv1alpha1.ObjectReference{APIVersion: "apps/v1beta1", Kind: "Deployment", Namespace: "default", Name: "web"}),
			},
			want: want{writes: []string{"patch web-deployment", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: now},
		},
		"Going": {
			reason:  "A binding that is being deleted is scheduled no more.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment", web, going)},
			want:    want{writes: []string{"status"}, observed: []appsv1alpha1.ObservedWorkload{failed(web)}, finished: now},
		},
		"Nonsense": {
			reason:  "What no object can be called is not found, and is no request to the API server that it never answers.",
			objects: []client.Object{rebalancer(of(appsv1alpha1.ObjectReference{Kind: "A", Namespace: "a/b", Name: "c"}, appsv1alpha1.ObjectReference{Kind: "A", Namespace: "a", Name: "b/../c"}))},
			want: want{writes: []string{"status"}, finished: now, observed: []appsv1alpha1.ObservedWorkload{
				failed(appsv1alpha1.ObjectReference{Kind: "A", Namespace: "a", Name: "b/../c"}), failed(appsv1alpha1.ObjectReference{Kind: "A", Namespace: "a/b", Name: "c"}),
			}},
		},
		"AskedAlready": {
			reason:  "A binding that a later rebalancer has asked for is not asked again.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment", web, askedAt(after(time.Second)))},
			want:    want{writes: []string{"status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: now},
		},
		"AskedBefore": {
			reason:  "One that an earlier rebalancer has asked for is.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment", web, askedAt(after(-time.Second)))},
			want:    want{writes: []string{"patch web-deployment", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: now},
		},
		"Retry": {
			reason:  "What fails is tried again, and has no result until then; what did not fail has.",
			objects: []client.Object{rebalancer(of(db, web), keptFor(0)), bound("web-deployment", web), bound("db-statefulset", db)},
			fail:    map[string]error{"patch db-statefulset": errBoom},
			want: want{
				writes:   []string{"patch db-statefulset", "patch web-deployment", "status"},
				observed: []appsv1alpha1.ObservedWorkload{successful(web), pending(db)}, err: errBoom,
			},
		},
		"RetryAgain": {
			reason: "A status that says so already is not written again.",
			objects: []client.Object{
				rebalancer(of(db, web), func(w *appsv1alpha1.WorkloadRebalancer) {
					w.Status = appsv1alpha1.WorkloadRebalancerStatus{ObservedWorkloads: []appsv1alpha1.ObservedWorkload{successful(web), pending(db)}, ObservedGeneration: 1}
				}), bound("web-deployment", web), bound("db-statefulset", db),
			},
			fail: map[string]error{"patch db-statefulset": errBoom},
			want: want{writes: []string{"patch db-statefulset"}, observed: []appsv1alpha1.ObservedWorkload{successful(web), pending(db)}, err: errBoom},
		},
		"BindingGone": {
			reason:  "A binding that goes at the last moment is none.",
			objects: []client.Object{rebalancer(of(web)), bound("web-deployment", web)},
			fail:    map[string]error{"patch web-deployment": apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, "web-deployment")},
			want:    want{writes: []string{"patch web-deployment", "status"}, observed: []appsv1alpha1.ObservedWorkload{failed(web)}, finished: now},
		},
		"StatusFails": {
			reason:  "A status that cannot be written is tried again; until then nothing is removed.",
			objects: []client.Object{rebalancer(of(web), keptFor(0)), bound("web-deployment", web)},
			fail:    map[string]error{"status": errBoom},
			want:    want{writes: []string{"patch web-deployment", "status"}, err: errBoom},
		},
		"Done": {
			reason:  "A rebalancer that has finished costs nothing, and does nothing again.",
			objects: []client.Object{rebalancer(of(db, web), done(0, successful(web), failed(db))), bound("web-deployment", web), bound("db-statefulset", db)},
			want:    want{observed: []appsv1alpha1.ObservedWorkload{successful(web), failed(db)}, finished: after(0)},
		},
		"Edited": {
			reason: "A workload that is added is asked for; of those taken away, the ones that were rebalanced stay.",
			objects: []client.Object{
				rebalancer(of(db), edited, done(0, successful(web), failed(role))), bound("web-deployment", web), bound("db-statefulset", db),
			},
			want: want{writes: []string{"patch db-statefulset", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web), successful(db)}, finished: now},
		},
		"EditedButFails": {
			reason:  "One that has something to do again has not finished, and is not removed for its age.",
			objects: []client.Object{rebalancer(of(db, web), keptFor(1), edited, done(0, successful(web))), bound("db-statefulset", db)},
			fail:    map[string]error{"patch db-statefulset": errBoom},
			want:    want{writes: []string{"patch db-statefulset", "status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web), pending(db)}, err: errBoom},
		},
		"OtherTTL": {
			reason:  "That it is to be kept for another time does not make it finish later.",
			objects: []client.Object{rebalancer(of(web), keptFor(100), edited, done(0, successful(web)))},
			want:    want{writes: []string{"status"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: after(0), after: 40 * time.Second},
		},
		"Kept": {
			reason:  "It is removed once its time is over; nothing is written for that before.",
			objects: []client.Object{rebalancer(of(web), keptFor(61), done(0, successful(web)))},
			want:    want{observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: after(0), after: time.Second},
		},
		"Over": {
			reason:  "Its time is over.",
			objects: []client.Object{rebalancer(of(web), keptFor(60), done(0, successful(web)))},
			want:    want{writes: []string{"delete again"}, gone: true},
		},
		"AtOnce": {
			reason:  "A rebalancer that is not kept goes at once, also when it failed.",
			objects: []client.Object{rebalancer(of(web), keptFor(0))},
			want:    want{writes: []string{"delete again", "status"}, gone: true},
		},
		"DeleteFails": {
			reason:  "It has changed in the meantime, say.",
			objects: []client.Object{rebalancer(of(web), keptFor(60), done(0, successful(web)))},
			fail:    map[string]error{"delete again": errBoom},
			want:    want{writes: []string{"delete again"}, observed: []appsv1alpha1.ObservedWorkload{successful(web)}, finished: after(0), err: errBoom},
		},
		"BeingDeleted": {
			reason: "Nothing is asked for by one that goes.",
			objects: []client.Object{rebalancer(of(web), func(w *appsv1alpha1.WorkloadRebalancer) {
				w.Finalizers, w.DeletionTimestamp = []string{"example.com/a"}, after(0)
			}), bound("web-deployment", web)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			for write, err := range c.fail {
				w.fail[write] = err
			}
			result, writes, err := w.reconcile(t)
			if !errors.Is(err, c.want.err) {
				t.Errorf("%s\nerror %v, want %v", c.reason, err, c.want.err)
			}
			now := w.rebalancer(t)
			got := want{writes: writes, observed: now.Status.ObservedWorkloads, finished: now.Status.FinishTime, after: result.RequeueAfter, gone: now.Name == "", err: c.want.err}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(want{}), cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); d != "" {
				t.Errorf("%s\n-want +got\n%s", c.reason, d)
			}
			if err == nil && !got.gone && len(writes) > 0 && now.Status.ObservedGeneration != now.Generation {
				t.Errorf("%s\nthe status is about generation %d of %d", c.reason, now.Status.ObservedGeneration, now.Generation)
			}
			if _, again, _ := w.reconcile(t); err == nil && len(again) > 0 {
				t.Errorf("%s\na second look writes %q", c.reason, again)
			}
		})
	}
}

func TestTrigger(t *testing.T) {
	cases := map[string]struct {
		reason    string
		scheduled *metav1.Time
		now       time.Time
		want      *metav1.Time
	}{
		"Never":      {"A binding that has not been scheduled gets the time of creation.", nil, created.Add(time.Minute), after(0)},
		"Before":     {"So does one that was scheduled before: that is the contract.", after(-time.Second), created.Add(time.Minute), after(0)},
		"SameSecond": {"The scheduler counts the second of the last scheduling.", after(0), created.Add(time.Minute), after(0)},
		"Since":      {"The scheduler would take no notice of the time of creation.", after(time.Second), created.Add(time.Minute), after(time.Minute)},
		"ClockAhead": {"Clocks differ.", after(time.Hour), created.Add(time.Minute), after(time.Hour + time.Second)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := trigger(created, c.scheduled, c.now); !got.Equal(c.want) {
				t.Errorf("%s\ngot %v, want %v", c.reason, got, c.want)
			}
			w := newWorld(t, rebalancer(of(web)), bound("web-deployment", web, scheduledAt(c.scheduled)))
			w.now = func() time.Time { return c.now }
			if _, _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := w.asked(t, "default", "web-deployment"); !got.Equal(c.want) {
				t.Errorf("%s\nwritten %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

// TestStale has a cache that is behind the API server.
func TestStale(t *testing.T) {
	later := after(30 * time.Second)
	cases := map[string]struct {
		reason  string
		cached  []client.Object
		changed func(*workv1alpha2.ResourceBinding) // on the server
		writes  []string
		want    appsv1alpha1.ObservedWorkload
		asked   *metav1.Time
	}{
		"New": {
			reason: "That there is no binding is an answer for good, so the cache is not believed.",
			writes: []string{"patch web-deployment", "status"}, want: successful(web), asked: after(0),
		},
		"Conflict": {
			reason: "What others wrote is not overwritten.", cached: []client.Object{bound("web-deployment", web)},
			changed: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 7 },
			writes:  []string{"patch web-deployment", "patch web-deployment", "status"}, want: successful(web), asked: after(0),
		},
		"OtherRebalancer": {
			reason: "A later rebalancer has asked: its time stays.", cached: []client.Object{bound("web-deployment", web)},
			changed: func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = later },
			writes:  []string{"patch web-deployment", "status"}, want: successful(web), asked: later,
		},
		"Scheduled": {
			reason: "It has been scheduled since it was read.", cached: []client.Object{bound("web-deployment", web)},
			changed: func(b *workv1alpha2.ResourceBinding) { b.Status.LastScheduledTime = later },
			writes:  []string{"patch web-deployment", "patch web-deployment", "status"}, want: successful(web), asked: after(time.Minute),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rebalancer(of(web)), bound("web-deployment", web))
			w.client = w.counting(t, newAPI(t, append(c.cached, rebalancer(of(web)))...))
			if c.changed != nil {
				b := &workv1alpha2.ResourceBinding{}
				if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-deployment"}, b); err != nil {
					t.Fatal(err)
				}
				c.changed(b)
				if err := w.api.Update(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			_, writes, err := w.reconcile(t)
			if err != nil {
				t.Fatalf("%s\n%v", c.reason, err)
			}
			if d := cmp.Diff(c.writes, writes); d != "" {
				t.Errorf("%s\nwrites -want +got\n%s", c.reason, d)
			}
			if d := cmp.Diff([]appsv1alpha1.ObservedWorkload{c.want}, w.rebalancer(t).Status.ObservedWorkloads); d != "" {
				t.Errorf("%s\nobserved -want +got\n%s", c.reason, d)
			}
			if got := w.asked(t, "default", "web-deployment"); !got.Equal(c.asked) {
				t.Errorf("%s\nasked at %v, want %v", c.reason, got, c.asked)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	w := newWorld(t, rebalancer(of(web)), bound("web-deployment", web))
	w.live = interceptor.NewClient(w.api, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errBoom
	}})
	w.client = w.counting(t, newAPI(t, rebalancer(of(web))))
	if _, _, err := w.reconcile(t); !errors.Is(err, errBoom) {
		t.Errorf("error %v, want %v", err, errBoom)
	}
	if d := cmp.Diff([]appsv1alpha1.ObservedWorkload{pending(web)}, w.rebalancer(t).Status.ObservedWorkloads); d != "" {
		t.Errorf("A workload whose binding cannot be looked up has no result yet.\n-want +got\n%s", d)
	}
}

// TestMany has more workloads than are asked for at a time.
func TestMany(t *testing.T) {
	const n = 3 * askedAtOnce
	var (
		workloads []appsv1alpha1.ObjectReference
		objects   []client.Object
	)
	for i := range n {
		one := web
		one.Name = fmt.Sprintf("web-%d", i)
		workloads = append(workloads, one)
		objects = append(objects, bound(one.Name+"-deployment", one))
	}
	w := newWorld(t, append(objects, rebalancer(of(workloads...)))...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.ask(ctx, rebalancer(), observe(&rebalancer(of(workloads...)).Spec, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v: a workload that was not begun with is still to be asked for", err, context.Canceled)
	}
	w.fail["patch web-1-deployment"], w.fail["patch web-2-deployment"] = errBoom, errBoom
	_, writes, err := w.reconcile(t)
	if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "2 of 48 workloads") {
		t.Errorf("error %q, want it to tell how much is left, and one reason", err)
	}
	if len(writes) != n+1 {
		t.Errorf("%d writes, want one for each workload and one of the status", len(writes))
	}
	clear(w.fail)
	if _, writes, err = w.reconcile(t); err != nil || len(writes) != 3 {
		t.Errorf("error %v, writes %q: want the two that failed and the status", err, writes)
	}
}

func TestAsked(t *testing.T) {
	before, after := rebalancer(of(web)), rebalancer(of(web), done(0, successful(web)))
	if asked().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a status is worked on, which is our own doing")
	}
	if !asked().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: rebalancer(of(db), edited)}) {
		t.Error("a change of the spec is not worked on")
	}
	if !asked().Create(event.CreateEvent{Object: before}) || asked().Delete(event.DeleteEvent{Object: before}) {
		t.Error("new rebalancers must be worked on, and those that are gone must not")
	}
}
