package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmadactl/karmadactl/pkg/plane/bootstrap"
	"github.com/karmadactl/karmadactl/pkg/webhook"
)

// What the API server is told to ask about, and what is served, are in two places that do not know each other.
func TestWhatIsAskedIsServed(t *testing.T) {
	objects, err := bootstrap.Webhooks("", nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for _, o := range objects {
		var c admissionregistrationv1.MutatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c); err != nil {
			t.Fatal(err)
		}
		for _, h := range c.Webhooks {
			asked[h.Name] = *h.ClientConfig.URL
		}
	}
	served := map[string]string{}
	for _, h := range webhook.Hooks(webhook.NewDefaults()) {
		served[h.Name] = h.Path
	}
	if diff := cmp.Diff(asked, served); diff != "" {
		t.Errorf("-asked +served:\n%s", diff)
	}
}
