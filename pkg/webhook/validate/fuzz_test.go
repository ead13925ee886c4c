package validate

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// What is begun with is in testdata/fuzz. Run one with
//
//	go test -fuzz '^FuzzHandlers$' ./pkg/webhook/validate

// FuzzHandlers asks every webhook about any bytes: it answers, and what does not change is allowed.
func FuzzHandlers(f *testing.F) {
	hooks := Hooks(options(f))
	f.Fuzz(func(t *testing.T, which uint8, was, now []byte) {
		h := hooks[int(which)%len(hooks)]
		ask := func(was, now []byte) admission.Response {
			req := admission.Request{}
			req.OldObject.Raw, req.Object.Raw = was, now
			return h.Handler.Handle(t.Context(), req)
		}
		if resp := ask(was, now); resp.Allowed == (resp.Result.Code >= 400) {
			t.Errorf("%s: allowed %v with %+v", h.Name, resp.Allowed, resp.Result)
		}
		if resp := ask(nil, now); !resp.Allowed && !utf8.ValidString(resp.Result.Message) && utf8.Valid(now) {
			t.Errorf("%s: says %q, which is no text", h.Name, resp.Result.Message)
		}
		if resp := ask(now, now); !resp.Allowed && resp.Result.Code != 400 {
			t.Errorf("%s: refuses that nothing changes: %+v", h.Name, resp.Result)
		}
	})
}

// FuzzSelectors checks selections. What is accepted can be evaluated.
func FuzzSelectors(f *testing.F) {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{"a": "b"}},
		Spec:       clusterv1alpha1.ClusterSpec{Provider: "p", Region: "r", Zones: []string{"z"}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a policyv1alpha1.ClusterAffinity
		if json.Unmarshal(data, &a) != nil {
			return
		}
		if len(affinity(&a, field.NewPath("a"))) > 0 {
			return
		}
		if _, err := policy.MatchesCluster(&a, cluster); err != nil {
			t.Errorf("%s is accepted, and cannot be evaluated: %v", data, err)
		}
		rs := []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "K", LabelSelector: a.LabelSelector}}
		if errs := selectors(rs, "", field.NewPath("s")); len(errs) > 0 {
			t.Errorf("%s selects clusters, and not objects: %v", data, errs)
		}
	})
}

// FuzzPlacement checks the rest of where things go: taints, spread constraints, failover and its paths.
func FuzzPlacement(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var s policyv1alpha1.PropagationSpec
		if json.Unmarshal(data, &s) != nil {
			return
		}
		_ = propagationSpec(&s, "shop").ToAggregate()
	})
}

// FuzzOverriders checks changes of objects. Whatever is accepted is carried out, or fails with an error.
func FuzzOverriders(f *testing.F) {
	text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","labels":{"a":"b"},"annotations":{"d":"{\"a\":[1]}","y":"a: [1]"}},` +
		`"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","image":"r.io/a/b:1@sha256:00","command":["x"]}]}}}}`
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o policyv1alpha1.Overriders
		if json.Unmarshal(data, &o) != nil {
			return
		}
		if len(overriders(&o, field.NewPath("o"))) > 0 {
			return
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		p := policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: o}}}}
		result, err := override.Apply(u, cluster, []policyv1alpha1.ClusterOverridePolicy{p}, nil)
		if err == nil && result.Object.GetName() == "" {
			t.Errorf("%s leaves an object without name", data)
		}
	})
}

// FuzzTaints checks taints that policies add. What is accepted could be a taint of a node.
func FuzzTaints(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var s policyv1alpha1.ClusterTaintPolicySpec
		if json.Unmarshal(data, &s) != nil {
			return
		}
		path := field.NewPath("spec")
		_ = append(matchConditions(s.AddOnConditions, path), matchConditions(s.RemoveOnConditions, path)...).ToAggregate()
		allowed, strict := policyTaints(s.Taints, true, path), policyTaints(s.Taints, false, path)
		if len(allowed) > len(strict) {
			t.Errorf("%s: what is allowed is refused: %v", data, allowed)
		}
		if len(strict) == 0 && slices.ContainsFunc(s.Taints, func(t policyv1alpha1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
			t.Errorf("%s evicts, and is accepted", data)
		}
	})
}

// FuzzQuantities checks limits, as they come. What is accepted leaves every share within them.
func FuzzQuantities(f *testing.F) {
	h := validating[policyv1alpha1.FederatedResourceQuota](quotas())
	f.Fuzz(func(t *testing.T, name, overall, a, b string) {
		q := map[string]any{"metadata": map[string]any{"name": "q"}, "spec": map[string]any{
			"overall": map[string]string{name: overall},
			"staticAssignments": []any{
				map[string]any{"clusterName": "m1", "hard": map[string]string{name: a}},
				map[string]any{"clusterName": "m2", "hard": map[string]string{name: b}},
			},
		}}
		req := admission.Request{}
		var err error
		if req.Object.Raw, err = json.Marshal(q); err != nil {
			t.Fatal(err)
		}
		if !h.Handle(t.Context(), req).Allowed {
			return
		}
		var accepted policyv1alpha1.FederatedResourceQuota
		if err := json.Unmarshal(req.Object.Raw, &accepted); err != nil {
			t.Fatal(err)
		}
		for key, most := range accepted.Spec.Overall {
			for _, share := range accepted.Spec.StaticAssignments {
				if hard := share.Hard[key]; hard.Cmp(most) > 0 || hard.Sign() < 0 {
					t.Errorf("%s: %s of %s is accepted", key, hard.String(), most.String())
				}
			}
		}
	})
}

// FuzzCompile compiles anything: it is Lua, or there is an error of one line.
func FuzzCompile(f *testing.F) {
	f.Fuzz(func(t *testing.T, script string) {
		if err := compile(script); err != nil && len(err.Error()) > 500 {
			t.Errorf("%q: says %q", script, err)
		}
	})
}

// FuzzSchedules reads schedules and time zones.
func FuzzSchedules(f *testing.F) {
	f.Fuzz(func(_ *testing.T, when, zone string) {
		_ = readSchedule(when)
		_ = readZone(zone)
	})
}
