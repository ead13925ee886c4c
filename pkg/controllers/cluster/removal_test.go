package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// worksNow describes the Works that are there, each with what was done to it.
func worksNow(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &workv1alpha1.WorkList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range list.Items {
		text := w.Name
		if !w.DeletionTimestamp.IsZero() {
			text += " deleted"
		}
		if p := w.Spec.PreserveResourcesOnDeletion; p != nil && *p {
			text += " preserving"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func TestRemove(t *testing.T) {
	cases := map[string]struct {
		reason    string
		cluster   *clusterv1alpha1.Cluster
		objects   []client.Object
		passes    int
		works     []string
		namespace bool
		gone      bool
		events    []string
	}{
		"WorksFirst": {
			reason:  "The namespace stays whole until the Works are withdrawn: an agent's rights are in it.",
			cluster: member(deleted, ready(metav1.ConditionTrue)), objects: []client.Object{space(true), work("a"), work("b")}, passes: 3,
			works: []string{"a deleted", "b deleted"}, namespace: true,
		},
		"ThenTheNamespace": {
			reason:  "Once the Works are withdrawn, the rest goes without waiting for anything.",
			cluster: member(deleted, ready(metav1.ConditionTrue)), objects: []client.Object{space(true), work("a", withdrawn)}, passes: 2,
			gone: true, events: []string{"Normal RemoveExecutionSpaceSucceed Removed execution space(karmada-es-m1) of cluster(m1)."},
		},
		"NothingThere": {
			reason:  "A Cluster that never got a namespace goes at once.",
			cluster: member(deleted), passes: 1, gone: true,
		},
		"NotOurs": {
			reason:  "A namespace that this control plane did not make is never deleted; the Works in it are.",
			cluster: member(deleted, ready(metav1.ConditionTrue)), objects: []client.Object{space(false), work("a", withdrawn)}, passes: 1,
			namespace: true, gone: true,
			events: []string{"Warning RemoveExecutionSpaceFailed namespace karmada-es-m1 is kept: it was not made by this control plane (no label karmada.io/system=true); its Works are gone"},
		},
		"PushDead": {
			reason:  "Works of a push mode cluster are let go by who applies them, never from here.",
			cluster: member(deleted, ready(metav1.ConditionFalse)), objects: []client.Object{space(true), work("a")}, passes: 3,
			works: []string{"a deleted"}, namespace: true,
		},
		"PullDead": {
			reason:  "Nobody else would let the Works of a silent agent go.",
			cluster: member(deleted, pull, ready(metav1.ConditionUnknown)), objects: []client.Object{space(true), work("a")}, passes: 3,
			gone: true, events: []string{"Normal RemoveExecutionSpaceSucceed Removed execution space(karmada-es-m1) of cluster(m1)."},
		},
		"PullAlive": {
			reason:  "An agent that answers withdraws its Works itself.",
			cluster: member(deleted, pull, ready(metav1.ConditionTrue)), objects: []client.Object{space(true), work("a")}, passes: 3,
			works: []string{"a deleted"}, namespace: true,
		},
		"Orphan": {
			reason:  "First every Work is told to preserve its objects, and nothing is deleted in that pass; what is the system's own goes.",
			cluster: member(deleted, ready(metav1.ConditionTrue), cascade(names.CascadeOrphan)), passes: 1,
			objects: []client.Object{space(true), work("a"), work("b", preserving), work("rbac", ofSystem)},
			works:   []string{"a preserving", "b preserving", "rbac"}, namespace: true,
		},
		"OrphanThenDelete": {
			reason:  "Then they are deleted.",
			cluster: member(deleted, ready(metav1.ConditionTrue), cascade(names.CascadeOrphan)), passes: 2,
			objects: []client.Object{space(true), work("a"), work("b", preserving), work("rbac", ofSystem)},
			works:   []string{"a deleted preserving", "b deleted preserving", "rbac deleted"}, namespace: true,
		},
		"OrphanDeletedBefore": {
			reason:  "A Work that somebody had deleted already is not brought back.",
			cluster: member(deleted, ready(metav1.ConditionTrue), cascade(names.CascadeOrphan)), passes: 1,
			objects: []client.Object{space(true), work("a", going)},
			works:   []string{"a deleted"}, namespace: true,
		},
		"UnknownCascade": {
			reason:  "Who mistypes the annotation keeps the objects.",
			cluster: member(deleted, ready(metav1.ConditionTrue), cascade("orphans")), passes: 1,
			objects: []client.Object{space(true), work("a")},
			works:   []string{"a preserving"}, namespace: true,
		},
		"CascadeDelete": {
			reason:  "The default, said aloud.",
			cluster: member(deleted, ready(metav1.ConditionTrue), cascade(names.CascadeDelete)), passes: 1,
			objects: []client.Object{space(true), work("a")},
			works:   []string{"a deleted"}, namespace: true,
		},
		"Bound": {
			reason:  "While a binding has the cluster, its scheduler has not moved it yet.",
			cluster: member(deleted), objects: []client.Object{scheduled(newBinding("b", "m1", "m2"))}, passes: 3,
		},
		"BoundGlobally": {
			reason:  "Bindings of both scopes count.",
			cluster: member(deleted), objects: []client.Object{scheduled(globalBinding("b", "m1"))}, passes: 3,
		},
		"BoundElsewhere": {
			reason:  "Bindings of other clusters do not.",
			cluster: member(deleted), objects: []client.Object{scheduled(newBinding("b", "m2"))}, passes: 1, gone: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{}, append(tc.objects, tc.cluster)...)
			r := w.reconciler()
			for range tc.passes {
				c, found := read(t, w.client, member())
				if !found {
					t.Fatalf("the Cluster is gone too early\n%s", tc.reason)
				}
				result, err := r.Reconcile(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if _, found = read(t, w.client, member()); found && result.RequeueAfter != removalRetry {
					t.Errorf("a removal that is not done must look again by itself: %+v", result)
				}
			}
			if diff := cmp.Diff(tc.works, worksNow(t, w.client)); diff != "" {
				t.Errorf("Works (-want +got):\n%s\n%s", diff, tc.reason)
			}
			if _, found := read(t, w.client, space(true)); found != tc.namespace {
				t.Errorf("namespace is there: %v\n%s", found, tc.reason)
			}
			if _, found := read(t, w.client, member()); found == tc.gone {
				t.Errorf("Cluster is there: %v\n%s", found, tc.reason)
			}
			if r.leaving.has("m1") == tc.gone {
				t.Errorf("events of its Works are waited for: %v\n%s", !tc.gone, tc.reason)
			}
			if diff := cmp.Diff(tc.events, w.events()); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%s", diff, tc.reason)
			}
		})
	}
}

// TestRemoveLooksLive has a cache that knows nothing: what it does not know must
// not be taken for gone.
func TestRemoveLooksLive(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, member(deleted, ready(metav1.ConditionTrue)), space(true), work("a"))
	r := w.reconciler()
	r.client = interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	c, _ := read(t, w.client, member())
	if _, err := r.Reconcile(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, found := read(t, w.client, space(true)); !found {
		t.Error("the namespace went although a Work is in it")
	}
	if _, found := read(t, w.client, member()); !found {
		t.Error("the Cluster went although a Work of it is there")
	}
}

// TestOrphanRewritten has the Work written anew, without its mark, after it was
// seen to preserve its objects.
func TestOrphanRewritten(t *testing.T) {
	rewritten := false
	w := newWorld(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if _, ok := o.(*workv1alpha1.Work); ok && !rewritten {
				rewritten = true
				now := work("a")
				if err := c.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
					return err
				}
				now.Spec.PreserveResourcesOnDeletion = nil
				if err := c.Update(ctx, now); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o, opts...)
		},
	}, member(deleted, ready(metav1.ConditionTrue), cascade(names.CascadeOrphan)), space(true), work("a", preserving))
	r := w.reconciler()
	for _, want := range []string{"a", "a preserving", "a deleted preserving"} {
		c, _ := read(t, w.client, member())
		if _, err := r.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, worksNow(t, w.client)); diff != "" {
			t.Errorf("a Work must never be deleted without the mark (-want +got):\n%s", diff)
		}
	}
}

// TestUnassign has bindings that no scheduler moves: of what a policy has released,
// or whose scheduling is suspended, or that somebody has made by hand.
func TestUnassign(t *testing.T) {
	suspended := scheduled(newBinding("one", "m1"))
	suspended.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	unplaced := scheduled(globalBinding("global", "m1"))
	unplaced.Spec.Placement = nil
	w := newWorld(t, interceptor.Funcs{}, member(deleted), newBinding("two", "m1", "m2"), suspended, newBinding("other", "m2"), unplaced)
	r := w.reconciler()
	for range 2 {
		c, _ := read(t, w.client, member())
		if _, err := r.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]string{}
	for _, name := range []string{"two", "one", "other"} {
		b, _ := read(t, w.client, newBinding(name))
		got[name] = binding.Clusters(b)
	}
	b, _ := read(t, w.client, globalBinding("global"))
	got["global"] = binding.Clusters(b)
	want := map[string][]string{"two": {"m2"}, "one": nil, "other": {"m2"}, "global": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only the cluster that goes is taken out (-want +got):\n%s", diff)
	}
	if _, found := read(t, w.client, member()); found {
		t.Error("the Cluster is free to go once no binding has it")
	}
}

// TestHeld has a scheduler that does not run: who waits for the cluster to go is told
// what for, once.
func TestHeld(t *testing.T) {
	mine := scheduled(newBinding("mine", "m1"))
	mine.Spec.SchedulerName = "mine"
	w := newWorld(t, interceptor.Funcs{}, member(deleted), scheduled(globalBinding("g", "m1")),
		scheduled(newBinding("a", "m1")), scheduled(newBinding("b", "m1")), mine, newBinding("free", "m1"))
	r := w.reconciler()
	now := epoch
	r.now = func() time.Time { return now }
	pass := func() []string {
		c, _ := read(t, w.client, member())
		if _, err := r.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return w.events()
	}
	if events := pass(); events != nil {
		t.Errorf("a scheduler has a moment to move what it has: %v", events)
	}
	now = now.Add(removalRetry)
	want := []string{"Warning ClusterHeld The cluster stays until its bindings have left it: ResourceBinding default/a (scheduler default-scheduler), " +
		"ResourceBinding default/b (scheduler default-scheduler), ResourceBinding default/mine (scheduler mine), and 1 more. See that their scheduler runs."}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("then it is told (-want +got):\n%s", diff)
	}
	if events := pass(); events != nil {
		t.Errorf("once: %v", events)
	}
}

// TestUnassignConflict has somebody write the binding in between: that must not
// be lost, and the cluster leaves with the next pass.
func TestUnassignConflict(t *testing.T) {
	moved := false
	w := newWorld(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*workv1alpha2.ResourceBinding); ok && !moved {
				moved = true
				now := newBinding("b")
				if err := c.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
					return err
				}
				now.Spec.Clusters = targets([]string{"m1", "m2", "m3"})
				if err := c.Update(ctx, now); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, member(deleted), newBinding("b", "m1", "m2"))
	r := w.reconciler()
	for _, want := range []string{"m1 m2 m3", "m2 m3"} {
		c, _ := read(t, w.client, member())
		if _, err := r.Reconcile(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		b, _ := read(t, w.client, newBinding("b"))
		if got := strings.Join(binding.Clusters(b), " "); got != want {
			t.Errorf("clusters %q, want %q", got, want)
		}
	}
}

func TestRemoveFails(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return errBoom
		},
	}, member(deleted), space(true), work("a"), newBinding("b", "m1"))
	c, _ := read(t, w.client, member())
	if _, err := w.reconciler().Reconcile(t.Context(), c); !errors.Is(err, errBoom) {
		t.Errorf("got error %v", err)
	}
	want := []string{"Warning RemoveExecutionSpaceFailed delete Works in karmada-es-m1: boom"}
	if diff := cmp.Diff(want, w.events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if b, _ := read(t, w.client, newBinding("b")); len(b.Spec.Clusters) > 0 {
		t.Error("one thing that fails must not hold back the other")
	}
}

// Without its finalizer a cluster that was joined again under the name would leave
// its Works behind.
func TestSuccessorKeepsItsFinalizer(t *testing.T) {
	successor := member(finalized)
	successor.UID = "uid-2"
	w := newWorld(t, interceptor.Funcs{}, successor)
	former := member(deleted)
	former.ResourceVersion = "1"
	if _, err := w.reconciler().Reconcile(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1alpha1.Cluster{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(successor), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(successor.Finalizers, got.Finalizers); diff != "" {
		t.Errorf("finalizers of the successor (-want +got):\n%s", diff)
	}
}
