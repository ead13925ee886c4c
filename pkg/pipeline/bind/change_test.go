package bind

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
)

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(*unstructured.Unstructured)
		matters bool // it is worked on
		user    bool // it activates a lazy policy
		bound   bool // it reaches the binding
	}{
		"Nothing": {reason: "The same once more.", change: func(*unstructured.Unstructured) {}},
		"Version": {reason: "Every write makes another.", change: func(u *unstructured.Unstructured) { u.SetResourceVersion("9") }},
		"Status":  {reason: "The status comes from here.", change: func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"replicas": int64(1)} }},
		"ManagedFields": {
			reason: "Nobody reads them.",
			change: func(u *unstructured.Unstructured) { u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}}) },
		},
		"Spec":  {"A user's change.", func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(3) }, true, true, true},
		"Data":  {"Not all objects have a spec.", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"k": "v"} }, true, true, true},
		"Label": {"A user's label.", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"app": "web", "a": "b"}) }, true, true, true},
		"Annotation": {
			"A user's annotation.",
			func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"example.com/a": "b"}) }, true, true, true,
		},
		"Claim": {"A mark of a controller is worked on, but is no change of its user.", claimedBy(aPolicy("p")), true, false, true},
		"RetainReplicas": {"So is this one.", func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"app": "web", names.RetainReplicasLabel: "true"})
		}, true, false, true},
		"SkipLabel": {"This one is a user's.", func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"app": "web", names.SkipAutoPropagationLabel: "true"})
		}, true, true, true},
		"SkipAnnotation": {"As a label only.", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{names.SkipAutoPropagationLabel: "true"})
		}, true, false, true},
		"Generation": {"It counts changes, and is none.", func(u *unstructured.Unstructured) { u.SetGeneration(7) }, true, false, false},
		"Finalizers": {"They do not travel.", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"a/b"}) }, true, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old, current := aTemplate(), aTemplate(tc.change)
			if got := matters(old, current); got != tc.matters {
				t.Errorf("%s\nworked on: %t", tc.reason, got)
			}
			if got := userChanged(old, current); got != tc.user {
				t.Errorf("%s\na user's change: %t", tc.reason, got)
			}
			before, errBefore := fingerprintOf(old)
			after, errAfter := fingerprintOf(current)
			if errBefore != nil || errAfter != nil {
				t.Fatal(errBefore, errAfter)
			}
			if got := before.user != after.user; got != tc.user {
				t.Errorf("%s\nanother fingerprint of the user: %t", tc.reason, got)
			}
			if got := before.all != after.all; got != tc.bound {
				t.Errorf("%s\nanother fingerprint of all: %t", tc.reason, got)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	f, err := fingerprintOf(aTemplate())
	if err != nil {
		t.Fatal(err)
	}
	again, ok := readFingerprint(map[string]string{names.TemplateFingerprintAnnotation: f.String()})
	if !ok || again != f {
		t.Errorf("what is written is read: %v, %v", f, again)
	}
	if _, ok := readFingerprint(nil); ok {
		t.Error("a binding of another control plane has none")
	}
	if _, ok := readFingerprint(map[string]string{names.TemplateFingerprintAnnotation: "nonsense"}); ok {
		t.Error("nonsense is none")
	}
	// It is kept in bindings: were it another after an upgrade, all would be written.
	if want := "2abde6c91dc6bbbd-2abde6c91dc6bbbd"; f.String() != want {
		t.Errorf("it was %s in earlier versions, and is %s", want, f)
	}
	odd := aTemplate(func(u *unstructured.Unstructured) { u.Object["odd"] = func() {} })
	if _, err := fingerprintOf(odd); err == nil {
		t.Error("what cannot be written has none")
	}
}
