package aggregate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// ref is the template of all tests.
var ref = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "uid-web"}

// aWork returns the Work of a cluster, changed.
func aWork(cluster string, changes ...func(*workv1alpha1.Work)) workv1alpha1.Work {
	w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionNamespace(cluster), Name: "web-1",
		Labels:      map[string]string{names.ResourceBindingIDLabel: "id-1"},
		Annotations: map[string]string{names.ResourceBindingNamespaceAnnotation: "default", names.ResourceBindingNameAnnotation: "web-deployment"},
		Finalizers:  []string{names.WorkFinalizer},
	}}
	for _, change := range changes {
		change(&w)
	}
	return w
}

// applied says whether a Work was applied, and why not.
func applied(status metav1.ConditionStatus, message string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		w.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha1.ConditionApplied, Status: status, Reason: "x", Message: message, LastTransitionTime: metav1.Unix(1, 0),
		}}
	}
}

// says gives a Work the status of its object, in its version.
func says(version, status string, health workv1alpha1.ResourceHealth) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		s := workv1alpha1.ManifestStatus{Health: health, Identifier: workv1alpha1.ResourceIdentifier{
			Group: "apps", Version: version, Kind: "Deployment", Namespace: "default", Name: "web",
		}}
		if status != "" {
			s.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		w.Status.ManifestStatuses = append(w.Status.ManifestStatuses, s)
	}
}

func deleted(w *workv1alpha1.Work) { w.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

func TestReports(t *testing.T) {
	item := func(cluster string, applied bool, message, status string, health workv1alpha2.ResourceHealth) workv1alpha2.AggregatedStatusItem {
		i := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied, AppliedMessage: message, Health: health}
		if status != "" {
			i.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		return i
	}
	ok := applied(metav1.ConditionTrue, "fine")
	cases := map[string]struct {
		reason string
		works  []workv1alpha1.Work
		want   []workv1alpha2.AggregatedStatusItem
		open   bool // something is still to come
	}{
		"Applied": {
			reason: "What a cluster says of the object is passed on.",
			works:  []workv1alpha1.Work{aWork("m1", ok, says("v1", `{"replicas":2}`, "Healthy"))},
			want:   []workv1alpha2.AggregatedStatusItem{item("m1", true, "", `{"replicas":2}`, "Healthy")},
		},
		"Sorted": {
			reason: "By cluster.", works: []workv1alpha1.Work{aWork("m2", ok), aWork("m1", ok)},
			want: []workv1alpha2.AggregatedStatusItem{item("m1", true, "", "", "Unknown"), item("m2", true, "", "", "Unknown")},
		},
		"NotApplied": {
			reason: "What is not applied as it is to be says nothing of use.",
			works:  []workv1alpha1.Work{aWork("m1", applied(metav1.ConditionFalse, "no"), says("v1", `{"replicas":2}`, "Healthy"))},
			want:   []workv1alpha2.AggregatedStatusItem{item("m1", false, "no", "", "Unknown")},
		},
		"Unknown": {
			reason: "Nor does what may not be.",
			works:  []workv1alpha1.Work{aWork("m1", applied(metav1.ConditionUnknown, "perhaps"))},
			want:   []workv1alpha2.AggregatedStatusItem{item("m1", false, "perhaps", "", "Unknown")},
		},
		"New": {
			reason: "A Work that has just been made has said nothing yet.", works: []workv1alpha1.Work{aWork("m1")},
			want: []workv1alpha2.AggregatedStatusItem{item("m1", false, "", "", "Unknown")}, open: true,
		},
		"Suspended": {
			reason: "One that is held back will not.",
			works:  []workv1alpha1.Work{aWork("m1", func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr.To(true) })},
			want:   []workv1alpha2.AggregatedStatusItem{item("m1", false, "", "", "Unknown")},
		},
		"Deleted": {reason: "One that goes says nothing any more.", works: []workv1alpha1.Work{aWork("m1", ok, deleted)}, want: []workv1alpha2.AggregatedStatusItem{}},
		"Elsewhere": {
			reason: "A Work elsewhere is for no cluster.",
			works:  []workv1alpha1.Work{aWork("m1", func(w *workv1alpha1.Work) { w.Namespace = "default" })}, want: []workv1alpha2.AggregatedStatusItem{},
		},
		"OtherObject": {
			reason: "The status of something else is not ours.",
			works: []workv1alpha1.Work{aWork("m1", ok, says("v1", `{}`, "Healthy"), func(w *workv1alpha1.Work) {
				w.Status.ManifestStatuses[0].Identifier.Name = "other"
			})},
			want: []workv1alpha2.AggregatedStatusItem{item("m1", true, "", "", "Unknown")},
		},
		"OtherVersion": {
			reason: "The same object in the version that the cluster has is.", works: []workv1alpha1.Work{aWork("m1", ok, says("v1beta1", `{"replicas":1}`, "Unhealthy"))},
			want: []workv1alpha2.AggregatedStatusItem{item("m1", true, "", `{"replicas":1}`, "Unhealthy")},
		},
		"NoHealth": {
			reason: "Health that nobody has judged is not known.", works: []workv1alpha1.Work{aWork("m1", ok, says("v1", "", ""))},
			want: []workv1alpha2.AggregatedStatusItem{item("m1", true, "", "", "Unknown")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reports := reportsOf(tc.works, ref)
			if diff := cmp.Diff(tc.want, itemsOf(reports)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			var expected []string
			for _, i := range tc.want {
				expected = append(expected, i.ClusterName)
			}
			if isComplete(expected, reports) == tc.open {
				t.Errorf("complete: %t\n%s", !tc.open, tc.reason)
			}
		})
	}
}

func TestLongMessages(t *testing.T) {
	long := strings.Repeat("é", 20000)
	var works []workv1alpha1.Work
	for i := range 1000 {
		works = append(works, aWork(strings.Repeat("m", i%50+1)+string(rune('a'+i/50)), applied(metav1.ConditionFalse, long)))
	}
	total := 0
	for _, i := range itemsOf(reportsOf(works, ref)) {
		total += len(i.AppliedMessage)
		if !strings.HasSuffix(i.AppliedMessage, "é...") {
			t.Fatalf("a message is cut between characters: %q", i.AppliedMessage)
		}
	}
	if total > 300<<10 {
		t.Errorf("what a thousand clusters have to say must fit into a binding, but has %d bytes", total)
	}
}

func TestFullyApplied(t *testing.T) {
	yes, no := func(c string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: c, Applied: true}
	}, func(c string) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: c}
	}
	type items = []workv1alpha2.AggregatedStatusItem
	cases := map[string]struct {
		reason   string
		expected []string
		items    items
		want     bool
	}{
		"All":        {"Every cluster has it.", []string{"m1", "m2"}, items{yes("m1"), yes("m2")}, true},
		"One":        {"One does not.", []string{"m1", "m2"}, items{yes("m1"), no("m2")}, false},
		"Missing":    {"One says nothing.", []string{"m1", "m2"}, items{yes("m1")}, false},
		"Unexpected": {"One that should not has it still.", []string{"m1"}, items{yes("m1"), yes("m2")}, false},
		"Wrong":      {"The number alone does not count.", []string{"m1"}, items{yes("m2")}, false},
		"None":       {"Nowhere is not everywhere.", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fullyApplied(tc.expected, tc.items)
			want := metav1.Condition{Type: "FullyApplied", Status: "False", Reason: "FullyAppliedFailed", Message: "Failed to apply all works, see status.aggregatedStatus for details"}
			if tc.want {
				want = metav1.Condition{Type: "FullyApplied", Status: "True", Reason: "FullyAppliedSuccess", Message: "All works have been successfully applied"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSame(t *testing.T) {
	raw := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
	cases := map[string]struct {
		reason string
		a, b   *runtime.RawExtension
		want   bool
	}{
		"Order":   {"The order of keys says nothing.", raw(`{"a":1,"b":[1,2]}`), raw(`{"b":[1,2],  "a":1}`), true},
		"Value":   {"A value does.", raw(`{"a":1}`), raw(`{"a":2}`), false},
		"List":    {"The order of a list does.", raw(`[1,2]`), raw(`[2,1]`), false},
		"None":    {"No status is none.", nil, nil, true},
		"Empty":   {"No status is not an empty one.", nil, raw(`{}`), false},
		"NoJSON":  {"What cannot be read is the same only if it is written the same.", raw(`{`), raw(`[`), false},
		"NilJSON": {"Empty text is no status.", nil, raw(``), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameRaw(tc.a, tc.b); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
}

func TestSameMeaning(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		reason string
		a, b   any
		want   bool
	}{
		"Zero":    {"A server leaves out what is zero.", m{"replicas": int64(0), "x": "", "y": false, "z": m{}, "l": []any{}}, m{}, true},
		"None":    {"Or all of it.", nil, m{"replicas": int64(0)}, true},
		"Number":  {"A number is a number.", m{"replicas": int64(2)}, m{"replicas": 2.0}, true},
		"Changed": {"Another one is another one.", m{"replicas": int64(2)}, m{"replicas": int64(1)}, false},
		"ToZero":  {"So is none.", m{"replicas": int64(2)}, m{"replicas": int64(0)}, false},
		"List":    {"Each entry of a list counts.", m{"l": []any{m{}}}, m{"l": []any{m{}, m{}}}, false},
		"Others":  {"What nobody expects counts as it is.", m{"i": 1}, m{"i": 2}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameMeaning(tc.a, tc.b); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
}

func TestPacer(t *testing.T) {
	key := client.ObjectKey{Name: "x"}
	now := time.Unix(1000, 0)
	p := newPacer(func() time.Time { return now })
	expect := func(reason string, complete bool, want time.Duration) {
		t.Helper()
		if got := p.wait(key, complete); got != want {
			t.Errorf("%s: waits %s, want %s", reason, got, want)
		}
	}
	expect("the first is written at once", true, 0)
	p.wrote(key)
	expect("the next after a while", true, window)
	now = now.Add(200 * time.Millisecond)
	expect("which is not begun anew by more changes", true, window-200*time.Millisecond)
	now = now.Add(300 * time.Millisecond)
	expect("and ends", true, 0)
	expect("also if it could not be written then", true, 0)
	p.settled(key)
	now = now.Add(time.Hour)
	expect("what is not complete waits for the rest", false, window)
	now = now.Add(100 * time.Millisecond)
	expect("but not for ever", false, window-100*time.Millisecond)
	expect("nor once it is complete", true, 0)
	now = now.Add(window)
	expect("a while is enough", false, 0)
	now = now.Add(time.Hour)
	p.settled(key)
	if len(p.paces) > 0 {
		t.Errorf("what has nothing to write is forgotten: %v", p.paces)
	}
	for i := range 2 * manyPaces {
		p.wrote(client.ObjectKey{Name: strings.Repeat("x", i)})
		now = now.Add(time.Second)
	}
	if len(p.paces) > manyPaces {
		t.Errorf("what was written long ago is forgotten, but %d are known", len(p.paces))
	}
}
