package interpreter

import "testing"

func TestHealthy(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           bool
	}{
		"Deployment":            {"All are new and there.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, true},
		"DeploymentNone":        {"None is what was asked for.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 0}, status: {observedGeneration: 2}}`, true},
		"DeploymentNotSet":      {"Nothing was asked for.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 1}}`, true},
		"DeploymentUnseen":      {"Its status is of another version.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}}`, false},
		"DeploymentRolling":     {"Some are old.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`, false},
		"DeploymentUnavailable": {"Some are not there.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}}`, false},
		"DeploymentNoStatus":    {"Nobody has looked at it.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 0}}`, false},
		"StatefulSet":           {"As a Deployment.", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, true},
		"StatefulSetRolling":    {"Some are old.", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`, false},
		"ReplicaSet":            {"All are there.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, availableReplicas: 2}}`, true},
		"ReplicaSetFew":         {"Some are not.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, availableReplicas: 1}}`, false},
		"ReplicaSetUnseen":      {"Its status is of another version.", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1, availableReplicas: 2}}`, false},
		"DaemonSet":             {"One on every node that shall have one.", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}}`, true},
		"DaemonSetRolling":      {"Some are old.", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}}`, false},
		"DaemonSetUnavailable":  {"Some are not there.", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}`, false},
		"DaemonSetUnseen":       {"Its status is of another version.", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}`, false},
		"Service":               {"Nothing has to be waited for.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort}}`, true},
		"ServiceNoAddress":      {"It cannot be reached yet.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ports: []}]}}}`, false},
		"ServiceIP":             {"By address.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`, true},
		"ServiceHostname":       {"By name.", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: x.io}]}}}`, true},
		"Ingress":               {"By either.", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, status: {loadBalancer: {ingress: [{hostname: x.io}]}}}`, true},
		"IngressNoAddress":      {"It cannot be reached yet.", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, status: {loadBalancer: {}}}`, false},
		"ClaimBound":            {"It has a volume.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}`, true},
		"ClaimPending":          {"It has none.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}`, false},
		"PodReady":              {"It runs and can be used.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, true},
		"PodNotReady":           {"It runs and cannot be used.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, false},
		"PodSucceeded":          {"It has done what it was for.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Succeeded, conditions: [{type: Ready, status: "False"}]}}`, true},
		"PodFailed":             {"It has not.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed, conditions: [{type: Ready, status: "True"}]}}`, false},
		"Budget":                {"Enough pods are healthy.", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, status: {currentHealthy: 2, desiredHealthy: 2}}`, true},
		"BudgetShort":           {"Too few are.", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, status: {currentHealthy: 1, desiredHealthy: 2}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			got, err := New(Options{}).Healthy(t.Context(), object)
			if err != nil || got != tc.want {
				t.Errorf("%v, %v, want %v\n%s", got, err, tc.want, tc.reason)
			}
			unchanged(t, "object", tc.object, object)
		})
	}
}
