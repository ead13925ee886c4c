package dependencies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

func TestConcerned(t *testing.T) {
	recording := func(refs ...reference) func(*workv1alpha2.ResourceBinding) {
		return func(rb *workv1alpha2.ResourceBinding) {
			if _, err := record(rb, refs); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-configmap"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:   referenceTo(thing(configMap, "c", "5")),
			RequiredBy: []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "name-deployment"}},
		},
	}
	claimed := own.DeepCopy()
	claimed.Name, claimed.Spec.Resource.Name = "p-configmap", "p"
	claimed.Labels = map[string]string{names.ClusterPropagationPolicyIDLabel: "x"}
	elsewhere := independent("elsewhere", "m1", recording(byName(configMap, "c")))
	elsewhere.Namespace = "prod"
	w := newWorld(t, own, claimed, elsewhere,
		independent("name", "m1", recording(byName(configMap, "c"))),
		independent("label", "m1", recording(byLabel(configMap, "app", "x"))),
		independent("other", "m1", recording(byName(configMap, "d"), byLabel(configMap, "app", "y"))),
		independent("kind", "m1", recording(byName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ConfigMap"}, "c"))),
		independent("garbage", "m1", func(rb *workv1alpha2.ResourceBinding) {
			rb.Annotations = map[string]string{names.DependenciesAnnotation: "{"}
		}),
	)
	changed := func(u *unstructured.Unstructured, field ...string) *unstructured.Unstructured {
		if err := unstructured.SetNestedField(u.Object, "changed", field...); err != nil {
			t.Fatal(err)
		}
		return u
	}
	anew := thing(configMap, "c", "9")
	anew.SetUID("anew")
	inNone := thing(configMap, "c", "5")
	inNone.SetNamespace("")
	cases := map[string]struct {
		reason       string
		old, current *unstructured.Unstructured
		want         []string
	}{
		"Appears":   {"Who refers to it by name.", nil, thing(configMap, "c", "5"), []string{"name-deployment"}},
		"Labels":    {"And by labels.", nil, thing(configMap, "c", "5", "app=x"), []string{"name-deployment", "label-deployment"}},
		"Nobody":    {"Nobody refers to it.", nil, thing(configMap, "z", "5"), nil},
		"Version":   {"An object is the same in each version of its API.", nil, thing(schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}, "c", "5"), []string{"name-deployment"}},
		"Anew":      {"One in the place of another has appeared.", thing(configMap, "c", "5"), anew, []string{"name-deployment"}},
		"Gone":      {"Its binding goes by itself.", thing(configMap, "c", "5"), nil, nil},
		"Content":   {"Its own binding.", thing(configMap, "c", "5"), changed(thing(configMap, "c", "6"), "data", "k"), []string{"c-configmap"}},
		"Status":    {"A status goes to no member.", thing(configMap, "c", "5"), changed(thing(configMap, "c", "6"), "status", "phase"), nil},
		"Nothing":   {"The same again.", thing(configMap, "c", "5"), thing(configMap, "c", "5"), nil},
		"Relabel":   {"Labels change what selects it, before and after.", thing(configMap, "c", "5", "app=x"), thing(configMap, "c", "6", "app=y"), []string{"c-configmap", "label-deployment", "other-deployment"}},
		"Claimed":   {"What a policy claims is kept up to date by stage bind.", thing(configMap, "p", "5"), changed(thing(configMap, "p", "6"), "data", "k"), nil},
		"Clustered": {"What is in no namespace is attached to nothing.", nil, inNone, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range w.concerned(t.Context(), tc.old, tc.current) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPredicates(t *testing.T) {
	plain := func(rb *workv1alpha2.ResourceBinding) { rb.Spec.PropagateDeps = false }
	held := func(rb *workv1alpha2.ResourceBinding) { rb.Finalizers = []string{names.DependenciesFinalizer} }
	second := func(rb *workv1alpha2.ResourceBinding) { rb.Generation = 2 }
	noted := func(rb *workv1alpha2.ResourceBinding) {
		rb.Annotations = map[string]string{names.DependenciesAnnotation: "[]"}
	}
	nowhere := func(rb *workv1alpha2.ResourceBinding) { rb.Spec.Clusters = nil }
	rb := func(change ...func(*workv1alpha2.ResourceBinding)) client.Object {
		return independent("a", "m1", change...)
	}
	p := sends()
	update := func(old, current client.Object) bool {
		return p.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: current})
	}
	w := newWorld(t)
	w.ledger.note(independent("a", "m1"))
	cases := map[string]struct {
		reason    string
		got, want bool
	}{
		"New":       {"One that sends along.", p.Create(event.CreateEvent{Object: rb()}), true},
		"NewPlain":  {"One that does not.", p.Create(event.CreateEvent{Object: rb(plain)}), false},
		"NewHeld":   {"One that did, before this process began.", p.Create(event.CreateEvent{Object: rb(plain, held)}), true},
		"Spec":      {"Its spec has changed.", update(rb(), rb(second)), true},
		"Off":       {"It sends along no more.", update(rb(), rb(plain, second)), true},
		"Plain":     {"It never did.", update(rb(plain), rb(plain, second)), false},
		"Status":    {"Its status has changed.", update(rb(), rb()), false},
		"Deleted":   {"It is deleted.", update(rb(held), rb(held, deleting)), true},
		"Recorded":  {"The cache knows what was recorded.", update(rb(), rb(noted)), true},
		"Decided":   {"Now it is certain that it goes nowhere.", update(rb(nowhere), rb(nowhere, nothingFits)), true},
		"Gone":      {"It is gone: it was released before.", p.Delete(event.DeleteEvent{Object: rb()}), false},
		"OtherGone": {"What it requires may need a binding again.", w.gone().Delete(event.DeleteEvent{Object: rb()}), true},
		"OtherNew":  {"But it is not new.", w.gone().Create(event.CreateEvent{Object: rb()}), false},
	}
	for name, tc := range cases {
		if tc.got != tc.want {
			t.Errorf("%s: passes: %v\n%s", name, tc.got, tc.reason)
		}
	}
	if w.ledger.has(client.ObjectKey{Namespace: "default", Name: "a-deployment"}) {
		t.Error("what is gone must be forgotten")
	}
	a := independent("a", "m1", func(a *workv1alpha2.ResourceBinding) {
		a.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "x"}, {Namespace: "other", Name: "y"}, {Namespace: "default", Name: "z"}}
	})
	var got []string
	for _, r := range referrers(t.Context(), a) {
		got = append(got, r.String())
	}
	if diff := cmp.Diff([]string{"default/x", "default/z"}, got); diff != "" {
		t.Errorf("whoever requires it looks after it (-want +got):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	if _, err := (Options{}).complete(); err == nil {
		t.Error("nothing works without templates")
	}
	o, err := Options{Templates: &objects{}, Interpreter: newWorld(t)}.complete()
	if err != nil || o.Concurrency != 1 || o.Exempt(configMap) {
		t.Errorf("options %+v, %v", o, err)
	}
}
