package dependencies

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// expect compares what is attached, what was written and what was told since last
// time.
func (w *world) expect(t *testing.T, reason string, attached, writes, events []string) {
	t.Helper()
	for what, pair := range map[string][2][]string{
		"attached": {attached, w.attached(t)}, "writes": {writes, w.take()}, "events": {events, w.events.take()},
	} {
		if diff := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s\n%s (-want +got):\n%s", reason, what, diff)
		}
	}
}

const (
	got       = "Deployment: Normal GetDependenciesSucceed Get dependencies succeed."
	synced    = "ResourceBinding: Normal SyncScheduleResultToDependenciesSucceed Sync schedule results to dependencies succeed."
	conflicts = "ResourceBinding: Warning DependencyPolicyConflict Dependency policy conflict detected: "
)

// TestStory tells what becomes of a ConfigMap that two Deployments depend on.
func TestStory(t *testing.T) {
	w := newWorld(t, independent("a", "m1:1 m2:2"), independent("b", "m3:1", overwrite, preserve))
	w.all = append(w.all, thing(deployment, "a", "1"), thing(deployment, "b", "1"), thing(configMap, "c", "5"))
	w.refs["a"] = []reference{byName(configMap, "c")}
	w.refs["b"] = []reference{byName(configMap, "c"), byName(configMap, "later")}
	step := func(reason, binding string, attached, writes, events []string) {
		t.Helper()
		if err := w.reconcile(t, binding); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		w.expect(t, reason, attached, writes, events)
	}
	lines := func(all ...string) []string { return all }

	step("One write records, one attaches.", "a-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m1:1 m2:2, label id-a"),
		lines("patch a-deployment", "create c-configmap"), lines(got, synced))
	a := w.get(t, "c-configmap")
	if owner := metav1.GetControllerOf(a); owner == nil || owner.UID != "configmap-c" || owner.Kind != "ConfigMap" || !ptr.Deref(owner.BlockOwnerDeletion, false) {
		t.Errorf("it goes with its object; owner %+v", owner)
	}
	if a.Labels[names.ResourceBindingIDLabel] == "" || !slices.Equal(a.Finalizers, []string{names.ResourceBindingFinalizer}) || a.Spec.Placement != nil {
		t.Errorf("it is a binding as others are, but for its placement: %+v", a)
	}
	rb := w.get(t, "a-deployment")
	if !controllerutil.ContainsFinalizer(rb, names.DependenciesFinalizer) ||
		rb.Annotations[names.DependenciesAnnotation] != `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"c"}]` {
		t.Errorf("recorded: %v, finalizers %v", rb.Annotations, rb.Finalizers)
	}

	step("Again: nothing.", "a-deployment", lines("c-configmap of configmap-c@5 by a-deployment=m1:1 m2:2, label id-a"), nil, nil)
	w.ledger = newLedger()
	step("Nor after a restart.", "a-deployment", lines("c-configmap of configmap-c@5 by a-deployment=m1:1 m2:2, label id-a"), nil, nil)

	step("A second one joins; whoever overwrites or preserves prevails, and what is not there is left out.", "b-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m1:1 m2:2, b-deployment=m3:1, label id-a, label id-b overwrite preserve"),
		lines("patch b-deployment", "patch c-configmap"),
		lines(got, conflicts+"ConflictResolution conflicted (Overwrite vs Abort); PreserveResourcesOnDeletion conflicted (true vs false).", synced))
	step("They go on disagreeing, but that was told.", "b-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m1:1 m2:2, b-deployment=m3:1, label id-a, label id-b overwrite preserve"), nil, nil)

	w.change(t, "a-deployment", func(rb *workv1alpha2.ResourceBinding) { rb.Spec.Clusters = targets("m2:3") })
	step("It follows.", "a-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m2:3, b-deployment=m3:1, label id-a, label id-b overwrite preserve"),
		lines("patch c-configmap"),
		lines(conflicts+"ConflictResolution conflicted (Overwrite vs Abort); PreserveResourcesOnDeletion conflicted (true vs false).", synced))

	w.change(t, "b-deployment", func(rb *workv1alpha2.ResourceBinding) { rb.Spec.PropagateDeps = false })
	step("One leaves: the other's policy counts.", "b-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m2:3, label id-a"),
		lines("patch c-configmap", "patch b-deployment"), nil)
	if rb := w.get(t, "b-deployment"); len(rb.Finalizers) != 0 || len(rb.Annotations) != 0 {
		t.Errorf("nothing of it is left on the binding: %v, %v", rb.Finalizers, rb.Annotations)
	}
	step("Once is enough.", "b-deployment", lines("c-configmap of configmap-c@5 by a-deployment=m2:3, label id-a"), nil, nil)

	w.refs["a"] = nil
	step("The template depends on it no more: the binding stays, and goes nowhere.", "a-deployment",
		lines("c-configmap of configmap-c@5 by "), lines("patch a-deployment", "patch c-configmap"), lines(got, synced))

	w.refs["a"] = []reference{byName(configMap, "c")}
	step("It depends on it again.", "a-deployment",
		lines("c-configmap of configmap-c@5 by a-deployment=m2:3, label id-a"), lines("patch a-deployment", "patch c-configmap"), lines(got, synced))

	if err := w.api.Delete(t.Context(), w.get(t, "a-deployment")); err != nil {
		t.Fatal(err)
	}
	step("Deleted: what it required is free, and it can go.", "a-deployment",
		lines("c-configmap of configmap-c@5 by "), lines("patch c-configmap", "patch a-deployment"), nil)
	if w.get(t, "a-deployment") != nil {
		t.Error("it is still there")
	}
}

func TestDistribute(t *testing.T) {
	attached := func(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		a := &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "c-configmap", Finalizers: []string{names.ResourceBindingFinalizer},
				Labels:          map[string]string{names.ResourceBindingIDLabel: "id-c", label(independent("a", "")): "id-a"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(thing(configMap, "c", "5"), configMap)},
			},
			Spec: workv1alpha2.ResourceBindingSpec{
				Resource:   referenceTo(thing(configMap, "c", "5")),
				RequiredBy: []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "a-deployment", Clusters: targets("m1:1")}},
			},
		}
		for _, f := range change {
			f(a)
		}
		return a
	}
	elsewhere := func(rb *workv1alpha2.ResourceBinding) { rb.Spec.Clusters = targets("m2:1") }
	finalizer := func(rb *workv1alpha2.ResourceBinding) { rb.Finalizers = []string{names.DependenciesFinalizer} }
	placed := func(a *workv1alpha2.ResourceBinding) {
		a.Spec.Placement = &policyv1alpha1.Placement{}
		a.Spec.Clusters = targets("m9")
		a.Labels[names.PropagationPolicyIDLabel] = "policy"
	}
	all := func(w *world) {
		w.all = append(w.all, thing(deployment, "a", "1"), thing(configMap, "c", "5"))
		w.refs["a"] = []reference{byName(configMap, "c")}
	}
	const asItWas = "c-configmap of configmap-c@5 by a-deployment=m1:1, label id-a"
	cases := map[string]struct {
		reason   string
		bindings []*workv1alpha2.ResourceBinding
		set      func(*world)
		attached []string
		writes   []string
		events   []string
		err      error
	}{
		"NotScheduled": {
			"What goes nowhere yet takes nothing along.",
			[]*workv1alpha2.ResourceBinding{independent("a", "")}, all, nil, nil, nil, nil,
		},
		"NowhereAnyMore": {
			"What goes nowhere any more takes nothing along any more.",
			[]*workv1alpha2.ResourceBinding{independent("a", "", finalizer, nothingFits), attached()}, all,
			[]string{"c-configmap of configmap-c@5 by a-deployment=, label id-a"},
			[]string{"patch a-deployment", "patch c-configmap"}, []string{got, synced}, nil,
		},
		"Undecided": {
			"That nobody has said yet where it goes is not that it goes nowhere.",
			[]*workv1alpha2.ResourceBinding{independent("a", "", finalizer), attached()}, all, []string{asItWas}, nil, nil, nil,
		},
		"NoDependencies": {
			"A template that depends on nothing costs nothing.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1")}, func(w *world) { w.all = append(w.all, thing(deployment, "a", "1")) }, nil, nil, nil, nil,
		},
		"NoHook": {
			"An interpreter that knows of no dependencies removes none.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()}, func(w *world) { all(w); w.without = true }, []string{asItWas}, nil, nil, nil,
		},
		"NoTemplate": {
			"A template that is gone takes its binding along, which then is released.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()}, func(w *world) { all(w); w.remove("Deployment", "a") },
			[]string{asItWas}, nil, nil, nil,
		},
		"TemplateUnread": {
			"A template that cannot be read changes nothing.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()},
			func(w *world) { all(w); w.fail = func(string, string) error { return errBoom } }, []string{asItWas}, nil, nil, errBoom,
		},
		"InterpreterFails": {
			"An interpreter that fails changes nothing, and says so.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()}, func(w *world) { all(w); w.failure = errBoom; w.refs = nil },
			[]string{asItWas}, nil, []string{"Deployment: Warning GetDependenciesFailed boom"}, errBoom,
		},
		"ObjectUnread": {
			"A dependency that cannot be read stays attached.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) {
				all(w)
				w.fail = func(_, kind string) error {
					if kind == "ConfigMap" {
						return errBoom
					}
					return nil
				}
			},
			[]string{asItWas}, []string{"patch a-deployment"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed send along ConfigMap default/c: boom"}, errBoom,
		},
		"ListFails": {
			"Nor does one that is selected by labels go because nobody can list.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) {
				all(w)
				w.refs["a"] = []reference{byLabel(configMap, "app", "x")}
				w.fail = func(verb, kind string) error {
					if verb != "discover" && kind == "ConfigMap" {
						return errBoom
					}
					return nil
				}
			},
			[]string{asItWas}, []string{"patch a-deployment"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed send along ConfigMap default with labels app=x: boom\nread the labels of ConfigMap c: boom"}, errBoom,
		},
		"NotServed": {
			"A kind that is not served leaves everything as it is; its objects say when they are back.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()}, func(w *world) { all(w); w.unserved = "ConfigMap" },
			[]string{asItWas}, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"OneFails": {
			"One that fails does not keep the others.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")},
			func(w *world) {
				all(w)
				w.refs["a"] = append(w.refs["a"], byName(schema.GroupVersionKind{Version: "v1", Kind: "Broken"}, "x"))
				w.fail = func(_, kind string) error {
					if kind == "Broken" {
						return errBoom
					}
					return nil
				}
			},
			[]string{asItWas}, []string{"patch a-deployment", "create c-configmap"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed send along Broken default/x: boom"}, errBoom,
		},
		"Labels": {
			"All that a selector matches.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")},
			func(w *world) {
				all(w)
				w.all = append(w.all, thing(configMap, "d", "6", "app=x"), thing(configMap, "e", "7", "app=x"))
				w.refs["a"] = []reference{byLabel(configMap, "app", "x")}
			},
			[]string{"d-configmap of configmap-d@6 by a-deployment=m1:1, label id-a", "e-configmap of configmap-e@7 by a-deployment=m1:1, label id-a"},
			[]string{"patch a-deployment", "create d-configmap", "create e-configmap"}, []string{got, synced}, nil,
		},
		"LabelGone": {
			"What it matches no more is detached.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) { all(w); w.refs["a"] = []reference{byLabel(configMap, "app", "x")} },
			[]string{"c-configmap of configmap-c@5 by "}, []string{"patch a-deployment", "patch c-configmap"}, []string{got, synced}, nil,
		},
		"LabelOfNobody": {
			"What is gone cannot be told to match no more.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) {
				all(w)
				w.refs["a"] = []reference{byLabel(configMap, "app", "x")}
				w.remove("ConfigMap", "c")
			},
			[]string{asItWas}, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"OtherVersion": {
			"An object is the same in each version of its API.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) { all(w); w.refs["a"][0].APIVersion = "v2" }, []string{asItWas}, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"NoNamespace": {
			"A reference that names no namespace means that of the template.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")}, func(w *world) { all(w); w.refs["a"][0].Namespace = "" },
			[]string{asItWas}, []string{"patch a-deployment", "create c-configmap"}, []string{got, synced}, nil,
		},
		"Unsupported": {
			"What cannot be sent along is told, instead of left out in silence.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")},
			func(w *world) {
				all(w)
				r, other, lease := byName(role, "r"), byName(configMap, "c"), byName(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "l")
				r.Namespace, other.Namespace = "", "prod"
				w.refs["a"] = []reference{r, other, lease}
			},
			nil, []string{"patch a-deployment"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed Not sent along: Lease default/l is never propagated; " +
				"ClusterRole /r is cluster-scoped; ConfigMap prod/c is not in namespace default. Select it by a policy of its own."}, nil,
		},
		"InEveryNamespace": {
			"What each cluster makes itself is not replaced by ours.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")},
			func(w *world) {
				all(w)
				w.all = append(w.all, thing(configMap, "kube-root-ca.crt", "2"))
				w.refs["a"] = []reference{byName(configMap, "kube-root-ca.crt")}
			},
			nil, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"Malformed": {
			"Of a reference that is wrong nobody knows what it was to mean.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached()},
			func(w *world) {
				all(w)
				w.refs["a"] = []reference{{APIVersion: "v1", Kind: "Secret", Namespace: "default"}}
			},
			[]string{asItWas}, nil,
			[]string{"Deployment: Warning GetDependenciesFailed dependency on v1 Secret : it has neither a name nor a label selector"}, errAny,
		},
		"Claimed": {
			"What a policy claims as well keeps its own policy and clusters.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1", overwrite, preserve), attached(placed, func(a *workv1alpha2.ResourceBinding) { a.Spec.RequiredBy = nil })}, all,
			[]string{asItWas}, []string{"patch a-deployment", "patch c-configmap"}, []string{got, synced}, nil,
		},
		"Evicted": {
			"Where a template stays until its replacement is healthy it needs what it depends on.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1", func(rb *workv1alpha2.ResourceBinding) {
				rb.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
					{FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeGracefully, Replicas: ptr.To[int32](4)},
					{FromCluster: "m3", PurgeMode: policyv1alpha1.PurgeModeDirectly},
				}
			})}, all,
			[]string{"c-configmap of configmap-c@5 by a-deployment=m1:1 m2:4, label id-a"},
			[]string{"patch a-deployment", "create c-configmap"}, []string{got, synced}, nil,
		},
		"Recreated": {
			"The binding of an earlier object must go first.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached(func(a *workv1alpha2.ResourceBinding) {
				a.OwnerReferences[0].UID, a.Spec.Resource.UID, a.Spec.RequiredBy = "earlier", "earlier", nil
			})}, all,
			[]string{"c-configmap of earlier@5 by label id-a"}, []string{"patch a-deployment"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed send along ConfigMap default/c: attach binding default/c-configmap: " +
				"binding default/c-configmap belongs to an earlier ConfigMap c, and waits for the garbage collector"}, errAny,
		},
		"Going": {
			"A binding that is deleted is waited for.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1"), attached(deleting)}, all,
			[]string{asItWas}, []string{"patch a-deployment"},
			[]string{got, "ResourceBinding: Warning SyncScheduleResultToDependenciesFailed send along ConfigMap default/c: attach binding default/c-configmap: binding default/c-configmap is being deleted"}, errAny,
		},
		"ObjectGoing": {
			"An object that is deleted does not come any more.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1")},
			func(w *world) { all(w); w.all[1].SetDeletionTimestamp(ptr.To(metav1.Unix(1, 0))) }, nil, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"Clash": {
			"Kinds of two groups do not share a binding.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached(func(a *workv1alpha2.ResourceBinding) {
				a.Spec.Resource.APIVersion, a.Spec.RequiredBy, a.Labels = "example.com/v1", nil, nil
			})}, all,
			[]string{"c-configmap of configmap-c@5 by ", "c-configmap--747b9cc474 of configmap-c@5 by a-deployment=m1:1, label id-a"},
			[]string{"patch a-deployment", "create c-configmap--747b9cc474"}, []string{got, synced}, nil,
		},
		"NoIdentity": {
			"A binding without an identity gets one, as others refer to it.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1", func(rb *workv1alpha2.ResourceBinding) { rb.Labels = nil })},
			func(w *world) { all(w); w.refs["a"] = []reference{byName(configMap, "no")} }, nil, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"StatusOnly": {
			"An object that has become newer before this process began: perhaps in its status only.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()}, func(w *world) { all(w); w.all[1].SetResourceVersion("6") },
			[]string{asItWas}, []string{"patch a-deployment"}, []string{got}, nil,
		},
		"Missed": {
			"One that has since: nobody else may have noticed.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m1:1"), attached()},
			func(w *world) { all(w); w.all[1].SetResourceVersion("6"); w.ledger.note(attached()) },
			[]string{"c-configmap of configmap-c@6 by a-deployment=m1:1, label id-a"}, []string{"patch a-deployment", "patch c-configmap"}, []string{got, synced}, nil,
		},
		"ReleaseOnly": {
			"With the gate off nothing is sent along, nor withdrawn.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1", finalizer), attached()}, func(w *world) { all(w); w.releaseOnly = true }, []string{asItWas}, nil, nil, nil,
		},
		"ReleaseOnlyDeleted": {
			"But what is deleted can go.",
			[]*workv1alpha2.ResourceBinding{independent("a", "m2:1", finalizer, deleting), attached()}, func(w *world) { all(w); w.releaseOnly = true },
			[]string{"c-configmap of configmap-c@5 by "}, []string{"patch c-configmap", "patch a-deployment"}, nil, nil,
		},
		"Elsewhere": {
			"What another requires stays as it was.",
			[]*workv1alpha2.ResourceBinding{independent("b", "m2:1", elsewhere), independent("a", "m1:1"), attached(func(a *workv1alpha2.ResourceBinding) {
				a.Spec.RequiredBy[0].Name = "b-deployment"
				a.Labels = map[string]string{names.ResourceBindingIDLabel: "id-c", label(independent("b", "")): "id-b"}
			})},
			func(w *world) { all(w); w.refs["a"] = nil },
			[]string{"c-configmap of configmap-c@5 by b-deployment=m1:1, label id-b"}, nil, nil, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.bindings...)
			tc.set(w)
			err := w.reconcile(t, "a-deployment")
			if !errors.Is(err, tc.err) && !(tc.err == errAny && err != nil) {
				t.Errorf("error %v, want %v\n%s", err, tc.err, tc.reason)
			}
			w.expect(t, tc.reason, tc.attached, tc.writes, tc.events)
			if rb := w.get(t, "a-deployment"); rb != nil && len(tc.writes) > 0 && rb.Labels[names.ResourceBindingIDLabel] == "" {
				t.Error("it has no identity")
			}
			if len(tc.writes) == 0 || err != nil {
				return
			}
			if err := w.reconcile(t, "a-deployment"); err != nil || len(w.take()) > 0 {
				t.Errorf("the second time: %v, or something was written again", err)
			}
		})
	}
}

// errAny stands for an error that nothing tells from others.
var errAny = errors.New("any")

func TestRaces(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, independent("a", "m1:1"), independent("b", "m2:1"))
		w.all = append(w.all, thing(deployment, "a", "1"), thing(deployment, "b", "1"), thing(configMap, "c", "5"))
		w.refs["a"], w.refs["b"] = []reference{byName(configMap, "c")}, []reference{byName(configMap, "c")}
		return w
	}
	// blind makes the cache not know the binding of the ConfigMap yet.
	blind := func(w *world) {
		w.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "c-configmap" {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		}
		w.funcs.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
	}
	const both = "c-configmap of configmap-c@5 by a-deployment=m1:1, b-deployment=m2:1, label id-a, label id-b"

	t.Run("CacheBehind", func(t *testing.T) {
		w := start(t)
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		blind(w)
		w.take()
		if err := w.reconcile(t, "b-deployment"); err != nil {
			t.Fatal(err)
		}
		w.events.take()
		w.expect(t, "What this process has made is not made again.", []string{both}, []string{"patch b-deployment", "patch c-configmap"}, nil)
	})
	t.Run("AlreadyExists", func(t *testing.T) {
		w := start(t)
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		blind(w)
		w.ledger = newLedger()
		w.take()
		if err := w.reconcile(t, "b-deployment"); err != nil {
			t.Fatal(err)
		}
		w.events.take()
		w.expect(t, "What somebody else has made is joined.", []string{both}, []string{"patch b-deployment", "create c-configmap", "patch c-configmap"}, nil)
	})
	t.Run("Conflict", func(t *testing.T) {
		w := start(t)
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		w.take()
		w.events.take()
		once := true
		w.funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if once && o.GetName() == "c-configmap" {
				once = false
				w.change(t, "c-configmap", func(a *workv1alpha2.ResourceBinding) {
					a.Spec.RequiredBy = append(a.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "default", Name: "z"})
				})
			}
			return c.Patch(ctx, o, p, opts...)
		}
		if err := w.reconcile(t, "b-deployment"); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "What others have written meanwhile stays.",
			[]string{"c-configmap of configmap-c@5 by a-deployment=m1:1, b-deployment=m2:1, label id-a, label id-b, z="},
			[]string{"patch b-deployment", "patch c-configmap", "patch c-configmap"}, []string{got, synced})
	})
	t.Run("ReleaseAsksLive", func(t *testing.T) {
		w := start(t)
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(t.Context(), w.get(t, "a-deployment")); err != nil {
			t.Fatal(err)
		}
		blind(w)
		w.take()
		w.events.take()
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "What the cache does not know yet would be attached for ever.",
			[]string{"c-configmap of configmap-c@5 by "}, []string{"patch c-configmap", "patch a-deployment"}, nil)
	})
	t.Run("ReleaseFails", func(t *testing.T) {
		w := start(t)
		if err := w.reconcile(t, "a-deployment"); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(t.Context(), w.get(t, "a-deployment")); err != nil {
			t.Fatal(err)
		}
		w.funcs.Patch = func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return errBoom
		}
		if err := w.reconcile(t, "a-deployment"); !errors.Is(err, errBoom) {
			t.Errorf("error %v", err)
		}
		if rb := w.get(t, "a-deployment"); rb == nil || !controllerutil.ContainsFinalizer(rb, names.DependenciesFinalizer) {
			t.Error("it must not go before what it required is released")
		}
	})
}

func TestRefresh(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha2.ResourceBinding)
		set    func(*world)
		writes []string
	}{
		"Newer": {"It is rendered anew.", nil, func(w *world) { w.all[0].SetResourceVersion("6") }, []string{"patch c-configmap"}},
		"Same":  {"Nothing has changed.", nil, func(*world) {}, nil},
		"Older": {"A cache that lags takes nothing back.", nil, func(w *world) { w.all[0].SetResourceVersion("4") }, nil},
		"Anew":  {"Another object has another binding.", nil, func(w *world) { w.all[0].SetResourceVersion("6"); w.all[0].SetUID("x") }, nil},
		"Gone":  {"An object that is gone takes its binding along.", nil, func(w *world) { w.all = nil }, nil},
		"Claimed": {"What a policy claims is kept up to date by stage bind.", func(a *workv1alpha2.ResourceBinding) {
			a.Labels = map[string]string{names.PropagationPolicyIDLabel: "x"}
		}, func(w *world) { w.all[0].SetResourceVersion("6") }, nil},
		"Unneeded": {"What goes nowhere need not be rendered.", func(a *workv1alpha2.ResourceBinding) { a.Spec.RequiredBy = nil }, func(w *world) { w.all[0].SetResourceVersion("6") }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-configmap"},
				Spec: workv1alpha2.ResourceBindingSpec{
					Resource:   referenceTo(thing(configMap, "c", "5")),
					RequiredBy: []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "a-deployment"}},
				},
			}
			if tc.change != nil {
				tc.change(a)
			}
			w := newWorld(t, a)
			w.all = append(w.all, thing(configMap, "c", "5"))
			tc.set(w)
			if err := w.reconcile(t, "c-configmap"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.writes, w.take(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nwrites (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
