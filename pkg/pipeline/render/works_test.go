package render

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// remaining returns the clusters that have a Work that is not going.
func remaining(t *testing.T, w *world) []string {
	t.Helper()
	var clusters []string
	for _, work := range w.works(t) {
		if work.DeletionTimestamp.IsZero() {
			clusters = append(clusters, strings.TrimPrefix(work.Namespace, names.ExecutionNamespacePrefix))
		}
	}
	slices.Sort(clusters)
	return clusters
}

func TestCleanUp(t *testing.T) {
	attached := func(b binding.Object) { b.BindingSpec().Placement = nil }
	cases := map[string]struct {
		reason  string
		binding []func(binding.Object)
		there   []string // clusters with a Work
		live    func(binding.Object)
		want    []string
		again   bool // asks to be looked at again
	}{
		"Moved":    {reason: "A cluster that was left is cleaned up.", binding: []func(binding.Object){to("m2")}, there: []string{"m1"}, want: []string{"m2"}},
		"Same":     {reason: "Nothing is left.", binding: []func(binding.Object){to("m1")}, there: []string{"m1"}, want: []string{"m1"}},
		"Graceful": {reason: "A cluster that is being left keeps its copy.", binding: []func(binding.Object){to("m2"), evicted("m1", policyv1alpha1.PurgeModeGracefully)}, there: []string{"m1"}, want: []string{"m1", "m2"}},
		"Never":    {reason: "So does one that is not to be cleaned up by itself.", binding: []func(binding.Object){to("m2"), evicted("m1", policyv1alpha1.PurgeModeNever)}, there: []string{"m1"}, want: []string{"m1", "m2"}},
		"Directly": {reason: "The old copy goes before there is a new one.", binding: []func(binding.Object){to("m2"), evicted("m1", policyv1alpha1.PurgeModeDirectly)}, there: []string{"m1"}, again: true},
		"DirectlyNoTarget": {
			reason:  "It goes also while no other cluster has been found.",
			binding: []func(binding.Object){evicted("m1", policyv1alpha1.PurgeModeDirectly)}, there: []string{"m1"}, again: true,
		},
		"DirectlyNeeded": {
			reason: "What others depend on stays where they are, and holds nothing up.",
			binding: []func(binding.Object){to("m2"), evicted("m1", policyv1alpha1.PurgeModeDirectly), func(b binding.Object) {
				b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x", Clusters: targets("m1")}}
			}},
			there: []string{"m1"}, want: []string{"m1", "m2"},
		},
		"NeverScheduled": {reason: "A binding that was restored, and is not scheduled yet, has not left anything.", there: []string{"m1"}, want: []string{"m1"}},
		"NotYet": {
			reason:  "Somebody took the only cluster out; a scheduler has not seen that yet.",
			binding: []func(binding.Object){scheduled(metav1.ConditionTrue, workv1alpha2.ReasonScheduled, 0)}, there: []string{"m1"}, want: []string{"m1"},
		},
		"NoReplicas": {
			reason:  "The scheduler has decided on no cluster for the binding as it is.",
			binding: []func(binding.Object){scheduled(metav1.ConditionTrue, workv1alpha2.ReasonScheduled, 1)}, there: []string{"m1"},
		},
		"NoClusterFit": {
			reason:  "The scheduler says that none is eligible.",
			binding: []func(binding.Object){scheduled(metav1.ConditionFalse, workv1alpha2.ReasonNoClusterFit, 0)}, there: []string{"m1"},
		},
		"SchedulerError": {
			reason:  "A scheduler that could not tell has not decided.",
			binding: []func(binding.Object){scheduled(metav1.ConditionFalse, workv1alpha2.ReasonSchedulerError, 1)}, there: []string{"m1"}, want: []string{"m1"},
		},
		"Attached": {reason: "What nobody depends on any more goes; it is never scheduled.", binding: []func(binding.Object){attached}, there: []string{"m1"}},
		"Stale": {
			reason:  "The binding is another one by now, of which the cache has not heard.",
			binding: []func(binding.Object){to("m2")}, there: []string{"m1"}, want: []string{"m1", "m2"}, again: true,
			live: func(b binding.Object) { b.SetGeneration(2) },
		},
		"StaleDeleted": {
			reason:  "It is being deleted, which has its own way.",
			binding: []func(binding.Object){to("m2")}, there: []string{"m1"}, want: []string{"m1", "m2"}, again: true,
			live: func(b binding.Object) { b.SetDeletionTimestamp(ptr.To(metav1.Now())) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			b := bound(template, tc.binding...)
			objects := []client.Object{template, b}
			for _, c := range tc.there {
				objects = append(objects, aWork(b, c, web))
			}
			w := newWorld(t, objects...)
			if tc.live != nil {
				now, _ := b.DeepCopyObject().(binding.Object)
				tc.live(now)
				w.live = newWorld(t, now).client
			}
			result, err := w.reconcile(t, b)
			if err != nil || (result.RequeueAfter > 0) != tc.again {
				t.Errorf("%+v, %v\n%s", result, err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, remaining(t, w)); diff != "" {
				t.Errorf("%s\nclusters with a Work (-want +got):\n%s\n%q", tc.reason, diff, w.writes)
			}
			if i := slices.IndexFunc(w.writes, func(s string) bool { return strings.HasPrefix(s, "delete") }); i >= 0 &&
				slices.ContainsFunc(w.writes[i:], func(s string) bool { return strings.HasPrefix(s, "create") }) {
				t.Errorf("new Works are made before old ones go: %q", w.writes)
			}
		})
	}
}

func TestPurgeWaits(t *testing.T) {
	template := deployment(t)
	b := bound(template, to("m2"), evicted("m1", policyv1alpha1.PurgeModeDirectly))
	w := newWorld(t, template, b, aWork(b, "m1", web, deleting))
	result, err := w.reconcile(t, b)
	if err != nil || result.RequeueAfter != lookAgain || len(w.writes) > 0 {
		t.Errorf("as long as the old copy is not gone there is no new one: %+v, %v, %q", result, err, w.writes)
	}
	gone := w.works(t)["karmada-es-m1/"+web]
	gone.Finalizers = nil
	if err := w.client.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if result, err = w.reconcile(t, b); err != nil || result.RequeueAfter != 0 || len(remaining(t, w)) != 1 {
		t.Errorf("then there is: %+v, %v, %q", result, err, w.writes)
	}
}

func TestCleanUpFails(t *testing.T) {
	template := deployment(t)
	b := bound(template, to("m2"))
	w := newWorld(t, template, b, aWork(b, "m1", web), aWork(b, "m3", web))
	w.before = func(verb string, o client.Object) error {
		if verb == "delete" && o.GetNamespace() == "karmada-es-m1" {
			return errBoom
		}
		return nil
	}
	if _, err := w.reconcile(t, b); !errors.Is(err, errBoom) || !w.hasEvent("ResourceBinding web-deployment: Warning", names.EventCleanupWorkFailed, "boom") {
		t.Errorf("%v, %q", err, w.events)
	}
	if diff := cmp.Diff([]string{"m1", "m2"}, remaining(t, w)); diff != "" {
		t.Errorf("one that fails does not hold back the others (-want +got):\n%s", diff)
	}
}

func TestWithdraw(t *testing.T) {
	gone := func(b binding.Object) { b.SetDeletionTimestamp(ptr.To(metav1.Now())) }
	owned := func(w *workv1alpha1.Work) {
		w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "team", UID: "u"}}
		w.Annotations[names.ConflictResolutionAnnotation] = "abort"
	}
	namespace := func(t *testing.T) *unstructured.Unstructured {
		return object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","uid":"u"}}`)
	}
	cases := map[string]struct {
		reason   string
		template func(*testing.T) *unstructured.Unstructured
		binding  []func(binding.Object)
		works    func(binding.Object) []client.Object
		hidden   string // from the cache
		want     []string
		check    func(map[string]*workv1alpha1.Work) string
		writes   int
	}{
		"Deleted": {
			reason: "All its Works go with it, and nobody else's.", template: deployment, binding: []func(binding.Object){to("m1"), gone},
			works: func(b binding.Object) []client.Object {
				return []client.Object{aWork(b, "m1", web), aWork(b, "m2", web, deleting), aWork(b, "m3", web, func(w *workv1alpha1.Work) {
					w.Labels[names.ResourceBindingIDLabel] = "other"
				})}
			},
			want: []string{"m3"}, writes: 2,
		},
		"Preserve": {
			reason: "What is to be preserved is, though the Work was not told yet.", template: deployment,
			binding: []func(binding.Object){to("m1"), gone, func(b binding.Object) { b.BindingSpec().PreserveResourcesOnDeletion = ptr.To(true) }},
			works:   func(b binding.Object) []client.Object { return []client.Object{aWork(b, "m1", web)} },
			check: func(w map[string]*workv1alpha1.Work) string {
				if !ptr.Deref(w["karmada-es-m1/"+web].Spec.PreserveResourcesOnDeletion, false) {
					return "it was not told"
				}
				return ""
			},
			writes: 3,
		},
		"Unseen": {
			reason: "A Work that has just been made is not in the cache yet.", template: deployment, binding: []func(binding.Object){to("m1"), gone},
			works:  func(b binding.Object) []client.Object { return []client.Object{aWork(b, "m1", web)} },
			hidden: "m1", writes: 2,
		},
		"Namespace": {
			reason: "A Namespace goes everywhere by itself; the policy that said how is gone.", template: namespace, binding: []func(binding.Object){to("m1"), gone},
			works: func(b binding.Object) []client.Object { return []client.Object{aWork(b, "m1", "team", owned)} },
			want:  []string{"m1"}, writes: 2,
			check: func(w map[string]*workv1alpha1.Work) string {
				if left := w["karmada-es-m1/team"]; len(left.Labels)+len(left.Annotations) > 0 {
					return "it has marks still"
				}
				return ""
			},
		},
		"NoIdentity": {
			reason: "Somebody took the identity off; the Works are known by the binding's name.", template: deployment,
			binding: []func(binding.Object){to("m1"), gone, func(b binding.Object) { b.SetLabels(nil) }},
			works: func(b binding.Object) []client.Object {
				return []client.Object{aWork(b, "m1", web, func(w *workv1alpha1.Work) { w.Labels = map[string]string{names.ResourceBindingIDLabel: "former"} })}
			},
			writes: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := tc.template(t)
			b := bound(template, tc.binding...)
			w := newWorld(t, append(tc.works(b), template, b)...)
			live := w.client
			w.live = live
			if tc.hidden != "" {
				w.client = interceptor.NewClient(live, interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						if _, ok := list.(*workv1alpha1.WorkList); ok {
							return nil
						}
						return c.List(ctx, list, opts...)
					},
				})
			}
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
			w.client = live
			if diff := cmp.Diff(tc.want, remaining(t, w)); diff != "" {
				t.Errorf("%s\nclusters with a Work (-want +got):\n%s", tc.reason, diff)
			}
			if len(w.writes) != tc.writes {
				t.Errorf("writes: %q, want %d", w.writes, tc.writes)
			}
			if tc.check != nil {
				if problem := tc.check(w.works(t)); problem != "" {
					t.Errorf("%s\n%s", problem, tc.reason)
				}
			}
			now, _ := b.DeepCopyObject().(binding.Object)
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the binding goes: %v", err)
			}
		})
	}
}

func TestWithdrawFails(t *testing.T) {
	template := deployment(t)
	b := bound(template, to("m1"), func(b binding.Object) { b.SetDeletionTimestamp(ptr.To(metav1.Now())) })
	w := newWorld(t, template, b, aWork(b, "m1", web))
	w.before = func(verb string, _ client.Object) error {
		if verb == "delete" {
			return errBoom
		}
		return nil
	}
	if _, err := w.reconcile(t, b); !errors.Is(err, errBoom) || !w.hasEvent(names.EventCleanupWorkFailed) {
		t.Errorf("%v, %q", err, w.events)
	}
	now := &workv1alpha2.ResourceBinding{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Errorf("the binding stays as long as it has Works: %v", err)
	}
}

func TestMark(t *testing.T) {
	template := deployment(t)
	b := bound(template, to("m1"), func(b binding.Object) {
		b.SetLabels(map[string]string{"theirs": "x"})
		b.SetFinalizers([]string{"theirs/first"})
	})
	w := newWorld(t, template, b)
	if _, err := w.reconcile(t, b); err != nil {
		t.Fatal(err)
	}
	now := &workv1alpha2.ResourceBinding{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	id := now.Labels[names.ResourceBindingIDLabel]
	if id == "" || now.Labels["theirs"] != "x" || !slices.Equal(now.Finalizers, []string{"theirs/first", names.ResourceBindingFinalizer}) || len(w.writes) != 2 {
		t.Errorf("a binding that somebody else made gets what it needs, with one write: labels %v, finalizers %q, %q", now.Labels, now.Finalizers, w.writes)
	}
	if works := w.works(t); works["karmada-es-m1/"+web].Labels[names.ResourceBindingIDLabel] != id {
		t.Errorf("and then its Works: %q", slices.Sorted(maps.Keys(works)))
	}
}
