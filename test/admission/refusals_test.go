package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// refused checks that an object is not accepted, with all of the texts in the message, and returns the answer.
func refused(t *testing.T, reason string, u *unstructured.Unstructured, texts ...string) metav1.Status {
	t.Helper()
	got, err := create(t, u)
	if err == nil {
		if err := remove(t, got); err != nil {
			t.Error(err)
		}
		t.Fatalf("%s %s was accepted: %s", u.GetKind(), u.GetName(), reason)
	}
	says(t, reason, err, texts...)
	return statusOf(t, err)
}

// says checks the message of a refusal.
func says(t *testing.T, reason string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was accepted: %s", reason)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("want %q in the message: %s\n%v", text, reason, err)
		}
	}
}

func denied(webhook string) string {
	return `admission webhook "` + webhook + `.karmada.io" denied the request: `
}

// TestRefusals checks of each kind that a mistake is refused with its place, what is there and what is allowed.
func TestRefusals(t *testing.T) {
	define(t)
	makeNamespace(t, "refused")
	cases := map[string]struct {
		reason   string
		manifest string
		want     []string
	}{
		"PropagationPolicy": {
			reason: "There are no such fields of clusters.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: refused, name: x}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}],
				placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: planet, operator: In, values: [earth]}]}}}}}`,
			want: []string{denied("propagationpolicy"), `spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].key: Invalid value: "planet": unsupported key "planet", must be provider, region, or zone`},
		},
		"ClusterPropagationPolicy": {
			reason: "No taint is tolerated by that.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: x}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}],
				placement: {clusterTolerations: [{key: a, operator: Lt, value: "5"}]}}}`,
			want: []string{denied("clusterpropagationpolicy"), `spec.placement.clusterTolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists"`},
		},
		"OverridePolicy": {
			reason: "It leads nowhere.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: refused, name: x}, spec: {
				overrideRules: [{overriders: {plaintext: [{path: spec/replicas, operator: replace, value: 3}]}}]}}`,
			want: []string{denied("overridepolicy"), `spec.overrideRules[0].overriders.plaintext[0].path: Invalid value: "spec/replicas": must be a JSON pointer, which begins with a slash: /spec/replicas`},
		},
		"ClusterOverridePolicy": {
			reason: "Which of the two clusters is meant?",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterOverridePolicy, metadata: {name: x}, spec: {targetCluster: {clusterNames: [a]},
				overrideRules: [{targetCluster: {clusterNames: [b]}, overriders: {}}]}}`,
			want: []string{denied("clusteroverridepolicy"), `spec.targetCluster: Forbidden: overrideRules and targetCluster can't co-exist`},
		},
		"ResourceInterpreterCustomization": {
			reason:   "There is no such version of a group.",
			manifest: `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: x}, spec: {target: {apiVersion: a/b/c, kind: K}, customizations: {}}}`,
			want:     []string{denied("resourceinterpretercustomization"), `spec.target.apiVersion: Invalid value: "a/b/c": must be a group and version, such as apps/v1`},
		},
		"ResourceInterpreterWebhookConfiguration": {
			reason: "There is no such question.",
			manifest: `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, metadata: {name: x}, webhooks: [{name: a.example.com, clientConfig: {url: "https://a.example.com"},
				interpreterContextVersions: [v1alpha1], rules: [{operations: [Prune], apiGroups: [apps], apiVersions: [v1], kinds: [Deployment]}]}]}`,
			want: []string{denied("config"), `webhooks[0].rules[0].operations[0]: Unsupported value: "Prune": supported values: `, `"InterpretReplica"`},
		},
		"FederatedResourceQuota": {
			reason: "The shares are more than the whole.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {namespace: refused, name: x}, spec: {overall: {cpu: "1"},
				staticAssignments: [{clusterName: a, hard: {cpu: "1"}}, {clusterName: b, hard: {cpu: 500m}}]}}`,
			want: []string{denied("federatedresourcequota"), `spec.overall[cpu]: Invalid value: "1": overall is less than assignments, which are 1500m together`},
		},
		"MultiClusterIngress": {
			reason:   "It leads nowhere.",
			manifest: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterIngress, metadata: {namespace: refused, name: x}, spec: {ingressClassName: a}}`,
			want:     []string{denied("multiclusteringress"), "spec: Required value: either `defaultBackend` or `rules` must be specified"},
		},
		"FederatedHPA": {
			reason: "There is nothing between the two.",
			manifest: `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {namespace: refused, name: x}, spec: {minReplicas: 5, maxReplicas: 3,
				scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`,
			want: []string{denied("federatedhpa"), "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"},
		},
		"CronFederatedHPA": {
			reason: "That is no time.",
			manifest: `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, metadata: {namespace: refused, name: x}, spec: {
				scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, rules: [{name: a, schedule: every day, targetReplicas: 3}]}}`,
			want: []string{denied("cronfederatedhpa"), `spec.rules[0].schedule: Invalid value: "every day": `, "it has five fields: minute, hour, day of month, month and day of week"},
		},
		"MultiClusterService": {
			reason:   "It cannot be both.",
			manifest: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {namespace: refused, name: x}, spec: {types: [CrossCluster, LoadBalancer]}}`,
			want:     []string{denied("multiclusterservice"), `spec.types: Invalid value: ["CrossCluster","LoadBalancer"]: must have no more than one type`},
		},
		"ResourceBinding": {
			reason: "Nobody could read it.",
			manifest: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: refused, name: x, annotations: {resourcebinding.karmada.io/dependencies: all}},
				spec: {schedulerName: nobody, resource: {apiVersion: v1, kind: ConfigMap, namespace: refused, name: c}}}`,
			want: []string{denied("resourcebinding"), `metadata.annotations[resourcebinding.karmada.io/dependencies]: Invalid value: "all": must be a JSON list of references`},
		},
		"ClusterTaintPolicy": {
			reason: "It would make workloads leave.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, metadata: {name: x}, spec: {taints: [{key: a, effect: NoExecute}],
				addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False"]}]}}`,
			want: []string{denied("clustertaintpolicy"), `spec.taints[0].effect: Forbidden: `, "--allow-no-execute-taint-policy"},
		},
		"Work": {
			reason:   "It could never be applied.",
			manifest: `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: refused, name: x}, spec: {workload: {manifests: [{apiVersion: v1, metadata: {name: c}}]}}}`,
			want:     []string{denied("work"), "spec.workload.manifests[0] is no object that can be applied: Object 'Kind' is missing"},
		},
		"WorkloadRebalancer": {
			reason:   "There is nothing to do.",
			manifest: `{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: x}, spec: {workloads: []}}`,
			want:     []string{"spec.workloads", "should have at least 1 items"},
		},
		"Cluster": {
			reason:   "There are two modes.",
			manifest: `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: x}, spec: {syncMode: Sideways}}`,
			want:     []string{`spec.syncMode: Unsupported value: "Sideways": supported values: "Pull", "Push"`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, c.reason, fleetrig.Object(t, c.manifest), c.want...)
		})
	}
}

// TestEveryMistake checks that a user learns of all mistakes at once, and a program of their places.
func TestEveryMistake(t *testing.T) {
	u := fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: default, name: x}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: elsewhere}], preemption: Always, suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}},
		placement: {clusterAffinity: {clusterNames: [a]}, clusterAffinities: [{affinityName: one}, {affinityName: one}], spreadConstraints: [{spreadByField: region, minGroups: 3, maxGroups: 2}]}}}`)
	want := map[string]string{
		"spec.resourceSelectors[0].namespace":              `the namespace must be that of the policy, "default"`,
		"spec.resourceSelectors[0].name":                   "with preemption Always every selector must name the one resource",
		"spec.placement.clusterAffinities":                 "clusterAffinities cannot co-exist with clusterAffinity",
		"spec.placement.clusterAffinities[1].affinityName": "each affinity term in a policy must have a unique name",
		"spec.placement.spreadConstraints[0].maxGroups":    "maxGroups lower than minGroups is not allowed",
		"spec.placement.spreadConstraints":                 "the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled",
		"spec.suspension":                                  "dispatching holds back every cluster",
	}
	status := refused(t, "all of it is wrong", u, slices.Collect(func(yield func(string) bool) {
		for path, text := range want {
			if !yield(path) || !yield(text) {
				return
			}
		}
	})...)
	if status.Details == nil || len(status.Details.Causes) != len(want) {
		t.Fatalf("the answer is %+v, want %d causes", status.Details, len(want))
	}
	for _, cause := range status.Details.Causes {
		if text := want[cause.Field]; text == "" || !strings.Contains(cause.Message, text) {
			t.Errorf("of %s it says %q, want %q in it", cause.Field, cause.Message, text)
		}
	}
}

// TestRefusedChanges checks what cannot be changed.
func TestRefusedChanges(t *testing.T) {
	define(t)
	makeNamespace(t, "changes")
	cases := map[string]struct {
		reason   string
		manifest string
		patch    string
		want     []string
	}{
		"Scheduler": {
			reason:   "What one scheduler has placed no other knows.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: changes, name: p}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}}`,
			patch:    `{"spec":{"schedulerName":"another"}}`,
			want:     []string{denied("propagationpolicy"), `spec.schedulerName: Invalid value: "another": the schedulerName should not be updated`},
		},
		"Identity": {
			reason:   "Others know it by that.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: changes}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: none}], placement: {}}}`,
			patch:    fmt.Sprintf(`{"metadata":{"labels":{%q:"another"}}}`, names.ClusterPropagationPolicyIDLabel),
			want:     []string{names.ClusterPropagationPolicyIDLabel, `"another"`, "it is the identity by which others know this object"},
		},
		"Types": {
			reason:   "It is another service then.",
			manifest: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {namespace: changes, name: s}, spec: {types: [CrossCluster]}}`,
			patch:    `{"spec":{"types":["LoadBalancer"]}}`,
			want:     []string{denied("multiclusterservice"), `spec.types: Invalid value: ["LoadBalancer"]: MultiClusterService types are immutable`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := created(t, fleetrig.Object(t, c.manifest))
			r, err := shared.Control.Resource(u)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(c.patch), metav1.PatchOptions{})
			says(t, c.reason, err, c.want...)
			if err := remove(t, u); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestScripts checks that Lua is compiled when it is written, and that no two scripts are for the same.
func TestScripts(t *testing.T) {
	customization := func(name, script string) *unstructured.Unstructured {
		u := fleetrig.Object(t, `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: `+name+`}, spec: {
			target: {apiVersion: shop.example.com/v1, kind: Basket}, customizations: {healthInterpretation: {}}}}`)
		if err := unstructured.SetNestedField(u.Object, script, "spec", "customizations", "healthInterpretation", "luaScript"); err != nil {
			t.Fatal(err)
		}
		return u
	}
	const good = "function InterpretHealth(o)\n  if o.status == nil then\n    return false\n  end\n  return o.status.ready\nend"
	refused(t, "a user has to find the mistake", customization("broken", strings.Replace(good, "return false", "return false then", 1)),
		denied("resourceinterpretercustomization"), "spec.customizations.healthInterpretation.luaScript: Invalid value: line 3,", `near "then"`)
	refused(t, "a user has to find the mistake", customization("broken", strings.TrimSuffix(good, "end")), "line 5", "the script ends too early")
	u := created(t, customization("good", good))
	refused(t, "only one of the two would be used", customization("second", good), denied("resourceinterpretercustomization"),
		"spec.customizations.healthInterpretation: Forbidden: conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(good)")
	shared.Control.Patch(t, u, `{"spec":{"customizations":{"retention":{"luaScript":"function Retain(d, o)\n  return d\nend"}}}}`)
	if err := remove(t, u); err != nil {
		t.Error(err)
	}
	u = created(t, customization("second", good))
	if err := remove(t, u); err != nil {
		t.Error(err)
	}
}
