package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func TestReplicas(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           int32
		err            string
	}{
		"Deployment":       {"As it says.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3}}`, 3, ""},
		"DeploymentNil":    {"What says nothing has none.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}`, 0, ""},
		"DeploymentNull":   {"Null is nothing.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: null}}`, 0, ""},
		"DeploymentString": {"Text is no number.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: "3"}}`, 0, "spec.replicas has the wrong type: 3 is no integer"},
		"DeploymentFloat":  {"Half a replica is none.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1.5}}`, 0, "no integer"},
		"DeploymentHuge":   {"What a binding cannot hold is no number of replicas.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 4294967297}}`, 0, "no number of replicas"},
		"DeploymentBelow":  {"Nor is less than none.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: -1}}`, 0, "no number of replicas"},
		"NoSpec":           {"A spec may be anything.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: [x]}`, 0, "spec"},
		"BadTemplate":      {"So may a pod.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: x}}}}`, 0, "read spec.template.spec"},
		"BadQuantity":      {"And a quantity.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{resources: {requests: {cpu: lots}}}]}}}}`, 0, "read spec.template.spec"},
		"ReplicaSet":       {"As a Deployment.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 3}}`, 3, ""},
		"StatefulSet":      {"As a Deployment.", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3}}`, 3, ""},
		"Job":              {"What runs at once.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 3}}`, 3, ""},
		"JobFew":           {"No more than have to be done.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 3, completions: 2}}`, 2, ""},
		"JobMany":          {"The rest come later.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 3, completions: 9}}`, 3, ""},
		"JobNil":           {"What says nothing has none.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 2}}`, 0, ""},
		"JobMalformed":     {"Text is no number.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 1, completions: "2"}}`, 0, "spec.completions"},
		"Pod":              {"One.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}`, 1, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			got, needs, err := New(Options{}).Replicas(t.Context(), object)
			fails(t, tc.reason, tc.err, err)
			if got != tc.want || needs != nil {
				t.Errorf("%d, %v, want %d and no requirements\n%s", got, needs, tc.want, tc.reason)
			}
			unchanged(t, "object", tc.object, object)
		})
	}
}

func TestRequirements(t *testing.T) {
	request := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	cases := map[string]struct {
		reason, pod string
		options     Options
		want        *workv1alpha2.ReplicaRequirements
	}{
		"Nothing": {reason: "A pod that asks for nothing needs nothing.", pod: `{containers: [{name: c}]}`},
		"Sum": {
			reason: "Containers run together.",
			pod:    `{containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}, {name: b, resources: {requests: {cpu: "1", memory: 1Gi}}}]}`,
			want:   &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "1100m", "memory", "2Gi")},
		},
		"Limits": {
			reason: "A limit is a request where there is none, by resource.",
			pod:    `{containers: [{name: a, resources: {limits: {cpu: "2", memory: 2Gi}, requests: {memory: 1Gi}}}]}`,
			want:   &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "2", "memory", "1Gi")},
		},
		"InitContainers": {
			reason: "They run before, one at a time; those that go on running count no different.",
			pod: `{initContainers: [{name: i, resources: {limits: {cpu: "3"}}}, {name: j, restartPolicy: Always, resources: {requests: {cpu: "2", memory: 1Gi}}}],
			  containers: [{name: a, resources: {requests: {cpu: "1", memory: 2Gi}}}]}`,
			want: &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "3", "memory", "2Gi")},
		},
		"Overhead": {
			reason: "What the sandbox takes comes on top of everything.",
			pod:    `{overhead: {cpu: 250m, memory: 64Mi}, initContainers: [{name: i, resources: {requests: {cpu: "2"}}}], containers: [{name: a, resources: {requests: {cpu: "1"}}}]}`,
			want:   &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "2250m", "memory", "64Mi")},
		},
		"Names": {
			reason: "Only what a node can hand out is counted, and nothing that is zero.",
			pod: `{containers: [{name: a, resources: {requests: {ephemeral-storage: 1Gi, nvidia.com/gpu: "2", hugepages-2Mi: 4Mi, attachable-volumes-aws-ebs: "3",
			  storage: 1Gi, pods: "1", requests.nvidia.com/gpu: "1", kubernetes.io/batch-cpu: "1", cpu: "0", memory: "0"}}}]}`,
			want: &workv1alpha2.ReplicaRequirements{ResourceRequest: request("ephemeral-storage", "1Gi", "nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi", "attachable-volumes-aws-ebs", "3")},
		},
		"OnlyZero": {reason: "To ask for zero is to ask for nothing.", pod: `{containers: [{name: a, resources: {requests: {cpu: "0"}}}]}`},
		"Format": {
			reason: "What is the same looks the same.",
			pod:    `{containers: [{name: a, resources: {requests: {cpu: "0.5", memory: "1073741824", ephemeral-storage: "1000", example.com/x: 1Ki}}}]}`,
			want:   &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "500m", "memory", "1Gi", "ephemeral-storage", "1000", "example.com/x", "1024")},
		},
		"NodeClaim": {
			reason: "What restricts the nodes; what is only preferred does not.",
			pod: `{nodeSelector: {disk: ssd}, tolerations: [{key: k, operator: Exists}], affinity: {nodeAffinity: {
			  requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: In, values: [a]}]}]},
			  preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}, podAffinity: {}}}`,
			want: &workv1alpha2.ReplicaRequirements{NodeClaim: &workv1alpha2.NodeClaim{
				NodeSelector: map[string]string{"disk": "ssd"},
				Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
				HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "z", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
				}}},
			}},
		},
		"EmptyClaim": {reason: "Empty restrictions are none.", pod: `{nodeSelector: {}, tolerations: [], affinity: {nodeAffinity: {}}}`},
		"NoQuotas": {
			reason: "The priority class is for quotas only.",
			pod:    `{priorityClassName: high, containers: [{name: a, resources: {requests: {cpu: "1"}}}]}`,
			want:   &workv1alpha2.ReplicaRequirements{ResourceRequest: request("cpu", "1")},
		},
		"Quotas": {
			reason: "Quotas may be for a priority class.", options: Options{ForQuotas: true},
			pod:  `{priorityClassName: high, containers: [{name: a, resources: {requests: {cpu: "1"}}}]}`,
			want: &workv1alpha2.ReplicaRequirements{Namespace: "ns", PriorityClassName: "high", ResourceRequest: request("cpu", "1")},
		},
		"QuotasNothing": {reason: "A priority is no requirement.", options: Options{ForQuotas: true}, pod: `{priorityClassName: high}`},
	}
	kinds := map[string]string{
		"Deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns}, spec: {replicas: 1, template: {spec: POD}}}`,
		"ReplicaSet":  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, namespace: ns}, spec: {replicas: 1, template: {spec: POD}}}`,
		"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns}, spec: {replicas: 1, template: {spec: POD}}}`,
		"Job":         `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns}, spec: {parallelism: 1, template: {spec: POD}}}`,
		"Pod":         `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: POD}`,
	}
	for name, tc := range cases {
		for kind, object := range kinds {
			t.Run(name+kind, func(t *testing.T) {
				_, got, err := New(tc.options).Replicas(t.Context(), parse(t, replaced(object, tc.pod)))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(text(t, tc.want), text(t, got)); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// text is how a value reads on the wire.
func text(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRevise(t *testing.T) {
	cases := map[string]struct {
		reason, object, want, err string
	}{
		"Deployment": {
			"What the typed API does not know stays.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3, novelty: {x: 1}, template: {spec: {containers: [{name: c, novelty: 2, resources: {}}]}}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 7, novelty: {x: 1}, template: {spec: {containers: [{name: c, novelty: 2, resources: {}}]}}}}`, "",
		},
		"Absent": {
			"Where nothing is said the cluster decides.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {paused: true}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {paused: true}}`, "",
		},
		"ReplicaSet":  {"As a Deployment.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 3}}`, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 7}}`, ""},
		"StatefulSet": {"As a Deployment.", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3}}`, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 7}}`, ""},
		"Job": {
			"How many have to be done is divided elsewhere.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 3, completions: 3}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 7, completions: 3}}`, "",
		},
		"Malformed": {"Text is no number to replace.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: x}}`, "", "spec.replicas has the wrong type"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			got, err := New(Options{}).Revise(t.Context(), object, 7)
			if fails(t, tc.reason, tc.err, err) || tc.err != "" {
				return
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			got.Object["spec"].(map[string]any)["added"] = true
			unchanged(t, "object", tc.object, object)
		})
	}
}
