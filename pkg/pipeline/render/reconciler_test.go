package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// web is the classic name of the Work of deployment.
const web = "web-7b7cc5b9ff"

func clusterRole(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q,"uid":"uid-role"},"rules":[]}`, name))
}

func TestRender(t *testing.T) {
	namesOf := func(kind, name, namespace string) string { return names.Work(kind, name, namespace) }
	cases := map[string]struct {
		reason   string
		template func(*testing.T) *unstructured.Unstructured
		binding  []func(binding.Object)
		objects  []client.Object
		// check gets Works and manifests by cluster.
		want  map[string]string // name of the Work by cluster
		check func(works map[string]*workv1alpha1.Work, manifests map[string]*unstructured.Unstructured) string
	}{
		"Duplicated": {
			reason:   "Each cluster gets the replicas that the scheduler gave it.",
			template: deployment, binding: []func(binding.Object){replicas(3), to("m1=3", "m2=2")},
			want: map[string]string{"m1": web, "m2": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "replicas"), at(m["m2"], "spec", "replicas"), at(m["m1"], "status")) + want("3 2 <nil>")
			},
		},
		"NoWorkload": {
			reason:   "A binding without replicas leaves the template's alone.",
			template: deployment, binding: []func(binding.Object){to("m1")},
			want: map[string]string{"m1": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "replicas")) + want("3")
			},
		},
		"NoShare": {
			reason:   "A workload of which a cluster has no replicas has none there.",
			template: deployment,
			binding: []func(binding.Object){to("m1"), func(b binding.Object) {
				b.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
			}},
			want: map[string]string{"m1": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "replicas")) + want("0")
			},
		},
		"Components": {
			reason:   "What has components has no number of replicas to divide: to set 0 would stop it.",
			template: deployment,
			binding: []func(binding.Object){to("m1"), func(b binding.Object) {
				b.BindingSpec().Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}}
			}},
			want: map[string]string{"m1": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "replicas")) + want("3")
			},
		},
		"RequiredBy": {
			reason:   "What others depend on goes where they are; where it is scheduled itself, that counts.",
			template: deployment,
			binding: []func(binding.Object){replicas(3), to("m1=3"), func(b binding.Object) {
				b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "x", Clusters: targets("m1=9", "m2=4")}}
			}},
			want: map[string]string{"m1": web, "m2": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "replicas"), at(m["m2"], "spec", "replicas")) + want("3 4")
			},
		},
		"Completions": {
			reason: "The completions of a divided Job are divided by its replicas (behaviour/14.2: 13 by 3, 2, 1).",
			template: func(t *testing.T) *unstructured.Unstructured {
				return object(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"j","uid":"u"},"spec":{"parallelism":6,"completions":13,"ttlSecondsAfterFinished":9}}`)
			},
			binding: []func(binding.Object){replicas(6), divided, to("m1=3", "m2=2", "m3=1")},
			want:    map[string]string{"m1": namesOf("Job", "j", "default"), "m2": namesOf("Job", "j", "default"), "m3": namesOf("Job", "j", "default")},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "completions"), at(m["m2"], "spec", "completions"), at(m["m3"], "spec", "completions"),
					at(m["m1"], "spec", "parallelism"), at(m["m1"], "spec", "ttlSecondsAfterFinished")) + want("7 4 2 3 <nil>")
			},
		},
		"CompletionsDuplicated": {
			reason: "The completions of a duplicated Job are not.",
			template: func(t *testing.T) *unstructured.Unstructured {
				return object(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"default","name":"j","uid":"u"},"spec":{"parallelism":2,"completions":5}}`)
			},
			binding: []func(binding.Object){replicas(2), to("m1=2")},
			want:    map[string]string{"m1": namesOf("Job", "j", "default")},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return fmt.Sprint(at(m["m1"], "spec", "completions")) + want("5")
			},
		},
		"Marks": {
			reason:   "Work and manifest lead back to the binding, and the manifest to the template as it was.",
			template: deployment, binding: []func(binding.Object){to("m1")},
			want: map[string]string{"m1": web},
			check: func(w map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				id := w["m1"].Labels[names.WorkIDLabel]
				return cmp.Diff(map[string]string{names.ResourceBindingIDLabel: "id-1", names.WorkIDLabel: id}, w["m1"].Labels) +
					cmp.Diff(map[string]string{
						names.ResourceBindingNamespaceAnnotation: "default", names.ResourceBindingNameAnnotation: "web-deployment",
						names.ConflictResolutionAnnotation: "abort",
					}, w["m1"].Annotations) +
					cmp.Diff(map[string]string{"app": "web", names.ResourceBindingIDLabel: "id-1", names.WorkIDLabel: id, names.ManagedLabel: "true"}, m["m1"].GetLabels()) +
					cmp.Diff(map[string]string{
						names.ResourceBindingNamespaceAnnotation: "default", names.ResourceBindingNameAnnotation: "web-deployment",
						names.ConflictResolutionAnnotation: "abort", names.TemplateGenerationAnnotation: "3", names.TemplateUIDAnnotation: "uid-web",
						names.WorkNamespaceAnnotation: "karmada-es-m1", names.WorkNameAnnotation: web,
						names.ManagedLabelsAnnotation:      "app,karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id",
						names.ManagedAnnotationsAnnotation: "resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
					}, m["m1"].GetAnnotations()) + ptrs(w["m1"], false, false)
			},
		},
		"ClusterScope": {
			reason:   "What has no namespace is bound by a ClusterResourceBinding; colons are no names of Works.",
			template: func(t *testing.T) *unstructured.Unstructured { return clusterRole(t, "system:foo") },
			binding:  []func(binding.Object){to("m1")},
			want:     map[string]string{"m1": "system.foo-5f7d88f69"},
			check: func(w map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return strings.Join([]string{w["m1"].Labels[names.ClusterResourceBindingIDLabel], w["m1"].Annotations[names.ClusterResourceBindingNameAnnotation],
					m["m1"].GetLabels()[names.ClusterResourceBindingIDLabel], m["m1"].GetName()}, " ") + want("id-1 system.foo-clusterrole id-1 system:foo")
			},
		},
		"Suspended": {
			reason:   "All clusters are held back.",
			template: deployment,
			binding: []func(binding.Object){to("m1"), func(b binding.Object) {
				b.BindingSpec().Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
				b.BindingSpec().PreserveResourcesOnDeletion = ptr.To(true)
			}},
			want: map[string]string{"m1": web},
			check: func(w map[string]*workv1alpha1.Work, _ map[string]*unstructured.Unstructured) string {
				return ptrs(w["m1"], true, true)
			},
		},
		"SuspendedSome": {
			reason:   "Some clusters are held back.",
			template: deployment,
			binding: []func(binding.Object){to("m1", "m2"), func(b binding.Object) {
				b.BindingSpec().Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
					DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}},
				}}
			}},
			want: map[string]string{"m1": web, "m2": web},
			check: func(w map[string]*workv1alpha1.Work, _ map[string]*unstructured.Unstructured) string {
				return ptrs(w["m1"], false, false) + ptrs(w["m2"], true, false)
			},
		},
		"State": {
			reason:   "The only copy, after an eviction that purged the old one, gets the state of that.",
			template: deployment,
			binding: []func(binding.Object){to("m2"), evicted("m1", policyv1alpha1.PurgeModeDirectly), func(b binding.Object) {
				b.BindingSpec().GracefulEvictionTasks[0].PreservedLabelState = map[string]string{"state": "7"}
			}},
			want: map[string]string{"m2": web},
			check: func(_ map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				return m["m2"].GetLabels()["state"] + want("7")
			},
		},
		"Taken": {
			reason:   "A Work of something else keeps the classic name.",
			template: deployment, binding: []func(binding.Object){to("m1")},
			objects: []client.Object{&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: web}}},
			want:    map[string]string{"m1": names.WorkBeside(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", "default")},
		},
		"NoName": {
			reason: "What makes no name of a Work is named otherwise.",
			template: func(t *testing.T) *unstructured.Unstructured {
				return clusterRole(t, "a_b")
			},
			binding: []func(binding.Object){to("m1"), func(b binding.Object) { b.SetName("x") }},
			want:    map[string]string{"m1": names.WorkBeside(schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, "a_b", "")},
		},
		"Overrides": {
			reason:   "Override policies of the cluster apply, and the Work says which.",
			template: deployment, binding: []func(binding.Object){to("m1", "m2")},
			objects: []client.Object{
				cluster("m1", map[string]string{"zone": "a"}), cluster("m2", nil),
				&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: policyv1alpha1.OverrideSpec{
					OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: image("r.io")}},
				}},
				&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "zone-a"}, Spec: policyv1alpha1.OverrideSpec{
					OverrideRules: []policyv1alpha1.RuleWithCluster{{
						TargetCluster: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}},
						Overriders:    image("a.io"),
					}},
				}},
				&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "elsewhere"}, Spec: policyv1alpha1.OverrideSpec{
					OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: image("never")}},
				}},
			},
			want: map[string]string{"m1": web, "m2": web},
			check: func(w map[string]*workv1alpha1.Work, m map[string]*unstructured.Unstructured) string {
				images := fmt.Sprint(at(m["m1"], "spec", "template", "spec", "containers"), at(m["m2"], "spec", "template", "spec", "containers"))
				a1, a2 := w["m1"].Annotations, w["m2"].Annotations
				const all = `[{"policyName":"all","overriders":{"imageOverrider":[{"component":"Registry","operator":"replace","value":"r.io"}]}}]`
				return images + want("[map[image:a.io/nginx:1 name:c]] [map[image:r.io/nginx:1 name:c]]") +
					cmp.Diff([]string{all, all}, []string{a1[names.AppliedClusterOverridesAnnotation], a2[names.AppliedClusterOverridesAnnotation]}) +
					cmp.Diff([]string{strings.NewReplacer("all", "zone-a", "r.io", "a.io").Replace(all), ""}, []string{a1[names.AppliedOverridesAnnotation], a2[names.AppliedOverridesAnnotation]})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := tc.template(t)
			pristine := template.DeepCopy()
			b := bound(template, tc.binding...)
			w := newWorld(t, append(tc.objects, template, b)...)
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatalf("%v\n%s", err, tc.reason)
			}
			writes := w.writes
			works, manifests, got := map[string]*workv1alpha1.Work{}, map[string]*unstructured.Unstructured{}, map[string]string{}
			for _, work := range w.works(t) {
				if _, bound := binding.OfWork(work); !bound {
					continue
				}
				cluster, _ := names.ClusterOfExecutionNamespace(work.Namespace)
				works[cluster], manifests[cluster], got[cluster] = work, manifestOf(t, work), work.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s\nWorks (-want +got):\n%s", tc.reason, diff)
			}
			if tc.check != nil {
				if problem := checked(tc.check(works, manifests)); problem != "" {
					t.Errorf("%s\n%s", tc.reason, problem)
				}
			}
			creates := slices.DeleteFunc(slices.Clone(writes), func(s string) bool { return !strings.HasPrefix(s, "create *v1alpha1.Work") })
			if len(writes) != len(tc.want) || len(creates) != len(tc.want) {
				t.Errorf("a new Work is one write: %q", writes)
			}
			if !w.hasEvent("Binding "+b.GetName(), names.EventSyncWorkSucceed) || !w.hasEvent(template.GetKind()+" "+template.GetName(), names.EventSyncWorkSucceed) {
				t.Errorf("binding and template are told: %q", w.events)
			}
			if diff := cmp.Diff(pristine, template); diff != "" {
				t.Errorf("the template is shared, and was changed (-want +got):\n%s", diff)
			}
			if _, err := w.reconcile(t, b); err != nil || len(w.writes)+len(w.events) > 0 {
				t.Errorf("the same again writes nothing and tells nothing: %q, %q, %v", w.writes, w.events, err)
			}
		})
	}
}

// at returns what is somewhere in an object.
func at(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// want, appended to a text, asks checked to compare the two.
func want(s string) string { return "\x00" + s + "\x01" }

func checked(s string) string {
	got, rest, ok := strings.Cut(s, "\x00")
	if !ok {
		return s
	}
	wanted, more, _ := strings.Cut(rest, "\x01")
	if got == wanted {
		return checked(more)
	}
	return fmt.Sprintf("got  %s\nwant %s\n%s", got, wanted, more)
}

func ptrs(w *workv1alpha1.Work, suspend, preserve bool) string {
	if w.Spec.SuspendDispatching == nil || w.Spec.PreserveResourcesOnDeletion == nil {
		return "options of the Work are not set"
	}
	return fmt.Sprint(*w.Spec.SuspendDispatching, *w.Spec.PreserveResourcesOnDeletion) + want(fmt.Sprint(suspend, preserve))
}

func image(registry string) policyv1alpha1.Overriders {
	return policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
		Component: policyv1alpha1.ImageComponentRegistry, Operator: policyv1alpha1.OverriderOpReplace, Value: registry,
	}}}
}

func TestConflictResolution(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		binding  policyv1alpha1.ConflictResolution
		want     string
	}{
		"None":             {"Nobody says anything.", "", "", "abort"},
		"Binding":          {"The policy says so.", "", policyv1alpha1.ConflictOverwrite, "overwrite"},
		"TemplateWins":     {"The template has the last word.", "abort", policyv1alpha1.ConflictOverwrite, "abort"},
		"TemplateWinsToo":  {"In both directions.", "overwrite", policyv1alpha1.ConflictAbort, "overwrite"},
		"TemplateNonsense": {"What makes no sense says nothing.", "Overwrite", policyv1alpha1.ConflictAbort, "abort"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			if tc.template != "" {
				template.SetAnnotations(map[string]string{names.ConflictResolutionAnnotation: tc.template})
			}
			if got := conflictResolution(&workv1alpha2.ResourceBindingSpec{ConflictResolution: tc.binding}, template); got != tc.want {
				t.Errorf("got %q, want %q\n%s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestPreservedState(t *testing.T) {
	state := map[string]string{"a": "b"}
	task := func(mode policyv1alpha1.PurgeMode, before ...string) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{PurgeMode: mode, PreservedLabelState: state, ClustersBeforeFailover: before}
	}
	cases := map[string]struct {
		reason  string
		targets []workv1alpha2.TargetCluster
		tasks   []workv1alpha2.GracefulEvictionTask
		want    map[string]string
	}{
		"One":      {"The only target takes over.", targets("m2"), []workv1alpha2.GracefulEvictionTask{task("Directly", "m1")}, state},
		"Two":      {"Of two it is not known which one does.", targets("m2", "m3"), []workv1alpha2.GracefulEvictionTask{task("Directly")}, nil},
		"Before":   {"A cluster that had a copy before takes nothing over.", targets("m2"), []workv1alpha2.GracefulEvictionTask{task("Directly", "m2")}, nil},
		"Graceful": {"The old copy is still there.", targets("m2"), []workv1alpha2.GracefulEvictionTask{task("Gracefully")}, nil},
		"Last":     {"The last task counts.", targets("m2"), []workv1alpha2.GracefulEvictionTask{task("Directly"), task("Never")}, nil},
		"NoTask":   {"Nothing failed.", targets("m2"), nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := preservedState(&workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: tc.tasks}, tc.targets)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTakeOver(t *testing.T) {
	namespace := object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","uid":"u"}}`)
	owned := func(kind, owner string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			w.Labels, w.Annotations = nil, nil
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: owner, UID: "u"}}
		}
	}
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
		takes  bool
	}{
		"Namespace":      {"The Namespace went everywhere anyway; now a policy says how.", owned("Namespace", "team"), true},
		"OtherNamespace": {"That is another one.", owned("Namespace", "other"), false},
		"OtherOwner":     {"That is something else.", owned("Cluster", "team"), false},
		"Former": {"A former binding of that name left it behind.", func(w *workv1alpha1.Work) {
			w.Labels[names.ClusterResourceBindingIDLabel] = "former"
		}, true},
		"OtherBinding": {"It is another binding's.", func(w *workv1alpha1.Work) {
			w.Labels[names.ClusterResourceBindingIDLabel] = "other"
			w.Annotations[names.ClusterResourceBindingNameAnnotation] = "other"
		}, false},
	}
	for label, tc := range cases {
		t.Run(label, func(t *testing.T) {
			b := bound(namespace, to("m1"))
			name := names.Work("Namespace", "team", "")
			w := newWorld(t, namespace, b, aWork(b, "m1", name, tc.change))
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
			work := w.works(t)["karmada-es-m1/"+name]
			if got := work.Labels[names.ClusterResourceBindingIDLabel] == "id-1"; got != tc.takes || len(w.works(t)) != map[bool]int{true: 1, false: 2}[tc.takes] {
				t.Errorf("taken over: %v, Works: %q\n%s", got, slices.Sorted(maps.Keys(w.works(t))), tc.reason)
			}
		})
	}
}

func TestOverrideFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   policyv1alpha1.Overriders
		note   []string
	}{
		"Path": {
			reason: "The event names the policy, the rule and the path.",
			rule:   policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/none/such", Operator: policyv1alpha1.OverriderOpRemove}}},
			note:   []string{"Apply override policy(default/bad) for cluster(m1) failed", "overrideRules[0]", "/spec/none/such"},
		},
		"Identity": {
			reason: "A policy of one namespace must not put anything into another.",
			rule: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
				Path: "/metadata/namespace", Operator: policyv1alpha1.OverriderOpReplace, Value: raw(`"kube-system"`),
			}}},
			note: []string{"for cluster(m1) failed", "metadata.namespace", "kube-system"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			b := bound(template, to("m1", "m2"))
			bad := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}, Spec: policyv1alpha1.OverrideSpec{
				OverrideRules: []policyv1alpha1.RuleWithCluster{{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}, Overriders: tc.rule}},
			}}
			before := aWork(b, "m1", web)
			orphan := aWork(b, "m3", web)
			w := newWorld(t, template, b, bad, cluster("m1", nil), cluster("m2", nil), before, orphan)
			_, err := w.reconcile(t, b)
			if !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("it is told, but not tried again before something changes: %v", err)
			}
			works := w.works(t)
			if len(works["karmada-es-m1/"+web].Spec.Workload.Manifests) != 0 || works["karmada-es-m2/"+web] == nil || works["karmada-es-m3/"+web].DeletionTimestamp.IsZero() {
				t.Errorf("the member stays as it was, and others go on: %q", w.writes)
			}
			for _, on := range []string{"ResourceBinding web-deployment: Warning", "Deployment web: Warning"} {
				if !w.hasEvent(append(tc.note, on, names.EventApplyOverridePolicyFailed)...) || !w.hasEvent(on, names.EventSyncWorkFailed) {
					t.Errorf("no event on %s\n%s\n%s", on, strings.Join(w.events, "\n"), tc.reason)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*testing.T, *world)
		final   bool
		is      string
	}{
		"TooLarge": {
			reason: "What is too large is told once, and waits for a smaller one.",
			prepare: func(_ *testing.T, w *world) {
				w.templates["default/web"].SetAnnotations(map[string]string{"x": strings.Repeat("x", 2<<20)})
			},
			final: true, is: "at most",
		},
		"NoSpace": {
			reason: "Nothing goes before its replacement is there.",
			prepare: func(_ *testing.T, w *world) {
				w.before = func(verb string, o client.Object) error {
					if verb == "create" {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, o.GetNamespace())
					}
					return nil
				}
			},
			is: "not found",
		},
		"Unreadable": {
			reason:  "A template that cannot be read is no template that is gone.",
			prepare: func(_ *testing.T, w *world) { w.failing = errBoom }, is: "boom",
		},
		"Malformed": {
			reason: "What cannot be interpreted stays as it is.",
			prepare: func(t *testing.T, w *world) {
				w.templates["default/web"] = object(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"},"spec":"none"}`)
			},
			is: "set 3 replicas",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			b := bound(template, replicas(3), to("m1=3"))
			w := newWorld(t, template, b, aWork(b, "m2", web))
			tc.prepare(t, w)
			_, err := w.reconcile(t, b)
			if err == nil || !strings.Contains(err.Error(), tc.is) || errors.Is(err, reconcile.TerminalError(nil)) != tc.final {
				t.Errorf("got %v, final %v\n%s", err, errors.Is(err, reconcile.TerminalError(nil)), tc.reason)
			}
			if w.works(t)["karmada-es-m2/"+web].DeletionTimestamp != nil {
				t.Errorf("writes: %q\n%s", w.writes, tc.reason)
			}
			if !w.hasEvent("ResourceBinding web-deployment: Warning", names.EventSyncWorkFailed) || !w.hasEvent("Deployment web: Warning", names.EventSyncWorkFailed) {
				t.Errorf("events: %q\n%s", w.events, tc.reason)
			}
		})
	}
}

func TestSilence(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*testing.T, *world)
	}{
		"Gone":     {"The binding goes after its template, and its Works after it.", func(_ *testing.T, w *world) { clear(w.templates) }},
		"Replaced": {"So it does after another template of that name.", func(_ *testing.T, w *world) { w.templates["default/web"].SetUID("another") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			b := bound(template, to("m1"))
			w := newWorld(t, template, b, aWork(b, "m1", web), aWork(b, "m2", web))
			tc.prepare(t, w)
			if _, err := w.reconcile(t, b); err != nil || len(w.writes)+len(w.events) > 0 {
				t.Errorf("%v, %q, %q\n%s", err, w.writes, w.events, tc.reason)
			}
		})
	}
}

func TestReleased(t *testing.T) {
	fingerprint := func(b binding.Object) {
		b.SetAnnotations(map[string]string{names.TemplateFingerprintAnnotation: "a-b"})
	}
	label := func(key string) func(binding.Object) {
		return func(b binding.Object) { b.GetLabels()[key] = "x" }
	}
	cases := map[string]struct {
		reason  string
		binding []func(binding.Object)
		renders bool
	}{
		"Released":  {"What no policy propagates stays as it is in clusters.", []func(binding.Object){fingerprint}, false},
		"Claimed":   {"A policy is what makes it move.", []func(binding.Object){fingerprint, label(names.PropagationPolicyIDLabel)}, true},
		"ByCluster": {"So is one of the other scope.", []func(binding.Object){fingerprint, label(names.ClusterPropagationPolicyIDLabel)}, true},
		"Managed":   {"Others make bindings for purposes of their own.", []func(binding.Object){fingerprint, label(names.BindingManagedByLabel)}, true},
		"Needed": {"A dependency follows what depends on it.", []func(binding.Object){fingerprint, func(b binding.Object) {
			b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "other", Clusters: targets("m1")}}
		}}, true},
		"ByHand": {"A binding that a user wrote never had a policy.", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			b := bound(template, append(tc.binding, to("m1"))...)
			w := newWorld(t, template, b, aWork(b, "m1", web))
			if _, err := w.reconcile(t, b); err != nil || (len(w.writes) > 0) != tc.renders {
				t.Errorf("%v, %q\n%s", err, w.writes, tc.reason)
			}
		})
	}
	template := deployment(t)
	b := bound(template, fingerprint, to("m1", "m2"))
	w := newWorld(t, template, b, aWork(b, "m1", web))
	if _, err := w.reconcile(t, b); err != nil || len(w.works(t)) != 2 {
		t.Errorf("a Work that is missing is made, also of what was released: %v, %q", err, w.writes)
	}
}

func TestLetGoOfWhatChanged(t *testing.T) {
	template := object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","uid":"uid-team"}}`)
	b := bound(template, to("m2"))
	old := aWork(b, "m1", names.Work("Namespace", "team", ""))
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "team", UID: "uid-team"}}
	w := newWorld(t, template, b, old)
	refused := false
	w.before = func(verb string, o client.Object) error {
		if verb == "patch" && o.GetNamespace() == "karmada-es-m1" && !refused {
			refused = true
			return apierrors.NewConflict(schema.GroupResource{Resource: "works"}, o.GetName(), errBoom)
		}
		return nil
	}
	if _, err := w.reconcile(t, b); err != nil || w.hasEvent(names.EventCleanupWorkFailed) {
		t.Errorf("a conflict is read again, and nothing to tell: %v, %q", err, w.events)
	}
	if left, ok := w.works(t)["karmada-es-m1/"+old.Name]; !ok || left.Labels[names.ClusterResourceBindingIDLabel] != "" {
		t.Errorf("the Work stays, and is nobody's: %v", left)
	}
}

// A binding that the cache still has may be gone, and another one of its name be
// there: without the finalizer that one's Works would stay when it goes.
func TestSuccessorIsLeftAlone(t *testing.T) {
	template := deployment(t)
	successor := bound(template, to("m1"))
	successor.SetUID("uid-of-successor")
	successor.SetLabels(map[string]string{names.ResourceBindingIDLabel: "id-2"})
	w := newWorld(t, template, successor, aWork(successor, "m1", names.Work("Deployment", "web", "default")))
	former, _ := bound(template, to("m1")).(*workv1alpha2.ResourceBinding)
	now := metav1.Now()
	former.DeletionTimestamp, former.ResourceVersion = &now, "1"
	if _, err := reconcilerOf[*workv1alpha2.ResourceBinding](w).Reconcile(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	got := &workv1alpha2.ResourceBinding{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(successor), got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Finalizers, successor.GetFinalizers()) || len(w.works(t)) != 1 {
		t.Errorf("finalizers of the successor are %q, want %q; it has %d Works, want 1", got.Finalizers, successor.GetFinalizers(), len(w.works(t)))
	}
}
