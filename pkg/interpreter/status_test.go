package interpreter

import "testing"

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		reason, object, want, err string
	}{
		"Deployment": {
			"Counts and the versions that they are about, not conditions.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 3, annotations: {resourcetemplate.karmada.io/generation: "7"}},
			  status: {replicas: 5, readyReplicas: 4, updatedReplicas: 3, availableReplicas: 2, unavailableReplicas: 1, observedGeneration: 2, conditions: [{type: Available}], collisionCount: 1}}`,
			`{"availableReplicas":2,"generation":3,"observedGeneration":2,"readyReplicas":4,"replicas":5,"resourceTemplateGeneration":7,"unavailableReplicas":1,"updatedReplicas":3}`, "",
		},
		"DeploymentUnseen":  {"Nobody has looked at it: there is nothing to tell.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, status: {}}`, "", ""},
		"DeploymentNone":    {"The same.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}}`, "", ""},
		"DeploymentZero":    {"To have none is something to tell.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, status: {observedGeneration: 1}}`, `{"generation":1,"observedGeneration":1}`, ""},
		"DeploymentBadMark": {"An annotation may be anything.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {resourcetemplate.karmada.io/generation: x}}, status: {replicas: 1}}`, "", `"x" is no generation`},
		"ReplicaSet":        {"Fewer counts.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 3}, status: {replicas: 5, readyReplicas: 4, availableReplicas: 2, fullyLabeledReplicas: 5, observedGeneration: 2}}`, `{"availableReplicas":2,"generation":3,"observedGeneration":2,"readyReplicas":4,"replicas":5}`, ""},
		"StatefulSet":       {"With the version that was observed, by which it can be told to be done.", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 3}, status: {replicas: 5, readyReplicas: 4, currentReplicas: 1, updatedReplicas: 3, availableReplicas: 2, observedGeneration: 3, currentRevision: x}}`, `{"availableReplicas":2,"currentReplicas":1,"generation":3,"observedGeneration":3,"readyReplicas":4,"replicas":5,"updatedReplicas":3}`, ""},
		"DaemonSet":         {"Its own counts.", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}, status: {currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 3, numberMisscheduled: 0, numberReady: 5, updatedNumberScheduled: 6, numberUnavailable: 7, observedGeneration: 1}}`, `{"currentNumberScheduled":1,"desiredNumberScheduled":2,"generation":1,"numberAvailable":3,"numberMisscheduled":0,"numberReady":5,"numberUnavailable":7,"observedGeneration":1,"updatedNumberScheduled":6}`, ""},
		"Service":           {"Only what balances load has something to tell.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`, "", ""},
		"ServiceBalanced":   {"Where it can be reached.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {conditions: [], loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`, `{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}`, ""},
		"ServiceNoAddress":  {"Nowhere yet.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`, "", ""},
		"Ingress":           {"Whole.", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`, `{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}`, ""},
		"Job":               {"Counts, outcome and times.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {active: 1, succeeded: 2, failed: 3, ready: 1, conditions: [{type: Complete}], startTime: "2026-01-02T03:04:05Z", completionTime: "2026-01-02T03:05:05Z", uncountedTerminatedPods: {}}}`, `{"active":1,"completionTime":"2026-01-02T03:05:05Z","conditions":[{"type":"Complete"}],"failed":3,"startTime":"2026-01-02T03:04:05Z","succeeded":2}`, ""},
		"Budget":            {"Counts and pods.", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, status: {disruptionsAllowed: 1, expectedPods: 2, desiredHealthy: 3, currentHealthy: 4, disruptedPods: {p: x}, observedGeneration: 1, conditions: []}}`, `{"currentHealthy":4,"desiredHealthy":3,"disruptedPods":{"p":"x"},"disruptionsAllowed":1,"expectedPods":2}`, ""},
		"Autoscaler":        {"Counts.", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {currentReplicas: 1, desiredReplicas: 2, currentMetrics: []}}`, `{"currentReplicas":1,"desiredReplicas":2}`, ""},
		"AutoscalerOfOld":   {"Another version is another kind: whole.", `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {currentReplicas: 1, x: 2}}`, `{"currentReplicas":1,"x":2}`, ""},
		"Claim":             {"Whole.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound, capacity: {storage: 1Gi}}}`, `{"capacity":{"storage":"1Gi"},"phase":"Bound"}`, ""},
		"Custom":            {"Whatever it is.", `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}, status: {b: [1], a: {x: 1.5}}}`, `{"a":{"x":1.5},"b":[1]}`, ""},
		"CustomNone":        {"It has none.", `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}}`, "", ""},
		"CustomEmpty":       {"Empty is none.", `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}, status: {}}`, "", ""},
		"CustomNull":        {"Null is none.", `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}, status: null}`, "", ""},
		"CustomMalformed":   {"A Work can only carry an object.", `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}, status: fine}`, "", "status has the wrong type: fine is no object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			got, err := New(Options{}).Status(t.Context(), object)
			fails(t, tc.reason, tc.err, err)
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("%s, want none\n%s", got.Raw, tc.reason)
			case tc.want != "" && (got == nil || string(got.Raw) != tc.want):
				t.Errorf("got %s\nwant %s\n%s", got.Raw, tc.want, tc.reason)
			}
			unchanged(t, "object", tc.object, object)
		})
	}
}

func BenchmarkStatus(b *testing.B) {
	i := New(Options{})
	d := benchmarkDeployment(b)
	for b.Loop() {
		if _, err := i.Status(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
