package bootstrap

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestWebhooks(t *testing.T) {
	objects, err := Webhooks("https://127.0.0.1:32450", []byte("the authority"))
	if len(must(t, objects, err)) != 1 {
		t.Fatalf("%d objects", len(objects))
	}
	if _, err := resourceOf(objects[0]); err != nil {
		t.Error(err)
	}
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, &c, true); err != nil {
		t.Fatal(err)
	}
	if c.Name != "mutating-config" || c.Labels["karmada.io/system"] != "true" {
		t.Errorf("it is called %s, with labels %v", c.Name, c.Labels)
	}

	// spec: behaviour/08 8.2
	want := map[string]string{
		"propagationpolicy.karmada.io":        "https://127.0.0.1:32450/mutate-propagationpolicy CREATE,UPDATE policy.karmada.io/propagationpolicies",
		"clusterpropagationpolicy.karmada.io": "https://127.0.0.1:32450/mutate-clusterpropagationpolicy CREATE,UPDATE policy.karmada.io/clusterpropagationpolicies",
		"overridepolicy.karmada.io":           "https://127.0.0.1:32450/mutate-overridepolicy CREATE,UPDATE policy.karmada.io/overridepolicies",
		"resourcebinding.karmada.io":          "https://127.0.0.1:32450/mutate-resourcebinding CREATE work.karmada.io/resourcebindings",
		"clusterresourcebinding.karmada.io":   "https://127.0.0.1:32450/mutate-clusterresourcebinding CREATE work.karmada.io/clusterresourcebindings",
		"work.karmada.io":                     "https://127.0.0.1:32450/mutate-work CREATE,UPDATE work.karmada.io/works",
	}
	got := map[string]string{}
	for _, h := range c.Webhooks {
		if h.ClientConfig.URL == nil || len(h.Rules) != 1 {
			t.Errorf("%s: %+v", h.Name, h)
			continue
		}
		r := h.Rules[0]
		var operations []string
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		got[h.Name] = *h.ClientConfig.URL + " " + strings.Join(operations, ",") + " " + strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.Resources, ",")
		if !slices.Equal(r.APIVersions, []string{"*"}) {
			t.Errorf("%s is for versions %v: what is written in another one would not be seen", h.Name, r.APIVersions)
		}
		// spec: behaviour/08 8.1
		if *h.FailurePolicy != admissionregistrationv1.Fail || *h.TimeoutSeconds != 3 || *h.SideEffects != admissionregistrationv1.SideEffectClassNone ||
			!slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) || string(h.ClientConfig.CABundle) != "the authority" {
			t.Errorf("%s: %+v", h.Name, h)
		}
		if len(h.MatchConditions) == 0 {
			t.Errorf("%s: our own components would depend on it, and pay for it", h.Name)
		}
		for _, m := range h.MatchConditions {
			// An expression that fails is a request that fails.
			for field, guard := range map[string]string{
				"request.userInfo.groups)": "!has(request.userInfo.groups) ||",
				"object.metadata.labels)":  "!has(object.metadata.labels) ||",
			} {
				if strings.Contains(m.Expression, "in "+field) && !strings.Contains(m.Expression, guard) {
					t.Errorf("%s: condition %s reads a field that need not be there: %s", h.Name, m.Name, m.Expression)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks differ (-want +got):\n%s", diff)
	}

	s := newServer()
	if _, err := Apply(t.Context(), s, objects); err != nil {
		t.Fatal(err)
	}
	again, err := Apply(t.Context(), s, objects)
	if err != nil || again.Unchanged != 1 {
		t.Errorf("the second time: %s, %v, want nothing to do", again, err)
	}
	moved, err := Webhooks("https://127.0.0.1:32451", []byte("the authority"))
	summary, err := Apply(t.Context(), s, must(t, moved, err))
	if err != nil || summary.Updated != 1 {
		t.Errorf("when it has moved: %s, %v, want it mended", summary, err)
	}
}
