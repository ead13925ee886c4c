package interpreter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// replaced puts a pod spec, or anything, where a text says POD.
func replaced(object, pod string) string { return strings.ReplaceAll(object, "POD", pod) }

// fullObjects has one object of each native kind, with every field that is looked
// at.
func fullObjects() map[string]string {
	const pod = `{nodeName: node, serviceAccountName: sa, priorityClassName: p, nodeSelector: {a: b}, tolerations: [{key: k}], overhead: {cpu: 1m},
	  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}, imagePullSecrets: [{name: s}],
	  initContainers: [{name: i, resources: {limits: {cpu: 1m}}, volumeMounts: [{name: v}]}],
	  containers: [{name: c, resources: {requests: {cpu: 1m}}, volumeMounts: [{name: v}], env: [{name: e, valueFrom: {secretKeyRef: {name: s, key: k}}}], envFrom: [{configMapRef: {name: m}}]}],
	  volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}, {name: w, csi: {driver: d, nodePublishSecretRef: {name: s}}}]}`
	const metadata = `{name: a, namespace: ns, generation: 2, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}, annotations: {resourcetemplate.karmada.io/generation: "1"}}`
	const conditions = `[{type: Ready, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}, {type: Failed, status: "False"}]`
	all := map[string]string{
		"Deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: META, spec: {replicas: 2, template: {spec: POD}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, unavailableReplicas: 1, conditions: COND}}`,
		"ReplicaSet":  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: META, spec: {replicas: 2, template: {spec: POD}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2}}`,
		"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet, metadata: META, spec: {replicas: 2, template: {spec: POD}, volumeClaimTemplates: [{metadata: {name: v}}]}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
		"DaemonSet":   `{apiVersion: apps/v1, kind: DaemonSet, metadata: META, spec: {template: {spec: POD}}, status: {observedGeneration: 2, currentNumberScheduled: 1, desiredNumberScheduled: 1, numberAvailable: 1, numberMisscheduled: 1, numberReady: 1, updatedNumberScheduled: 1, numberUnavailable: 1}}`,
		"Job": `{apiVersion: batch/v1, kind: Job, metadata: META, spec: {parallelism: 1, completions: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: POD}},
		  status: {active: 1, succeeded: 1, failed: 1, conditions: COND, startTime: "2026-01-02T03:04:05Z", completionTime: "2026-01-02T03:04:05Z"}}`,
		"CronJob":                 `{apiVersion: batch/v1, kind: CronJob, metadata: META, spec: {jobTemplate: {spec: {template: {spec: POD}}}}, status: {active: [{name: j}], lastScheduleTime: "2026-01-02T03:04:05Z", lastSuccessfulTime: "2026-01-02T03:04:05Z"}}`,
		"Pod":                     `{apiVersion: v1, kind: Pod, metadata: META, spec: POD, status: {phase: Running, conditions: COND, containerStatuses: [{name: c, ready: true, state: {running: {}}}], initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}]}}`,
		"Service":                 `{apiVersion: v1, kind: Service, metadata: META, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, healthCheckNodePort: 30000}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1, hostname: h}]}}}`,
		"Ingress":                 `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: META, spec: {tls: [{secretName: s}]}, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`,
		"ServiceAccount":          `{apiVersion: v1, kind: ServiceAccount, metadata: META, secrets: [{name: s}], imagePullSecrets: [{name: p}]}`,
		"Secret":                  `{apiVersion: v1, kind: Secret, metadata: META, type: kubernetes.io/service-account-token, data: {token: eA==}}`,
		"PersistentVolumeClaim":   `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: META, spec: {volumeName: v, storageClassName: s}, status: {phase: Bound}}`,
		"PersistentVolume":        `{apiVersion: v1, kind: PersistentVolume, metadata: META, spec: {claimRef: {name: c}}, status: {phase: Bound}}`,
		"PodDisruptionBudget":     `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: META, status: {disruptionsAllowed: 1, expectedPods: 1, desiredHealthy: 1, currentHealthy: 1, disruptedPods: {p: "2026-01-02T03:04:05Z"}}}`,
		"HorizontalPodAutoscaler": `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: META, status: {currentReplicas: 1, desiredReplicas: 1}}`,
		"ServiceImport":           `{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: META}`,
		"Thing":                   `{apiVersion: example.io/v1, kind: Thing, metadata: META, status: {x: 1}}`,
	}
	for name, object := range all {
		all[name] = strings.NewReplacer("META", metadata, "COND", conditions, "POD", pod).Replace(object)
	}
	return all
}

// paths lists where something is in a value.
func paths(v any, at []any) [][]any {
	var all [][]any
	add := func(key, value any) {
		path := append(append([]any{}, at...), key)
		all = append(append(all, path), paths(value, path)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			add(key, value)
		}
	case []any:
		for i, value := range v {
			add(i, value)
		}
	}
	return all
}

// leaves lists where there is something that holds nothing else.
func leaves(v any) [][]any {
	all := paths(v, nil)
	return slices.DeleteFunc(all, func(path []any) bool {
		return slices.ContainsFunc(all, func(other []any) bool { return len(other) > len(path) && slices.Equal(other[:len(path)], path) })
	})
}

// put replaces what is at a path.
func put(v any, path []any, with any) {
	for _, key := range path[:len(path)-1] {
		switch k := key.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
	}
	switch k := path[len(path)-1].(type) {
	case string:
		v.(map[string]any)[k] = with
	case int:
		v.([]any)[k] = with
	}
}

// TestMalformed asks everything about objects with any one field replaced by what
// it is not. An answer or an error is fine; a panic is not, nor to change what was
// asked about.
func TestMalformed(t *testing.T) {
	i, ctx := New(Options{ForQuotas: true}), t.Context()
	for name, full := range fullObjects() {
		t.Run(name, func(t *testing.T) {
			good := parse(t, full)
			for _, path := range paths(good.Object, nil) {
				if path[0] == "apiVersion" || path[0] == "kind" {
					continue
				}
				for _, with := range []any{nil, "text", int64(-7), 1.5, true, []any{"text", nil}, map[string]any{"text": "text"}, []any{map[string]any{"name": int64(1)}}} {
					bad := good.DeepCopy()
					put(bad.Object, path, with)
					before := bad.DeepCopy()
					items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: statusOf(t, good)}, {ClusterName: "m2", Status: statusOf(t, bad)}, {ClusterName: "m3"}}
					func() {
						defer func() {
							if p := recover(); p != nil {
								t.Fatalf("%v = %v: %v", path, with, p)
							}
						}()
						gvk := bad.GroupVersionKind()
						ask := func(_ any, _ error) {}
						if i.Supports(gvk, opReplica) {
							_, _, err := i.Replicas(ctx, bad)
							ask(nil, err)
						}
						if i.Supports(gvk, opRevise) {
							ask(i.Revise(ctx, bad, 1))
						}
						if i.Supports(gvk, opRetain) {
							ask(i.Retain(ctx, bad, good))
							ask(i.Retain(ctx, good, bad))
						}
						if i.Supports(gvk, opAggregate) {
							ask(i.Aggregate(ctx, bad, items))
							ask(i.Aggregate(ctx, good, items))
						}
						if i.Supports(gvk, opDependency) {
							ask(i.Dependencies(ctx, bad))
						}
						if i.Supports(gvk, opHealth) {
							ask(i.Healthy(ctx, bad))
						}
						ask(i.Status(ctx, bad))
					}()
					if !reflect.DeepEqual(before.Object, bad.Object) {
						t.Fatalf("%v = %v: what was asked about was changed (-want +got):\n%s", path, with, cmp.Diff(before.Object, bad.Object))
					}
				}
			}
			unchanged(t, "object", full, good)
		})
	}
}

// TestWrongTypes replaces by text what is looked at, by kind and question: each
// must be an error that names the field.
func TestWrongTypes(t *testing.T) {
	i, ctx := New(Options{}), t.Context()
	questions := map[string]func(o *unstructured.Unstructured) error{
		"replicas":     func(o *unstructured.Unstructured) error { _, _, err := i.Replicas(ctx, o); return err },
		"revise":       func(o *unstructured.Unstructured) error { _, err := i.Revise(ctx, o, 1); return err },
		"health":       func(o *unstructured.Unstructured) error { _, err := i.Healthy(ctx, o); return err },
		"dependencies": func(o *unstructured.Unstructured) error { _, err := i.Dependencies(ctx, o); return err },
		"status":       func(o *unstructured.Unstructured) error { _, err := i.Status(ctx, o); return err },
		"template":     func(o *unstructured.Unstructured) error { _, err := i.Aggregate(ctx, o, nil); return err },
		"retain":       func(o *unstructured.Unstructured) error { _, err := i.Retain(ctx, o, o); return err },
		"report": func(o *unstructured.Unstructured) error {
			status, ok := o.Object["status"].(map[string]any)
			if !ok {
				return fmt.Errorf("the test has no status")
			}
			template := o.DeepCopy()
			delete(template.Object, "status")
			_, err := i.Aggregate(ctx, template, []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: statusOf(t, &unstructured.Unstructured{Object: map[string]any{"status": status}})}})
			return err
		},
	}
	cases := map[string]map[string][]string{
		"Deployment": {
			"replicas": {"spec.replicas", "spec.template.spec"}, "revise": {"spec.replicas"},
			"health":       {"status", "status.observedGeneration", "status.updatedReplicas", "status.availableReplicas", "spec.replicas", "metadata.generation"},
			"dependencies": {"spec.template.spec"}, "status": {"status"}, "retain": {"spec.replicas"}, "template": {"status"},
			"report": {"status.replicas", "status.readyReplicas", "status.observedGeneration"},
		},
		"ReplicaSet":              {"health": {"status.availableReplicas"}, "report": {"status.replicas"}},
		"StatefulSet":             {"health": {"status.updatedReplicas"}, "dependencies": {"spec.volumeClaimTemplates"}, "report": {"status.currentReplicas"}},
		"DaemonSet":               {"health": {"status.numberAvailable"}, "report": {"status.numberReady"}},
		"Job":                     {"replicas": {"spec.parallelism", "spec.completions"}, "template": {"status.conditions"}, "report": {"status.active", "status.conditions", "status.startTime", "status.completionTime"}},
		"CronJob":                 {"dependencies": {"spec.jobTemplate"}, "report": {"status.active", "status.lastScheduleTime"}},
		"Pod":                     {"health": {"status.conditions"}, "retain": {"spec.containers"}, "report": {"status.containerStatuses"}},
		"Service":                 {"health": {"status.loadBalancer"}, "status": {"status.loadBalancer"}, "retain": {"spec.healthCheckNodePort"}, "report": {"status.loadBalancer"}, "template": {"status.loadBalancer"}},
		"Ingress":                 {"health": {"status.loadBalancer"}, "dependencies": {"spec.tls"}, "report": {"status.loadBalancer"}},
		"ServiceAccount":          {"retain": {"secrets", "imagePullSecrets"}},
		"PodDisruptionBudget":     {"health": {"status.currentHealthy"}, "report": {"status.disruptedPods", "status.expectedPods"}},
		"HorizontalPodAutoscaler": {"report": {"status.currentReplicas"}},
		"PersistentVolumeClaim":   {"health": {"status"}},
		"Thing":                   {"status": {"status"}},
	}
	full := fullObjects()
	for kind, asked := range cases {
		for question, fields := range asked {
			for _, field := range fields {
				t.Run(kind+"/"+question+"/"+field, func(t *testing.T) {
					object := parse(t, full[kind])
					var path []any
					for _, key := range strings.Split(field, ".") {
						path = append(path, key)
					}
					put(object.Object, path, "text")
					err := questions[question](object)
					if err == nil {
						t.Fatal("there is no error")
					}
					if last := path[len(path)-1].(string); !strings.Contains(err.Error(), last) {
						t.Errorf("the error does not name the field: %v", err)
					}
				})
			}
		}
	}
}

// statusOf returns the status of an object as an item has it.
func statusOf(t *testing.T, u *unstructured.Unstructured) *runtime.RawExtension {
	t.Helper()
	raw, err := (&unstructured.Unstructured{Object: map[string]any{"status": u.Object["status"]}}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(raw))
	return &runtime.RawExtension{Raw: []byte(strings.TrimSuffix(strings.TrimPrefix(text, `{"status":`), "}"))}
}
