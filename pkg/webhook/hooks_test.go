package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func handler(t *testing.T, name string) admission.Handler {
	t.Helper()
	hooks := Hooks(fixed())
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("there is no webhook %s", name)
	}
	return hooks[i].Handler
}

func TestHandlers(t *testing.T) {
	cases := map[string]struct {
		reason   string
		hook     string
		old, now string
		patches  []string // sorted
		code     int32    // 0: allowed
		message  string
	}{
		"Policy": {
			reason: "Only what is filled in is in the answer; what the user wrote stays as it is written, empty or unknown.",
			hook:   "propagationpolicy.karmada.io",
			now:    `{"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy","metadata":{"namespace":"shop","name":"p","labels":{}},"spec":{"placement":{},"resourceSelectors":[{"apiVersion":"apps/v1","kind":"Deployment","later":{"a":1}}],"later":[1]}}`,
			patches: []string{
				`add /metadata/finalizers ["karmada.io/propagation-policy-controller"]`,
				`add /metadata/labels/propagationpolicy.karmada.io~1permanent-id "new-id"`,
				`add /spec/resourceSelectors/0/namespace "shop"`,
			},
		},
		"ForgottenID": {
			reason:  "The identity comes back.",
			hook:    "propagationpolicy.karmada.io",
			old:     `{"metadata":{"namespace":"shop","name":"p","labels":{"propagationpolicy.karmada.io/permanent-id":"id"}},"spec":{"resourceSelectors":[]}}`,
			now:     `{"metadata":{"namespace":"shop","name":"p"},"spec":{"resourceSelectors":[]}}`,
			patches: []string{`add /metadata/labels {"propagationpolicy.karmada.io/permanent-id":"id"}`},
		},
		"ChangedID": {
			reason: "The user learns why.",
			hook:   "clusterpropagationpolicy.karmada.io",
			old:    `{"metadata":{"name":"p","labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"id"}},"spec":{"resourceSelectors":[]}}`,
			now:    `{"metadata":{"name":"p","labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"other"}},"spec":{"resourceSelectors":[]}}`,
			code:   403, message: "cannot be changed",
		},
		"Nothing": {
			reason: "What is complete gets no answer but yes.",
			hook:   "overridepolicy.karmada.io",
			now:    `{"metadata":{"namespace":"shop","name":"p"},"spec":{"overrideRules":[]}}`,
		},
		"OldVersion": {
			reason:  "A binding of an earlier version, whose spec is another, is a binding.",
			hook:    "resourcebinding.karmada.io",
			now:     `{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{"namespace":"d","name":"b","labels":{"a":"b"}},"spec":{"resource":{"resourcePerReplicas":{"cpu":1}}}}`,
			patches: []string{`add /metadata/labels/resourcebinding.karmada.io~1permanent-id "new-id"`},
		},
		"ClusterBinding": {
			reason:  "The other scope has a label of its own.",
			hook:    "clusterresourcebinding.karmada.io",
			now:     `{"metadata":{"name":"b"},"spec":{}}`,
			patches: []string{`add /metadata/labels {"clusterresourcebinding.karmada.io/permanent-id":"new-id"}`},
		},
		"Work": {
			reason: "A manifest loses and gains single fields.",
			hook:   "work.karmada.io",
			old:    `{"metadata":{"namespace":"karmada-es-m1","name":"w","labels":{"work.karmada.io/permanent-id":"id"}},"spec":{"workload":{}}}`,
			now:    `{"metadata":{"namespace":"karmada-es-m1","name":"w","labels":{"work.karmada.io/permanent-id":"id"}},"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u","labels":{"work.karmada.io/permanent-id":"id","karmada.io/managed":"true"}}}]}}}`,
			patches: []string{
				`add /spec/workload/manifests/0/metadata/annotations {"resourcetemplate.karmada.io/managed-annotations":"resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/name,work.karmada.io/namespace","resourcetemplate.karmada.io/managed-labels":"karmada.io/managed,work.karmada.io/permanent-id","resourcetemplate.karmada.io/uid":"u","work.karmada.io/name":"w","work.karmada.io/namespace":"karmada-es-m1"}`,
				`remove /spec/workload/manifests/0/metadata/uid null`,
			},
		},
		"NoObject": {
			reason: "A manifest that could never be applied is refused at once.",
			hook:   "work.karmada.io",
			now:    `{"metadata":{"namespace":"karmada-es-m1","name":"w"},"spec":{"workload":{"manifests":[{"data":{}}]}}}`,
			code:   403, message: "spec.workload.manifests[0]",
		},
		"Service": {
			reason:  "A service has an identity; its spec is not looked at.",
			hook:    "multiclusterservice.karmada.io",
			now:     `{"metadata":{"namespace":"shop","name":"s"},"spec":{"types":"later"}}`,
			patches: []string{`add /metadata/labels {"multiclusterservice.karmada.io/permanent-id":"new-id"}`},
		},
		"Autoscaler": {
			reason: "What is filled in is that of a HorizontalPodAutoscaler.",
			hook:   "autoscaling.karmada.io",
			now:    `{"metadata":{"namespace":"shop","name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"},"later":{}}}`,
			patches: []string{
				`add /spec/metrics [{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}]`,
				`add /spec/minReplicas 1`,
			},
		},
		"Unreadable": {
			reason: "Whoever asks wrongly is told.",
			hook:   "propagationpolicy.karmada.io",
			now:    `{"spec":[]}`,
			code:   400, message: "read the object",
		},
		"UnreadableOld": {
			reason: "What nobody can read can be mended.",
			hook:   "clusterpropagationpolicy.karmada.io",
			old:    `{"metadata":{"name":"p","labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"id"}},"spec":[]}`,
			now:    `{"metadata":{"name":"p","finalizers":["karmada.io/cluster-propagation-policy-controller"],"labels":{"clusterpropagationpolicy.karmada.io/permanent-id":"id"}},"spec":{"resourceSelectors":[]}}`,
		},
		"Endless": {
			reason: "A quantity that would take for ever to read is validation's to refuse.",
			hook:   "autoscaling.karmada.io",
			now:    `{"metadata":{"namespace":"shop","name":"a"},"spec":{"metrics":[{"resource":{"target":{"value":"1e10444440"}}}]}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(c.now)}}}
			if c.old != "" {
				req.OldObject.Raw = []byte(c.old)
			}
			resp := handler(t, c.hook).Handle(t.Context(), req)
			if resp.Allowed != (c.code == 0) {
				t.Fatalf("allowed %v, %+v: %s", resp.Allowed, resp.Result, c.reason)
			}
			if !resp.Allowed {
				if resp.Result.Code != c.code || !strings.Contains(resp.Result.Message, c.message) {
					t.Errorf("got %d %q, want %d with %q: %s", resp.Result.Code, resp.Result.Message, c.code, c.message, c.reason)
				}
				return
			}
			var patches []string
			for _, p := range resp.Patches {
				value, err := json.Marshal(p.Value)
				if err != nil {
					t.Fatal(err)
				}
				patches = append(patches, p.Operation+" "+p.Path+" "+string(value))
			}
			slices.Sort(patches)
			if diff := cmp.Diff(c.patches, patches); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestOverlaid(t *testing.T) {
	parse := func(s string) map[string]any {
		var m map[string]any
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	cases := map[string]struct {
		reason                   string
		raw, before, after, want string
	}{
		"Same":        {"Nothing changed, nothing changes.", `{"a":{},"x":null}`, `{"b":0}`, `{"b":0}`, `{"a":{},"x":null}`},
		"Added":       {"A new field, beside others.", `{"a":{"u":1}}`, `{"a":{}}`, `{"a":{"n":2}}`, `{"a":{"u":1,"n":2}}`},
		"AddedAbove":  {"A new field of what the user left out.", `{}`, `{}`, `{"a":{"n":2}}`, `{"a":{"n":2}}`},
		"FromEmpty":   {"The types leave out what is empty.", `{"a":{}}`, `{}`, `{"a":{"n":2}}`, `{"a":{"n":2}}`},
		"FromDefault": {"The types write what the user left out.", `{}`, `{"a":{"b":0}}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"Removed":     {"A field goes, unknown ones stay.", `{"a":1,"u":2}`, `{"a":1}`, `{}`, `{"u":2}`},
		"InList":      {"One entry of a list.", `{"l":[{"u":1},{"u":2}]}`, `{"l":[{},{}]}`, `{"l":[{},{"n":3}]}`, `{"l":[{"u":1},{"u":2,"n":3}]}`},
		"LongerList":  {"A list of another length is a new list.", `{"l":[{"u":1}]}`, `{"l":[{}]}`, `{"l":[{},{}]}`, `{"l":[{},{}]}`},
		"OtherSort":   {"A value becomes one of another sort.", `{"a":[1]}`, `{"a":[1]}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := parse(c.raw)
			got := overlaid(raw, parse(c.before), parse(c.after))
			if diff := cmp.Diff(parse(c.want), got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(parse(c.raw), raw); diff != "" {
				t.Errorf("the original was changed (-want +got):\n%s", diff)
			}
		})
	}
}
