package schedule

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/affinity"
)

// member returns the binding of a workload that goes to one cluster, in groups to
// be with, and to be apart from.
func member(name, with, from string, options ...option) *workv1alpha2.ResourceBinding {
	b := workload(append([]option{duplicated, toOne}, options...)...)
	b.Name, b.UID = name, types.UID(name)
	b.Spec.Resource.Name = name
	b.Spec.WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: with, AntiAffinityGroup: from}
	return b
}

// frozen is a cache that shows bindings as they were.
func frozen(w *world, bindings ...*workv1alpha2.ResourceBinding) client.Client {
	return interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			for _, b := range bindings {
				if into, ok := o.(*workv1alpha2.ResourceBinding); ok && b.Name == key.Name {
					version := into.DeepCopy()
					if err := c.Get(ctx, key, version); err != nil {
						return err
					}
					b.DeepCopyInto(into)
					into.ResourceVersion = version.ResourceVersion
					return nil
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// TestGroups schedules the workloads of a group one right after the other, before
// the cache shows any of it (spec: behaviour/04 4.6 "Gate WorkloadAffinity").
func TestGroups(t *testing.T) {
	const taken = "cluster already has workload with the same anti-affinity group"
	cases := map[string]struct {
		reason   string
		bindings []*workv1alpha2.ResourceBinding
		options  Options
		want     []string
		nowhere  string // what is said of those that fit nowhere
	}{
		"Apart": {
			reason: "No two of them are in one cluster; who finds none is told why.", options: Options{Groups: true},
			bindings: []*workv1alpha2.ResourceBinding{member("a", "", "x"), member("b", "", "x"), member("c", "", "x"), member("d", "", "y")},
			want:     []string{"m1:3", "m2:3", "", "m1:3"}, nowhere: "False NoClusterFit: 0/2 clusters are available: 2 " + taken + ".",
		},
		"Together": {
			reason: "All of them follow the first one.", options: Options{Groups: true},
			bindings: []*workv1alpha2.ResourceBinding{member("a", "x", "", toClusters("m2")), member("b", "x", ""), member("c", "x", "")},
			want:     []string{"m2:3", "m2:3", "m2:3"},
		},
		"Both": {
			reason: "A group to be with, another to be apart from.", options: Options{Groups: true},
			bindings: []*workv1alpha2.ResourceBinding{member("a", "x", "y", toClusters("m2")), member("b", "x", "z"), member("c", "", "z")},
			want:     []string{"m2:3", "m2:3", "m1:3"},
		},
		"Stays": {
			reason: "What is somewhere already stays there.", options: Options{Groups: true},
			bindings: []*workv1alpha2.ResourceBinding{member("a", "", "x", on("m1:3")), member("b", "", "x", on("m1:3"))},
			want:     []string{"m1:3", "m1:3"},
		},
		"GateOff": {
			reason:   "Without the gate groups do not count.",
			bindings: []*workv1alpha2.ResourceBinding{member("a", "", "x"), member("b", "", "x")},
			want:     []string{"m1:3", "m1:3"},
		},
		"PluginOff": {
			reason:   "Nor without the plugin.",
			options:  Options{Groups: true, Enabled: func(plugin string) bool { return plugin != affinity.AntiAffinity }},
			bindings: []*workv1alpha2.ResourceBinding{member("a", "", "x"), member("b", "", "x")},
			want:     []string{"m1:3", "m1:3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{cluster("m1"), cluster("m2")}
			for _, b := range tc.bindings {
				objects = append(objects, b)
			}
			w := newWorld(t, objects...)
			r := w.reconciler(frozen(w, tc.bindings...), tc.options)
			for _, b := range tc.bindings {
				r.groups.Observe(b)
			}
			var got []string
			for _, b := range tc.bindings {
				if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil {
					t.Fatal(err)
				}
				now := w.get(b)
				got = append(got, targetsOf(now))
				if len(now.BindingSpec().Clusters) == 0 && conditionOf(now) != tc.nowhere {
					t.Errorf("%s: %s, want %s: %s", b.Name, conditionOf(now), tc.nowhere, tc.reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGroupsRefused has writes fail: what is not written must not keep others away,
// unless nobody knows.
func TestGroupsRefused(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "a", errors.New("no"))
	cases := map[string]struct {
		reason   string
		err      error
		gone     bool
		want     string
		released []types.NamespacedName
	}{
		"Refused": {reason: "The server will not have it, so its place is free, and who waits for it is told.", err: refused, want: "m1:3", released: []types.NamespacedName{{Namespace: "default", Name: "w"}}},
		"Lost":    {reason: "The write may have arrived.", err: errors.New("boom"), want: "m2:3"},
		"Gone":    {reason: "The binding is gone.", err: apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, "a"), want: "m1:3", released: []types.NamespacedName{{Namespace: "default", Name: "w"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b, waiting := member("a", "", "x"), member("b", "", "x"), member("w", "", "x")
			w := newWorld(t, a, b, waiting, cluster("m1"), cluster("m2"))
			r := w.reconciler(nil, Options{Groups: true})
			var released []types.NamespacedName
			r.released = func(_ context.Context, bindings []types.NamespacedName) {
				for _, key := range bindings {
					if key.Name != b.Name {
						released = append(released, key)
					}
				}
			}
			for _, one := range []*workv1alpha2.ResourceBinding{a, b, waiting} {
				r.groups.Observe(one)
			}
			w.refuse = func(write string) error {
				if write == "patch" {
					return tc.err
				}
				return nil
			}
			if _, err := r.Reconcile(t.Context(), requestFor(a)); err == nil && name == "Lost" {
				t.Error("a write that failed is not tried again")
			}
			w.refuse = nil
			if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil {
				t.Fatal(err)
			}
			if got := targetsOf(w.get(b)); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
			if diff := cmp.Diff(tc.released, released); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGroupEvents says which bindings an event of another brings back.
func TestGroupEvents(t *testing.T) {
	urgent := func(b binding.Object) { b.BindingSpec().SchedulePriority = &workv1alpha2.SchedulePriority{Priority: 7} }
	waiting, foreign := member("w", "", "x", urgent), member("foreign", "", "x")
	foreign.Spec.SchedulerName = "mine"
	there := member("a", "", "x", on("m1:3"))
	unclaimed := there.DeepCopy()
	delete(unclaimed.Labels, names.PropagationPolicyIDLabel)
	cases := map[string]struct {
		reason        string
		before, after *workv1alpha2.ResourceBinding
		want          map[string]int
	}{
		"Moved":   {"The cluster that it has left is free for who waits, by its own priority; others' bindings are others'.", there, member("a", "", "x", on("m2:3"), edited), map[string]int{"a": 0, "w": 7}},
		"Stayed":  {"Nothing is free.", there, member("a", "", "x", on("m1:4"), edited), map[string]int{"a": 0}},
		"Deleted": {"All of it is free.", there, nil, map[string]int{"w": 7}},
		"Others":  {"Who schedules it does not matter.", unclaimed, nil, map[string]int{"w": 7}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waiting.DeepCopy(), foreign.DeepCopy())
			watch := newWatcher(w.client)
			watch.groups = affinity.New()
			q, h := &notebook{in: map[string]int{}}, watch.bindings()
			for _, b := range []*workv1alpha2.ResourceBinding{waiting, foreign, tc.before} {
				h.Create(t.Context(), event.CreateEvent{Object: b}, q)
			}
			clear(q.in)
			if tc.after == nil {
				h.Delete(t.Context(), event.DeleteEvent{Object: tc.before}, q)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			}
			if diff := cmp.Diff(tc.want, q.in); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGroupsGone has a binding go that was decided about a moment ago.
func TestGroupsGone(t *testing.T) {
	a, b := member("a", "", "x"), member("b", "", "x")
	w := newWorld(t, b, cluster("m1"))
	r := w.reconciler(nil, Options{Groups: true})
	r.groups.Observe(b)
	r.groups.Decide(a, []workv1alpha2.TargetCluster{{Name: "m1"}})
	if _, err := r.Reconcile(t.Context(), requestFor(a)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil {
		t.Fatal(err)
	}
	if got := targetsOf(w.get(b)); got != "m1:3" {
		t.Errorf("got %q, want m1:3: what is gone keeps nobody away", got)
	}
}
