package validate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/features"
)

func options(t testing.TB) Options {
	t.Helper()
	return Options{Reader: existing(t), Features: gate(t, features.MultiplePodTemplatesScheduling, true)}
}

// request is one of the API server: YAML, empty for none.
func request(t *testing.T, op admissionv1.Operation, was, now string) admission.Request {
	t.Helper()
	raw := func(text string) runtime.RawExtension {
		if text == "" {
			return runtime.RawExtension{}
		}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "p", Kind: metav1.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Operation: op, OldObject: raw(was), Object: raw(now),
	}}
}

func handler(t *testing.T, o Options, name string) admission.Handler {
	t.Helper()
	hooks := Hooks(o)
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("there is no webhook %s", name)
	}
	return hooks[i].Handler
}

func TestNames(t *testing.T) {
	got := map[string]string{}
	for _, h := range Hooks(options(t)) {
		got[h.Name] = h.Path
	}
	want := map[string]string{"config.karmada.io": "/validate-resourceinterpreterwebhookconfiguration"}
	for _, kind := range []string{
		"propagationpolicy", "clusterpropagationpolicy", "overridepolicy", "clusteroverridepolicy", "resourceinterpretercustomization",
		"federatedresourcequota", "multiclusteringress", "federatedhpa", "cronfederatedhpa", "multiclusterservice", "resourcebinding", "clustertaintpolicy",
	} {
		want[kind+".karmada.io"] = "/validate-" + kind
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names and paths are the contract's (-want +got):\n%s", diff)
	}
}

func TestHandlers(t *testing.T) {
	const (
		policies = "propagationpolicy.karmada.io"
		good     = `{metadata: {namespace: shop, name: p, labels: {propagationpolicy.karmada.io/permanent-id: id}}, spec: {schedulerName: s, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}]}}`
		bad      = `{metadata: {namespace: shop, name: p, labels: {propagationpolicy.karmada.io/permanent-id: id}}, spec: {schedulerName: s, preemption: Always, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: bank}]}}`
	)
	with := func(text, what, by string) string {
		if !strings.Contains(text, what) {
			t.Fatalf("there is no %q in %s", what, text)
		}
		return strings.Replace(text, what, by, 1)
	}
	labelled := with(bad, "name: p,", "name: p, annotations: {a: b}, finalizers: [],")
	unreadable := `{metadata: {name: p}, spec: [1]}`
	cases := map[string]struct {
		reason   string
		hook     string
		op       admissionv1.Operation
		was, now string
		code     int32    // 0: allowed
		message  []string // what the refusal says
		warnings []string
	}{
		"Created":      {reason: "Nothing is wrong.", hook: policies, op: "CREATE", now: good},
		"CreatedBad":   {reason: "Everything that is wrong is said.", hook: policies, op: "CREATE", now: bad, code: 403, message: []string{"spec.resourceSelectors[0].namespace: ", "spec.resourceSelectors[0].name: "}},
		"Updated":      {reason: "Nothing is wrong any more.", hook: policies, op: "UPDATE", was: bad, now: good},
		"UpdatedBad":   {reason: "It was not wrong before.", hook: policies, op: "UPDATE", was: good, now: bad, code: 403, message: []string{"spec.resourceSelectors[0].name: "}},
		"StillBad":     {reason: "Its metadata may change: it was accepted once.", hook: policies, op: "UPDATE", was: bad, now: labelled},
		"StillBadSpec": {reason: "Whoever changes it has to mend it.", hook: policies, op: "UPDATE", was: bad, now: with(bad, "kind: ConfigMap", "kind: Secret"), code: 403, message: []string{"namespace"}},
		"Rewritten":    {reason: "An empty list and none are the same.", hook: policies, op: "UPDATE", was: bad, now: with(bad, "preemption: Always", "preemption: Always, dependentOverrides: []")},
		"Leaving":      {reason: "What is being deleted loses its finalizers, whatever it is.", hook: policies, op: "UPDATE", was: bad, now: with(with(bad, "name: p,", "name: p, deletionTimestamp: 2026-01-01T00:00:00Z,"), "schedulerName: s", "schedulerName: t")},
		"Identity":     {reason: "This is no property of the spec.", hook: policies, op: "UPDATE", was: good, now: with(good, "permanent-id: id", "permanent-id: other"), code: 403, message: []string{"metadata.labels[propagationpolicy.karmada.io/permanent-id]: "}},
		"Scheduler":    {reason: "A change is looked at, and so is the spec.", hook: policies, op: "UPDATE", was: good, now: with(bad, "schedulerName: s", "schedulerName: t"), code: 403, message: []string{"the schedulerName should not be updated", "spec.resourceSelectors[0].name: "}},
		"Deleted":      {reason: "A deletion has no object.", hook: policies, op: "DELETE", was: bad},
		"Unreadable":   {reason: "Whoever asks wrongly is told.", hook: policies, op: "CREATE", now: unreadable, code: 400, message: []string{"read the object"}},
		"Broken":       {reason: "What cannot be read is replaced by what can.", hook: policies, op: "UPDATE", was: unreadable, now: good},
		"BrokenByBad":  {reason: "By what is right.", hook: policies, op: "UPDATE", was: unreadable, now: bad, code: 403, message: []string{"namespace"}},
		"BrokenStays":  {reason: "Its metadata may change.", hook: policies, op: "UPDATE", was: unreadable, now: with(unreadable, "name: p", "name: p, labels: {a: b}")},
		"BrokenLeaves": {reason: "It can go.", hook: policies, op: "UPDATE", was: unreadable, now: `{metadata: {name: p, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: 3}`},
		"BrokenAnew":   {reason: "It does not become unreadable in another way.", hook: policies, op: "UPDATE", was: unreadable, now: `{metadata: {name: p}, spec: 3}`, code: 400, message: []string{"read the object"}},
		"Advice": {
			reason: "What is accepted and probably wrong is said.", hook: "clusteroverridepolicy.karmada.io", op: "CREATE",
			now:      `{spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}, overrideRules: [{overriders: {}}]}}`,
			warnings: []string{"spec.overriders has no effect beside spec.overrideRules: move its fieldOverrider into a rule"},
		},
		"NoAdvice": {
			reason: "Once.", hook: "clusteroverridepolicy.karmada.io", op: "UPDATE",
			was: `{spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}, overrideRules: [{overriders: {}}]}}`,
			now: `{metadata: {labels: {a: b}}, spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}, overrideRules: [{overriders: {}}]}}`,
		},
		"Webhooks":   {reason: "This kind has no spec, and is looked at all the same.", hook: "config.karmada.io", op: "CREATE", now: `{webhooks: [{name: a, clientConfig: {}, interpreterContextVersions: []}]}`, code: 403, message: []string{"webhooks[0].name: ", "webhooks[0].clientConfig: ", "webhooks[0].interpreterContextVersions: "}},
		"OldBinding": {reason: "A binding of an earlier version, whose spec is another, is a binding.", hook: "resourcebinding.karmada.io", op: "CREATE", now: `{apiVersion: work.karmada.io/v1alpha1, spec: {resource: {resourcePerReplicas: {cpu: 1}, replicas: 2}, clusters: [{name: m1, replicas: 2}]}}`},
		"HugeQuota":  {reason: "To read it would take hours.", hook: "federatedresourcequota.karmada.io", op: "CREATE", now: `{metadata: {name: q}, spec: {overall: {cpu: "1e-2000000000"}}}`, code: 403, message: []string{`spec.overall[cpu]: Invalid value: "1e-2000000000"`}},
		"HugeAutoscaler": {
			reason: "Wherever there are quantities.", hook: "federatedhpa.karmada.io", op: "CREATE",
			now:  `{metadata: {name: h}, spec: {scaleTargetRef: {kind: K, name: a}, maxReplicas: 1, metrics: [{type: External, external: {metric: {name: m}, target: {type: Value, value: "1e-2000000000"}}}]}}`,
			code: 403, message: []string{`spec.metrics[0].external.target.value: Invalid value: "1e-2000000000"`},
		},
		"HugeBinding": {
			reason: "Those of a template are written into its binding.", hook: "resourcebinding.karmada.io", op: "CREATE",
			now:  `{spec: {replicaRequirements: {resourceRequest: {cpu: "1e-2000000000"}}}}`,
			code: 403, message: []string{`spec.replicaRequirements.resourceRequest[cpu]: `},
		},
		"HugeStays":    {reason: "Metadata of what is there may change.", hook: "federatedresourcequota.karmada.io", op: "UPDATE", was: `{spec: {overall: {cpu: "1e-2000000000"}}}`, now: `{metadata: {labels: {a: b}}, spec: {overall: {cpu: "1e-2000000000"}}}`},
		"HugeMended":   {reason: "And it can be mended.", hook: "federatedresourcequota.karmada.io", op: "UPDATE", was: `{spec: {overall: {cpu: "1e-2000000000"}}}`, now: `{spec: {overall: {cpu: 1}}}`},
		"ImmutableMCS": {reason: "What must not change is refused on its own.", hook: "multiclusterservice.karmada.io", op: "UPDATE", was: `{metadata: {name: a}, spec: {types: [CrossCluster]}}`, now: `{metadata: {name: a}, spec: {types: [LoadBalancer]}}`, code: 403, message: []string{"MultiClusterService types are immutable"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp := handler(t, options(t), c.hook).Handle(t.Context(), request(t, c.op, c.was, c.now))
			if resp.Allowed != (c.code == 0) {
				t.Fatalf("allowed %v, %+v: %s", resp.Allowed, resp.Result, c.reason)
			}
			if diff := cmp.Diff(c.warnings, resp.Warnings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if len(resp.Patches) > 0 {
				t.Errorf("changes %v: it only says yes or no", resp.Patches)
			}
			for _, part := range c.message {
				if resp.Result.Code != c.code || !strings.Contains(resp.Result.Message, part) {
					t.Errorf("got %d %q, want %d with %q: %s", resp.Result.Code, resp.Result.Message, c.code, part, c.reason)
				}
			}
		})
	}
}

// Programs need not take messages apart.
func TestCauses(t *testing.T) {
	resp := handler(t, options(t), "overridepolicy.karmada.io").Handle(t.Context(), request(t, "CREATE", "",
		`{metadata: {namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: K, namespace: bank}], overrideRules: [{overriders: {fieldOverrider: [{fieldPath: /a}]}}]}}`))
	want := &metav1.StatusDetails{Name: "p", Group: "g", Kind: "K", Causes: []metav1.StatusCause{
		{Type: "FieldValueInvalid", Field: "spec.resourceSelectors[0].namespace", Message: `Invalid value: "bank": the namespace must be that of the policy, "shop": only a cluster-scoped policy selects in others`},
		{Type: "FieldValueRequired", Field: "spec.overrideRules[0].overriders.fieldOverrider[0]", Message: "Required value: must set either json or yaml, whichever the document is"},
	}}
	if diff := cmp.Diff(want, resp.Result.Details); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if resp.Result.Reason != metav1.StatusReasonForbidden {
		t.Errorf("reason %q: clients know a refusal by it", resp.Result.Reason)
	}
}

// A refusal fits into a response, however much is wrong.
func TestRefusalsAreBounded(t *testing.T) {
	selectors := strings.Repeat("{apiVersion: v1, kind: K, namespace: "+strings.Repeat("x", 200)+"},", 3000)
	resp := handler(t, options(t), "overridepolicy.karmada.io").Handle(t.Context(), request(t, "CREATE", "", `{metadata: {namespace: shop}, spec: {resourceSelectors: [`+selectors+`]}}`))
	if n := len(resp.Result.Message); resp.Allowed || n < 1000 || n > longestMessage {
		t.Errorf("allowed %v with a message of %d bytes", resp.Allowed, n)
	}
	if n := len(resp.Result.Details.Causes); n != mostErrors {
		t.Errorf("got %d causes, want %d", n, mostErrors)
	}
}

// A control plane that cannot be asked is no fault of the user.
func TestFailure(t *testing.T) {
	o := options(t)
	o.Reader = interceptor.NewClient(existing(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("boom")
		},
	})
	const object = `{metadata: {name: a}, spec: {target: {apiVersion: v1, kind: K}, customizations: {retention: {luaScript: x=1}}}}`
	h := handler(t, o, "resourceinterpretercustomization.karmada.io")
	resp := h.Handle(t.Context(), request(t, "CREATE", "", object))
	if resp.Allowed || resp.Result.Code != 500 || !strings.Contains(resp.Result.Message, "boom") {
		t.Errorf("allowed %v, %+v: want a failure, with its cause", resp.Allowed, resp.Result)
	}
	if resp := h.Handle(t.Context(), request(t, "UPDATE", object, strings.Replace(object, "name: a", "name: a, labels: {b: c}", 1))); !resp.Allowed {
		t.Errorf("got %+v: what does not change needs nobody", resp.Result)
	}
}

// No kind is ever kept from being deleted: for each, what no rule accepts loses its finalizers.
func TestEveryKindCanGo(t *testing.T) {
	for _, h := range Hooks(options(t)) {
		for what, metadata := range map[string]map[string]any{
			"leaving": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
			"staying": {},
		} {
			was := map[string]any{"metadata": map[string]any{"finalizers": []string{"a/b"}}, "spec": map[string]any{}, "webhooks": []any{map[string]any{}}}
			now := map[string]any{"metadata": metadata, "spec": map[string]any{}, "webhooks": []any{map[string]any{}}}
			req := admission.Request{}
			for raw, o := range map[*[]byte]map[string]any{&req.OldObject.Raw: was, &req.Object.Raw: now} {
				var err error
				if *raw, err = json.Marshal(o); err != nil {
					t.Fatal(err)
				}
			}
			if resp := h.Handler.Handle(t.Context(), req); !resp.Allowed {
				t.Errorf("%s, %s: got %+v", h.Name, what, resp.Result)
			}
		}
	}
}
