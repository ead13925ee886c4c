package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const work = "team-a-5cc7c7959b" // spec: behaviour/14 14.1

var errBoom = errors.New("boom")

// A world is a control plane that counts writes.
type world struct {
	*Reconciler
	api    client.WithWatch
	create func(client.Object) error // in front of creations, when it is set
	writes []string
	events *recorder
}

type recorder struct{ got []string }

var _ events.EventRecorder = (*recorder)(nil)

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.got = append(r.got, fmt.Sprintf("%s %s %s", kind, reason, fmt.Sprintf(note, args...)))
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	skipped, err := exempt.ParseNamespaces([]string{"kube-.*"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{events: &recorder{}, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
	counting := interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes = append(w.writes, "create "+o.GetNamespace()+"/"+o.GetName())
			if w.create != nil {
				if err := w.create(o); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			w.writes = append(w.writes, "update "+o.GetNamespace()+"/"+o.GetName())
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes = append(w.writes, "patch "+o.GetNamespace()+"/"+o.GetName())
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return fmt.Errorf("nothing is deleted here, least of all %s", o.GetName())
		},
	})
	w.Reconciler = &Reconciler{client: counting, live: w.api, propagates: Options{Exempt: skipped}.propagates, record: w.events}
	return w
}

func (w *world) reconcile(t *testing.T, name string) error {
	t.Helper()
	result, err := reconcile.AsReconciler(w.api, w.Reconciler).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	if result != (reconcile.Result{}) {
		t.Errorf("result %+v", result)
	}
	return err
}

func (w *world) take() []string {
	writes := w.writes
	w.writes = nil
	slices.Sort(writes)
	return writes
}

func (w *world) work(t *testing.T, cluster, name string) *workv1alpha1.Work {
	t.Helper()
	got := &workv1alpha1.Work{}
	err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-" + cluster, Name: name}, got)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// shipped returns the labels of the Namespace that a cluster gets.
func (w *world) shipped(t *testing.T, cluster, name string) map[string]string {
	t.Helper()
	got := w.work(t, cluster, name)
	if got == nil {
		return nil
	}
	ns := &corev1.Namespace{}
	if err := json.Unmarshal(got.Spec.Workload.Manifests[0].Raw, ns); err != nil {
		t.Fatal(err)
	}
	delete(ns.Labels, names.WorkIDLabel)
	return ns.Labels
}

func namespace(name string, change ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	for _, f := range change {
		f(ns)
	}
	return ns
}

func labelled(pairs ...string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) {
		ns.Labels = map[string]string{}
		for _, pair := range pairs {
			k, v, _ := strings.Cut(pair, "=")
			ns.Labels[k] = v
		}
	}
}

func going(ns *corev1.Namespace) {
	ns.Finalizers = []string{"test/hold"}
	ns.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
}

func cluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
	for _, f := range change {
		f(c)
	}
	return c
}

func leaving(c *clusterv1alpha1.Cluster) {
	c.Finalizers = []string{names.ClusterFinalizer}
	c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
}

// labelPolicy makes a policy that puts a label on Namespaces of a name, in one cluster.
func labelPolicy(name, selects, cluster, key, value string) *policyv1alpha1.ClusterOverridePolicy {
	return &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace", Name: selects}},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
				Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{key: value}},
				}},
			}},
		},
	}
}

func plaintextPolicy(path, value string) *policyv1alpha1.ClusterOverridePolicy {
	p := labelPolicy("bad", "team-a", "m1", "k", "v")
	p.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
		{Path: path, Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte(value)}},
	}}
	return p
}

func plane(objects ...client.Object) []client.Object {
	return append([]client.Object{cluster("m1"), cluster("m2"), namespace("karmada-es-m1"), namespace("karmada-es-m2")}, objects...)
}

const both = "create karmada-es-m1/" + work + ", create karmada-es-m2/" + work

func TestReconcile(t *testing.T) {
	bad := plaintextPolicy("/no/such/place", `"x"`)
	otherName := plaintextPolicy("/metadata/name", `"x"`)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		of      string
		writes  string
		events  []string
		err     string
	}{
		"All":      {"Every cluster gets it, ready or not.", plane(namespace("team-a")), "team-a", both, nil, ""},
		"Default":  {"Every cluster has default.", plane(namespace("default")), "default", "", nil, ""},
		"Reserved": {"What is ours stays ours.", plane(namespace("karmada-system")), "karmada-system", "", nil, ""},
		"Works":    {"Nor do the namespaces of Works travel.", plane(), "karmada-es-m1", "", nil, ""},
		"Skipped":  {"What a flag exempts.", plane(namespace("kube-system")), "kube-system", "", nil, ""},
		"OptedOut": {"What a label exempts.", plane(namespace("team-a", labelled("namespace.karmada.io/skip-auto-propagation=true"))), "team-a", "", nil, ""},
		"OptedOUT": {"In any case.", plane(namespace("team-a", labelled("namespace.karmada.io/skip-auto-propagation=TRUE"))), "team-a", "", nil, ""},
		"NotOpted": {"Another value does not.", plane(namespace("team-a", labelled("namespace.karmada.io/skip-auto-propagation=false"))), "team-a", both, nil, ""},
		"Going":    {"What goes does not come.", plane(namespace("team-a", going)), "team-a", "", nil, ""},
		"Leaving": {
			"A cluster that leaves gets nothing any more.",
			[]client.Object{cluster("m1", leaving), namespace("karmada-es-m1"), cluster("m2"), namespace("karmada-es-m2"), namespace("team-a")}, "team-a",
			"create karmada-es-m2/" + work, nil, "",
		},
		"NoSpace": {
			"A cluster without a namespace for Works waits for it, and bothers nobody.",
			[]client.Object{cluster("m1"), cluster("m2"), namespace("karmada-es-m2"), cluster("m3"), namespace("karmada-es-m3", going), namespace("team-a")}, "team-a",
			"create karmada-es-m2/" + work, nil, "",
		},
		"Overridden": {
			"A policy makes it differ.", plane(namespace("team-a"), labelPolicy("p", "team-a", "m1", "k", "v")), "team-a", both,
			[]string{"Normal ApplyOverridePolicySucceed Apply cluster override policy(p) for cluster(m1) succeed."}, "",
		},
		"Bad": {
			"A policy that fails keeps its cluster from changing, and no other.", plane(namespace("team-a"), bad), "team-a",
			"create karmada-es-m2/" + work,
			[]string{"Warning ApplyOverridePolicyFailed Apply cluster override policy(bad) for cluster(m1) failed: ClusterOverridePolicy bad: spec.overrideRules[0].overriders.plaintext[0] at /no/such/place: "},
			"ClusterOverridePolicy bad",
		},
		"Renamed": {
			"A policy cannot make another object of it.", plane(namespace("team-a"), otherName), "team-a",
			"create karmada-es-m2/" + work,
			[]string{"Warning ApplyOverridePolicyFailed Apply override policies for cluster(m1) failed: override policies make another object of it: /v1, Kind=Namespace /x"},
			"another object",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			err := w.reconcile(t, tc.of)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !errors.Is(err, reconcile.TerminalError(nil))) {
				t.Errorf("error %v, want a final one with %q\n%s", err, tc.err, tc.reason)
			}
			if got := strings.Join(w.take(), ", "); got != tc.writes {
				t.Errorf("writes %q, want %q\n%s", got, tc.writes, tc.reason)
			}
			if len(w.events.got) != len(tc.events) {
				t.Fatalf("events %q\n%s", w.events.got, tc.reason)
			}
			for i, e := range tc.events {
				if !strings.HasPrefix(w.events.got[i], e) {
					t.Errorf("event %q, want %q\n%s", w.events.got[i], e, tc.reason)
				}
			}
			if err := w.reconcile(t, tc.of); (err == nil) != (tc.err == "") || len(w.take()) > 0 {
				t.Errorf("the second time: %v, or something was written again", err)
			}
		})
	}
}

func TestWork(t *testing.T) {
	w := newWorld(t, plane(namespace("team-a", labelled("team=a")), labelPolicy("p", "team-a", "m1", "k", "v"))...)
	if err := w.reconcile(t, "team-a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "a", "k": "v", "karmada.io/managed": "true"}, w.shipped(t, "m1", work)); diff != "" {
		t.Errorf("overridden (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "a", "karmada.io/managed": "true"}, w.shipped(t, "m2", work)); diff != "" {
		t.Errorf("as it is (-want +got):\n%s", diff)
	}
	made := w.work(t, "m1", work)
	owner := metav1.GetControllerOf(made)
	if owner == nil || owner.APIVersion != "v1" || owner.Kind != "Namespace" || owner.Name != "team-a" || owner.UID != "uid-team-a" {
		t.Errorf("it goes with the Namespace; owner %+v", owner)
	}
	if !slices.Equal(made.Finalizers, []string{"karmada.io/execution-controller"}) {
		t.Errorf("finalizers %q", made.Finalizers)
	}
	if !strings.Contains(made.Annotations["policy.karmada.io/applied-cluster-overrides"], `"policyName":"p"`) {
		t.Errorf("annotations %v", made.Annotations)
	}
	if _, ok := made.Annotations["work.karmada.io/conflict-resolution"]; ok || strings.Contains(string(made.Spec.Workload.Manifests[0].Raw), "conflict-resolution") {
		t.Error("a namespace that a member had before is not taken over")
	}

	w.take()
	w.events.got = nil
	if err := w.api.Delete(t.Context(), labelPolicy("p", "team-a", "m1", "k", "v")); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(t, "team-a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"update karmada-es-m1/" + work}, w.take()); diff != "" {
		t.Errorf("the policy is gone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "a", "karmada.io/managed": "true"}, w.shipped(t, "m1", work)); diff != "" {
		t.Errorf("and what it did (-want +got):\n%s", diff)
	}

	optedOut := namespace("team-a", labelled("team=b", "namespace.karmada.io/skip-auto-propagation=true"))
	if err := w.api.Update(t.Context(), optedOut); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(t, "team-a"); err != nil {
		t.Fatal(err)
	}
	if len(w.take()) > 0 || w.work(t, "m1", work) == nil {
		t.Error("the Works of a Namespace that is exempted later stay as they are")
	}
}

// TestBound tells what becomes of the Work when a policy propagates the Namespace
// as well.
func TestBound(t *testing.T) {
	theirs := func(change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-es-m1", Name: work, Finalizers: []string{names.WorkFinalizer},
				Labels:      map[string]string{names.ClusterResourceBindingIDLabel: "id"},
				Annotations: map[string]string{names.ClusterResourceBindingNameAnnotation: "team-a-namespace"},
			},
			Spec: workv1alpha1.WorkSpec{
				SuspendDispatching: ptr.To(true),
				Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
					Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a","labels":{"by":"binding"}}}`),
				}}}},
			},
		}
		for _, f := range change {
			f(w)
		}
		return w
	}
	owned := func(uid types.UID) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			ns := namespace("team-a")
			ns.UID = uid
			w.OwnerReferences = append(w.OwnerReferences, ownerReference(ns))
		}
	}
	letGo := func(w *workv1alpha1.Work) { w.Labels, w.Annotations = nil, nil }
	deleted := func(w *workv1alpha1.Work) { w.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }
	foreign := func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Namespace","metadata":{"name":"team-a"}}`)
	}
	const beside = "team-a--654d5cd95b"
	cases := map[string]struct {
		reason string
		work   *workv1alpha1.Work
		writes []string
		ours   bool // what is in it
	}{
		"Owned":   {"What is in it is the binding's concern.", theirs(owned("uid-team-a")), nil, false},
		"NoOwner": {"The Namespace becomes its owner, so that nobody deletes the namespace with all that is in it.", theirs(), []string{"patch karmada-es-m1/" + work}, false},
		"Earlier": {"One that was deleted is its owner no more.", theirs(owned("earlier")), []string{"patch karmada-es-m1/" + work}, false},
		"LetGo":   {"What a binding lets go of is ours again.", theirs(owned("uid-team-a"), letGo), []string{"update karmada-es-m1/" + work}, true},
		"Anew":    {"What an earlier Namespace of that name owned is this one's.", theirs(owned("earlier"), letGo), []string{"update karmada-es-m1/" + work}, true},
		"ByHand":  {"What somebody has made for the same is ours.", theirs(letGo), []string{"update karmada-es-m1/" + work}, true},
		"Deleted": {"What is deleted is made when it has gone.", theirs(owned("uid-team-a"), letGo, deleted), nil, false},
		"DeletedBound": {
			"That it has gone must be known here.", theirs(deleted), []string{"patch karmada-es-m1/" + work}, false,
		},
		"Foreign": {"Two kinds of one name do not share a Work.", theirs(foreign), []string{"create karmada-es-m1/" + beside}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster("m1"), namespace("karmada-es-m1"), namespace("team-a"), tc.work)
			if err := w.reconcile(t, "team-a"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.writes, w.take(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nwrites (-want +got):\n%s", tc.reason, diff)
			}
			now := w.work(t, "m1", work)
			if ours := w.shipped(t, "m1", work)["karmada.io/managed"] == "true" && now.Spec.SuspendDispatching == nil; ours != tc.ours {
				t.Errorf("it has become ours: %v\n%s", ours, tc.reason)
			}
			if owner := ownerOf(now, "team-a"); len(tc.writes) > 0 && name != "Foreign" && (owner == nil || owner.UID != "uid-team-a" || len(now.OwnerReferences) != 1) {
				t.Errorf("owners %+v", now.OwnerReferences)
			}
			if err := w.reconcile(t, "team-a"); err != nil || len(w.take()) > 0 {
				t.Errorf("the second time: %v, or something was written again", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t, plane(namespace("team-a"))...)
	w.create = func(o client.Object) error {
		if o.GetNamespace() == "karmada-es-m1" {
			return errBoom
		}
		return nil
	}
	err := w.reconcile(t, "team-a")
	if !errors.Is(err, errBoom) || errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), "cluster m1") {
		t.Errorf("error %v; it is tried again", err)
	}
	if w.work(t, "m2", work) == nil {
		t.Error("one cluster must not keep the others")
	}
	w.create = func(client.Object) error {
		forbidden := apierrors.NewForbidden(corev1.Resource("works"), work, errBoom)
		forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return forbidden
	}
	if err := w.reconcile(t, "team-a"); err != nil {
		t.Errorf("a cluster that leaves needs nothing: %v", err)
	}
}

func TestMapper(t *testing.T) {
	w := newWorld(t, plane(namespace("default"), namespace("kube-system"), namespace("team-a"), namespace("team-b", labelled("k=v")),
		namespace("team-c", labelled("namespace.karmada.io/skip-auto-propagation=true")))...)
	m := mapper{client: w.api, propagates: w.propagates}
	byLabels, other, all := labelPolicy("p", "", "m1", "k", "v"), labelPolicy("p", "", "m1", "k", "v"), labelPolicy("p", "", "m1", "k", "v")
	byLabels.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "v"}}
	other.Spec.ResourceSelectors[0].Kind = "ConfigMap"
	all.Spec.ResourceSelectors = nil
	cases := map[string]struct {
		reason string
		got    []reconcile.Request
		want   []string
	}{
		"Cluster":   {"A cluster needs all that is propagated.", m.all(t.Context(), cluster("m1")), []string{"team-a", "team-b"}},
		"ByName":    {"A policy for one.", m.selected(t.Context(), labelPolicy("p", "team-a", "m1", "k", "v")), []string{"team-a"}},
		"ByLabels":  {"For those with labels.", m.selected(t.Context(), byLabels), []string{"team-b"}},
		"ByKind":    {"For all.", m.selected(t.Context(), labelPolicy("p", "", "m1", "k", "v")), []string{"team-a", "team-b"}},
		"ForAll":    {"For everything.", m.selected(t.Context(), all), []string{"team-a", "team-b"}},
		"OtherKind": {"For something else.", m.selected(t.Context(), other), nil},
	}
	for name, tc := range cases {
		var got []string
		for _, r := range tc.got {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s\n(-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestPredicates(t *testing.T) {
	region := cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" })
	relabel := cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Labels["k"] = "v" })
	status := cluster("m1", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" })
	annotated := namespace("a", func(ns *corev1.Namespace) { ns.Annotations = map[string]string{"k": "v"} })
	anew := namespace("a", func(ns *corev1.Namespace) { ns.UID = "anew" })
	ours, theirs, changed := &workv1alpha1.Work{}, &workv1alpha1.Work{}, &workv1alpha1.Work{}
	theirs.Labels = map[string]string{names.ClusterResourceBindingIDLabel: "x"}
	changed.Generation = 1
	update := func(old, current client.Object) event.UpdateEvent {
		return event.UpdateEvent{ObjectOld: old, ObjectNew: current}
	}
	cases := map[string]struct {
		reason       string
		passes, want bool
	}{
		"ClusterStatus": {"The status of a cluster changes all the time.", clusterChanged().Update(update(cluster("m1"), status)), false},
		"ClusterLabel":  {"By labels policies choose clusters.", clusterChanged().Update(update(cluster("m1"), relabel)), true},
		"ClusterRegion": {"By regions, too.", clusterChanged().Update(update(cluster("m1"), region)), true},
		"ClusterNew":    {"A new one has nothing yet.", clusterChanged().Create(event.CreateEvent{Object: cluster("m1")}), true},
		"ClusterGone":   {"One that has gone needs nothing.", clusterChanged().Delete(event.DeleteEvent{Object: cluster("m1")}), false},
		"Space":         {"Where Works can be from now on.", newSpaces().Create(event.CreateEvent{Object: namespace("karmada-es-m1")}), true},
		"NoSpace":       {"Where none can be.", newSpaces().Create(event.CreateEvent{Object: namespace("a")}), false},
		"Label":         {"What travels.", relabelled().Update(update(namespace("a"), namespace("a", labelled("k=v")))), true},
		"Annotation":    {"That, too.", relabelled().Update(update(namespace("a"), annotated)), true},
		"Anew":          {"Another one of that name.", relabelled().Update(update(namespace("a"), anew)), true},
		"Same":          {"What does not travel.", relabelled().Update(update(namespace("a"), namespace("a"))), false},
		"LetGo":         {"A Work that is no binding's any more.", disturbed().Update(update(theirs, ours)), true},
		"Taken":         {"One that has become a binding's.", disturbed().Update(update(ours, theirs)), false},
		"Changed":       {"One that somebody has changed.", disturbed().Update(update(ours, changed)), true},
		"Made":          {"One that we have made.", disturbed().Create(event.CreateEvent{Object: ours}), false},
		"Removed":       {"One that somebody has removed.", disturbed().Delete(event.DeleteEvent{Object: ours}), true},
	}
	for name, tc := range cases {
		if tc.passes != tc.want {
			t.Errorf("%s: passes: %v\n%s", name, tc.passes, tc.reason)
		}
	}
}
