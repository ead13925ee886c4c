package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func testServer() WebhookServer {
	return WebhookServer{URL: "https://127.0.0.1:32450", CA: []byte("the authority")}
}

// configurations are both of them, as an API server reads them.
func configurations(t *testing.T) (m admissionregistrationv1.MutatingWebhookConfiguration, v admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	objects, err := Webhooks(testServer())
	if len(must(t, objects, err)) != 2 {
		t.Fatalf("%d objects", len(objects))
	}
	for i, into := range []any{&m, &v} {
		if _, err := resourceOf(objects[i]); err != nil {
			t.Error(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object, into, true); err != nil {
			t.Fatal(err)
		}
	}
	return m, v
}

// describe is a webhook in a line, with what differs from most.
func describe(t *testing.T, name string, client admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) string {
	t.Helper()
	if client.URL == nil || len(rules) != 1 {
		t.Fatalf("%s: %+v %+v", name, client, rules)
	}
	if string(client.CABundle) != "the authority" {
		t.Errorf("%s trusts %s", name, client.CABundle)
	}
	r := rules[0]
	path, ok := strings.CutPrefix(*client.URL, "https://127.0.0.1:32450/")
	if !ok {
		t.Errorf("%s is asked at %s", name, *client.URL)
	}
	operations := map[string]string{"CREATE,UPDATE": "CU", "CREATE": "C", "DELETE": "D"}[strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Operations), " ", ","), "[]")]
	return fmt.Sprintf("%s %s %s %s %s %s %s", name, path, operations, strings.Join(r.APIGroups, ","), strings.Join(r.APIVersions, ","), strings.Join(r.Resources, ","), *r.Scope)
}

// The tables of behaviour/08 and cli/init.md 8.4, in their order; below them what is ours.
func TestWebhooks(t *testing.T) {
	m, v := configurations(t)
	var mutating, validating []string
	for _, h := range m.Webhooks {
		mutating = append(mutating, describe(t, h.Name, h.ClientConfig, h.Rules))
	}
	for _, h := range v.Webhooks {
		validating = append(validating, describe(t, h.Name, h.ClientConfig, h.Rules))
	}
	want := []string{
		"propagationpolicy.karmada.io mutate-propagationpolicy CU policy.karmada.io * propagationpolicies Namespaced",
		"clusterpropagationpolicy.karmada.io mutate-clusterpropagationpolicy CU policy.karmada.io * clusterpropagationpolicies Cluster",
		"overridepolicy.karmada.io mutate-overridepolicy CU policy.karmada.io * overridepolicies Namespaced",
		"resourcebinding.karmada.io mutate-resourcebinding C work.karmada.io * resourcebindings Namespaced",
		"clusterresourcebinding.karmada.io mutate-clusterresourcebinding C work.karmada.io * clusterresourcebindings Cluster",
		"work.karmada.io mutate-work CU work.karmada.io * works Namespaced",
		"autoscaling.karmada.io mutate-federatedhpa CU autoscaling.karmada.io * federatedhpas Namespaced",
		"multiclusterservice.karmada.io mutate-multiclusterservice CU networking.karmada.io * multiclusterservices Namespaced",
	}
	if diff := cmp.Diff(want, mutating); diff != "" || m.Name != "mutating-config" {
		t.Errorf("%s differs (-want +got):\n%s", m.Name, diff)
	}
	want = []string{
		"propagationpolicy.karmada.io validate-propagationpolicy CU policy.karmada.io * propagationpolicies Namespaced",
		"clusterpropagationpolicy.karmada.io validate-clusterpropagationpolicy CU policy.karmada.io * clusterpropagationpolicies Cluster",
		"overridepolicy.karmada.io validate-overridepolicy CU policy.karmada.io * overridepolicies Namespaced",
		"clusteroverridepolicy.karmada.io validate-clusteroverridepolicy CU policy.karmada.io * clusteroverridepolicies Cluster",
		"config.karmada.io validate-resourceinterpreterwebhookconfiguration CU config.karmada.io * resourceinterpreterwebhookconfigurations Cluster",
		"resourceinterpretercustomization.karmada.io validate-resourceinterpretercustomization CU config.karmada.io * resourceinterpretercustomizations Cluster",
		"federatedresourcequota.karmada.io validate-federatedresourcequota CU policy.karmada.io * federatedresourcequotas Namespaced",
		"multiclusteringress.karmada.io validate-multiclusteringress CU networking.karmada.io * multiclusteringresses Namespaced",
		"federatedhpa.karmada.io validate-federatedhpa CU autoscaling.karmada.io * federatedhpas Namespaced",
		"cronfederatedhpa.karmada.io validate-cronfederatedhpa CU autoscaling.karmada.io * cronfederatedhpas Namespaced",
		"multiclusterservice.karmada.io validate-multiclusterservice CU networking.karmada.io * multiclusterservices Namespaced",
		"resourcedeletionprotection.karmada.io validate-resourcedeletionprotection D * * */* *",
		"resourcebinding.karmada.io validate-resourcebinding CU work.karmada.io v1alpha2 resourcebindings Namespaced",
		"clustertaintpolicy.karmada.io validate-clustertaintpolicy CU policy.karmada.io * clustertaintpolicies Cluster",
		"namespacedeletionprotection.karmadactl.io validate-namespacedeletionprotection D  * namespaces Cluster",
		"definitiondeletionprotection.karmadactl.io validate-definitiondeletionprotection D apiextensions.k8s.io * customresourcedefinitions Cluster",
	}
	if diff := cmp.Diff(want, validating); diff != "" || v.Name != "validating-config" {
		t.Errorf("%s differs (-want +got):\n%s", v.Name, diff)
	}
}

// What the contract says of all of them, and each exception with its reason.
func TestWebhookSettings(t *testing.T) {
	m, v := configurations(t)
	all := v.Webhooks
	for _, h := range m.Webhooks {
		all = append(all, admissionregistrationv1.ValidatingWebhook{
			Name: h.Name, TimeoutSeconds: h.TimeoutSeconds, FailurePolicy: h.FailurePolicy, SideEffects: h.SideEffects, ObjectSelector: h.ObjectSelector,
			AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions, Rules: h.Rules,
		})
	}
	if m.Labels["karmada.io/system"] != "true" || v.Labels["karmada.io/system"] != "true" {
		t.Errorf("labels %v, %v: they are the system's", m.Labels, v.Labels)
	}
	slow := []string{"resourceinterpretercustomization.karmada.io"}                                              // it compiles Lua
	ignored := []string{"namespacedeletionprotection.karmadactl.io"}                                             // a namespace must be able to go
	everybody := []string{"resourcedeletionprotection.karmada.io", "definitiondeletionprotection.karmadactl.io"} // also our own
	for i, h := range all {
		seconds, failure := int32(3), admissionregistrationv1.Fail
		if slices.Contains(slow, h.Name) {
			seconds = 10
		}
		if slices.Contains(ignored, h.Name) {
			failure = admissionregistrationv1.Ignore
		}
		if *h.TimeoutSeconds != seconds || *h.FailurePolicy != failure || !slices.Equal(h.AdmissionReviewVersions, []string{"v1"}) {
			t.Errorf("%s: %d s, %s, %v", h.Name, *h.TimeoutSeconds, *h.FailurePolicy, h.AdmissionReviewVersions)
		}
		effects := admissionregistrationv1.SideEffectClassNone
		if h.Name == "resourcebinding.karmada.io" && i < len(v.Webhooks) {
			effects = admissionregistrationv1.SideEffectClassNoneOnDryRun // it counts quota
		}
		if *h.SideEffects != effects {
			t.Errorf("%s: side effects %s, want %s", h.Name, *h.SideEffects, effects)
		}
		if (len(h.MatchConditions) == 0) != slices.Contains(everybody, h.Name) {
			t.Errorf("%s: conditions %v: our own components would depend on it, and pay for it", h.Name, h.MatchConditions)
		}
		if (h.ObjectSelector != nil) != (h.Name == "resourcedeletionprotection.karmada.io") {
			t.Errorf("%s: selector %v: every deletion but those of protected objects goes without a question", h.Name, h.ObjectSelector)
		}
	}
}

func TestConversions(t *testing.T) {
	objects, err := Conversions(testServer())
	var got []string
	for _, u := range must(t, objects, err) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &crd, true); err != nil {
			t.Fatal(err)
		}
		c := crd.Spec.Conversion
		got = append(got, fmt.Sprintf("%s %s %s %s %v", crd.Name, c.Strategy, *c.Webhook.ClientConfig.URL, c.Webhook.ClientConfig.CABundle, c.Webhook.ConversionReviewVersions))
	}
	want := []string{
		"clusterresourcebindings.work.karmada.io Webhook https://127.0.0.1:32450/convert the authority [v1]",
		"resourcebindings.work.karmada.io Webhook https://127.0.0.1:32450/convert the authority [v1]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions with a conversion (-want +got):\n%s", diff)
	}
}

func TestWebhooksAreKept(t *testing.T) {
	set := func(server WebhookServer) []*unstructured.Unstructured {
		hooks, err := Webhooks(server)
		converted, convertErr := Conversions(server)
		return append(must(t, hooks, err), must(t, converted, convertErr)...)
	}
	moved, renewed := testServer(), testServer()
	moved.URL, renewed.CA = "https://127.0.0.1:32451", []byte("the authority, anew")
	cases := map[string]struct {
		reason string
		now    WebhookServer
		want   Summary
	}{
		"Same":    {"What is right is not written.", testServer(), Summary{Unchanged: 4}},
		"Moved":   {"A port that somebody else took moves, and the API server learns where to.", moved, Summary{Updated: 4}},
		"Renewed": {"An authority with another certificate is trusted at once.", renewed, Summary{Updated: 4}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			if _, err := Apply(t.Context(), s, set(testServer())); err != nil {
				t.Fatal(err)
			}
			got, err := Apply(t.Context(), s, set(c.now))
			if err != nil || got != c.want {
				t.Errorf("%+v, %v, want %+v: %s", got, err, c.want, c.reason)
			}
		})
	}
}
