package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/karmadactl/karmadactl/pkg/plane/bootstrap"
	"github.com/karmadactl/karmadactl/pkg/webhook/convert"
)

// asked returns the webhooks that an API server is told about.
func asked(t *testing.T) (mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	objects, err := bootstrap.Webhooks(bootstrap.WebhookServer{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		m admissionregistrationv1.MutatingWebhookConfiguration
		v admissionregistrationv1.ValidatingWebhookConfiguration
	)
	for i, into := range []any{&m, &v} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, into); err != nil {
			t.Fatal(err)
		}
	}
	return m.Webhooks, v.Webhooks
}

// What the API server is told to ask about, and what is served, are in two places that do not know each other.
func TestWhatIsAskedIsServed(t *testing.T) {
	want := map[string]string{}
	mutating, validating := asked(t)
	for _, h := range mutating {
		want[*h.ClientConfig.URL] = h.Name
	}
	for _, h := range validating {
		want[*h.ClientConfig.URL] = h.Name
	}
	served := map[string]string{}
	for _, h := range testHooks(t) {
		if served[h.Path] != "" {
			t.Errorf("%s is served twice", h.Path)
		}
		served[h.Path] = h.Name
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("-asked +served:\n%s", diff)
	}

	definitions, err := bootstrap.Conversions(bootstrap.WebhookServer{})
	if err != nil || len(definitions) == 0 {
		t.Fatalf("%d definitions, %v", len(definitions), err)
	}
	for _, d := range definitions {
		if url, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "webhook", "clientConfig", "url"); url != convert.Path {
			t.Errorf("%s is converted at %q, which is not served", d.GetName(), url)
		}
	}
}

// TestWhoIsAskedAbout has the API server's own matcher decide which requests wait for the webhook. Those that do not go
// on while it does not answer.
func TestWhoIsAskedAbout(t *testing.T) {
	var (
		someone    = &user.DefaultInfo{Name: "jane", Groups: []string{"system:authenticated"}}
		nobody     = &user.DefaultInfo{Name: "jane"}
		controller = &user.DefaultInfo{Name: "system:karmada:controller-manager", Groups: []string{"system:karmada", "system:authenticated"}}
		agent      = &user.DefaultInfo{Name: "system:karmada:agent:m1", Groups: []string{"system:karmada:agents", "system:authenticated"}}
		collector  = &user.DefaultInfo{Name: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: []string{"system:serviceaccounts:kube-system"}}
		neighbour  = &user.DefaultInfo{Name: "system:serviceaccount:kube-system:something", Groups: []string{"system:serviceaccounts:kube-system"}}
	)
	object := func(deleted bool, labels map[string]any) *unstructured.Unstructured {
		metadata := map[string]any{"name": "o", "namespace": "n"}
		if deleted {
			metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		if labels != nil {
			metadata["labels"] = labels
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a/v1", "kind": "K", "metadata": metadata}}
	}
	identity := func(label string) map[string]any { return map[string]any{label: "id"} }
	const (
		policy = "/mutate-propagationpolicy"
		rb     = "/mutate-resourcebinding"
		work   = "/mutate-work"
		check  = "/validate-propagationpolicy"
		checks = "/validate-resourcebinding"
		ns     = "/validate-namespacedeletionprotection"
		shield = "/validate-resourcedeletionprotection"
	)
	cases := map[string]struct {
		reason   string
		path     string
		by       user.Info
		old, now *unstructured.Unstructured
		asked    bool
	}{
		"UserCreates":          {"Users' objects are filled in.", policy, someone, nil, object(false, nil), true},
		"WithoutGroups":        {"An expression that fails is a request that fails.", policy, nobody, object(false, nil), object(false, nil), true},
		"WeCreate":             {"A policy of ours needs an identity as well.", policy, controller, nil, object(false, nil), true},
		"WeUpdate":             {"There is nothing to fill in.", policy, controller, object(false, nil), object(false, nil), false},
		"Leaving":              {"Finalizers of what goes can be taken off by anybody.", policy, someone, object(true, nil), object(true, nil), false},
		"LeavingWithout":       {"A client may leave out that the object goes.", policy, someone, object(true, identity("a")), object(false, identity("a")), false},
		"LeavingClaimed":       {"That it goes is what the API server says, not the client.", policy, someone, object(false, nil), object(true, nil), true},
		"LeavingIdentity":      {"What goes keeps its identity: its claims are found by that.", policy, someone, object(true, identity("a")), object(true, nil), true},
		"LeavingOtherLabels":   {"Another one is another one.", policy, someone, object(true, identity("a")), object(true, identity("b")), true},
		"Collector":            {"It changes owners alone.", policy, collector, object(false, nil), object(false, nil), false},
		"Neighbour":            {"Others of its namespace are users.", policy, neighbour, object(false, nil), object(false, nil), true},
		"Binding":              {"A binding of a user gets an identity.", rb, someone, nil, object(false, nil), true},
		"BindingWithOther":     {"Another label is none.", rb, controller, nil, object(false, identity("a")), true},
		"BindingWithIdentity":  {"Ours have one.", rb, controller, nil, object(false, identity("resourcebinding.karmada.io/permanent-id")), false},
		"Work":                 {"Works of users are completed.", work, someone, nil, object(false, identity("work.karmada.io/permanent-id")), true},
		"OurWork":              {"Ours are complete: every one of them would cost a request.", work, controller, nil, object(false, identity("work.karmada.io/permanent-id")), false},
		"OurWorkUpdate":        {"Also later.", work, controller, object(false, identity("work.karmada.io/permanent-id")), object(false, identity("work.karmada.io/permanent-id")), false},
		"OurWorkWithout":       {"One without an identity is not complete.", work, controller, nil, object(false, nil), true},
		"AgentsWork":           {"An agent is trusted with less.", work, agent, object(false, identity("work.karmada.io/permanent-id")), object(false, identity("work.karmada.io/permanent-id")), true},
		"AgentsLeavingWork":    {"It takes its finalizer off.", work, agent, object(true, identity("a")), object(true, identity("a")), false},
		"CheckUser":            {"Users' objects are checked.", check, someone, object(false, nil), object(false, nil), true},
		"CheckOurs":            {"Ours are right.", check, controller, nil, object(false, nil), false},
		"CheckLeaving":         {"What goes was accepted once.", check, someone, object(true, nil), object(true, identity("a")), false},
		"CheckDecision":        {"Scheduling does not wait for the webhook.", checks, controller, object(false, nil), object(false, nil), false},
		"CheckUsersBinding":    {"A user's change of a binding is checked.", checks, someone, object(false, nil), object(false, nil), true},
		"NamespaceOfUser":      {"A user might lose what is protected.", ns, someone, object(false, nil), nil, true},
		"NamespaceOfOurs":      {"Execution namespaces go with their cluster.", ns, controller, object(false, nil), nil, false},
		"ProtectedFromUs":      {"What is protected is protected from everybody.", shield, controller, object(false, nil), nil, true},
		"ProtectedFromCleanup": {"Also from the garbage collector.", shield, collector, object(false, nil), nil, true},
	}
	matchers := map[string]webhook.WebhookAccessor{}
	mutating, validating := asked(t)
	for i := range mutating {
		matchers[*mutating[i].ClientConfig.URL] = webhook.NewMutatingWebhookAccessor(mutating[i].Name, "mutating-config", &mutating[i])
	}
	for i := range validating {
		matchers[*validating[i].ClientConfig.URL] = webhook.NewValidatingWebhookAccessor(validating[i].Name, "validating-config", &validating[i])
	}
	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			switch {
			case c.old == nil:
				operation = admission.Create
			case c.now == nil:
				operation = admission.Delete
			}
			attributes := admission.NewAttributesRecord(orNil(c.now), orNil(c.old), schema.GroupVersionKind{}, "n", "o", schema.GroupVersionResource{}, "", operation, &metav1.CreateOptions{}, false, c.by)
			got := matchers[c.path].GetCompiledMatcher(compiler).Match(t.Context(),
				&admission.VersionedAttributes{Attributes: attributes, VersionedObject: admission.NewLazyObject(orNil(c.now)), VersionedOldObject: admission.NewLazyObject(orNil(c.old))}, nil, nil)
			if got.Error != nil {
				t.Fatalf("%v: a request would fail: %s", got.Error, c.reason)
			}
			if got.Matches != c.asked {
				t.Errorf("asked: %v (%s), want %v: %s", got.Matches, got.FailedConditionName, c.asked, c.reason)
			}
		})
	}
}

// orNil is u, or a nil interface.
func orNil(u *unstructured.Unstructured) runtime.Object {
	if u == nil {
		return nil
	}
	return u
}
