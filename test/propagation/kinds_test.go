package propagation

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// A kind is one row of the table: an object, a field of it, and the values that the field has after a change here and
// after a change on a member.
type kind struct {
	reason   string
	manifest string
	field    []string
	value    any // at first
	changed  any
	drifted  any
	// before are objects that must be there, as a user would create them, with policies of their own.
	before []string
	// status is what the template's status must come to hold.
	status map[string]any
}

// label is the field for kinds of which nothing else can be changed.
func label() []string { return []string{"metadata", "labels", "tier"} }

const ns = "app"

func kinds() map[string]kind {
	return map[string]kind{
		"Deployment": {
			reason: "The workload that most have.",
			manifest: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: app, labels: {tier: front}}, spec: {replicas: 2,
				selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0"}]}}}}`,
			field: []string{"spec", "replicas"}, value: int64(2), changed: int64(1), drifted: int64(4),
			status: map[string]any{"replicas": int64(3), "readyReplicas": int64(3), "updatedReplicas": int64(3), "availableReplicas": int64(3)},
		},
		"StatefulSet": {
			reason: "Its pods come one after the other.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: app}, spec: {replicas: 2, serviceName: db,
				selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "postgres:17"}]}}}}`,
			field: []string{"spec", "replicas"}, value: int64(2), changed: int64(1), drifted: int64(3),
			status: map[string]any{"replicas": int64(3), "readyReplicas": int64(3)},
		},
		"DaemonSet": {
			reason: "It has no replicas of its own.",
			manifest: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log, namespace: app}, spec: {minReadySeconds: 0,
				selector: {matchLabels: {app: log}}, template: {metadata: {labels: {app: log}}, spec: {containers: [{name: log, image: "fluentd:1"}]}}}}`,
			field: []string{"spec", "minReadySeconds"}, value: int64(0), changed: int64(1), drifted: int64(2),
			status: map[string]any{"desiredNumberScheduled": int64(3 * memberNodes), "numberReady": int64(3 * memberNodes)},
		},
		"Job": {
			reason: "A member gives it a selector, which must stay.",
			manifest: `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: app, labels: {tier: a}}, spec: {completions: 1,
				template: {spec: {restartPolicy: Never, containers: [{name: c, image: "busybox:1"}]}}}}`,
			field: label(), value: "a", changed: "b", drifted: "c",
		},
		"CronJob": {
			reason: "A template in a template.",
			manifest: `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: app}, spec: {schedule: "0 3 * * *",
				jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "busybox:1"}]}}}}}}`,
			field: []string{"spec", "schedule"}, value: "0 3 * * *", changed: "0 4 * * *", drifted: "0 5 * * *",
		},
		"Service": {
			reason: "Each member allocates an address of its own, which must stay.",
			manifest: `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: app}, spec: {type: NodePort, sessionAffinity: None,
				selector: {app: web}, ports: [{name: http, port: 80}]}}`,
			field: []string{"spec", "sessionAffinity"}, value: "None", changed: "ClientIP", drifted: "None",
		},
		"Ingress": {
			reason: "It leads to a Service.",
			manifest: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: app}, spec: {ingressClassName: a,
				defaultBackend: {service: {name: web, port: {number: 80}}}}}`,
			field: []string{"spec", "ingressClassName"}, value: "a", changed: "b", drifted: "c",
		},
		"ConfigMap": {
			reason:   "No workload, no status.",
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: app}, data: {color: red}}`,
			field:    []string{"data", "color"}, value: "red", changed: "green", drifted: "blue",
		},
		"Secret": {
			reason:   "Its content is nobody's business.",
			manifest: `{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: app}, data: {p: YQ==}}`,
			field:    []string{"data", "p"}, value: "YQ==", changed: "Yg==", drifted: "Yw==",
		},
		"TokenSecret": {
			reason: "Each member makes a token of its own, which must stay.",
			manifest: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: robot-token, namespace: app, labels: {tier: a},
				annotations: {kubernetes.io/service-account.name: robot}}}`,
			field: label(), value: "a", changed: "b", drifted: "c",
			before: []string{`{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: app}}`},
		},
		"ServiceAccount": {
			reason:   "Members may add secrets to it.",
			manifest: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: app, namespace: app}, automountServiceAccountToken: true}`,
			field:    []string{"automountServiceAccountToken"}, value: true, changed: false, drifted: true,
		},
		"PersistentVolumeClaim": {
			reason: "It is bound on the member.",
			manifest: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: app, labels: {tier: a}}, spec: {accessModes: [ReadWriteOnce],
				resources: {requests: {storage: 1Gi}}}}`,
			field: label(), value: "a", changed: "b", drifted: "c",
		},
		"PersistentVolume": {
			reason: "It has no namespace.",
			manifest: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
				persistentVolumeReclaimPolicy: Retain, storageClassName: none, hostPath: {path: /data}}}`,
			field: []string{"spec", "persistentVolumeReclaimPolicy"}, value: "Retain", changed: "Delete", drifted: "Retain",
		},
		"ClusterRole": {
			reason:   "Its name has colons.",
			manifest: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "shop:reader", labels: {tier: a}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
			field:    label(), value: "a", changed: "b", drifted: "c",
		},
		"CustomResource": {
			reason:   "Its kind is propagated, too, and may come later than itself.",
			manifest: `{apiVersion: shop.example.com/v1, kind: Basket, metadata: {name: mine, namespace: app}, spec: {size: 1}}`,
			field:    []string{"spec", "size"}, value: int64(1), changed: int64(2), drifted: int64(3),
			before: []string{crd("baskets", "Basket")},
		},
		"CustomResourceDefinition": {
			reason:   "It is an object like any other.",
			manifest: crd("carts", "Cart"),
			field:    label(), value: "a", changed: "b", drifted: "c",
		},
		"HorizontalPodAutoscaler": {
			reason: "It scales what is on the member.",
			manifest: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: app}, spec: {minReplicas: 1, maxReplicas: 3,
				scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nothing}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`,
			field: []string{"spec", "maxReplicas"}, value: int64(3), changed: int64(4), drifted: int64(5),
		},
		"PodDisruptionBudget": {
			reason: "It has a status to sum up.",
			manifest: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: app}, spec: {minAvailable: 1,
				selector: {matchLabels: {app: nothing}}}}`,
			field: []string{"spec", "minAvailable"}, value: int64(1), changed: int64(2), drifted: int64(3),
		},
	}
}

func crd(plural, kind string) string {
	return fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s.shop.example.com, labels: {tier: a}}, spec: {group: shop.example.com,
		scope: Namespaced, names: {plural: %s, singular: %s, kind: %s}, versions: [{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, plural, plural, strings.ToLower(kind), kind)
}

// TestKinds takes an object of each kind through everything that can happen to it.
func TestKinds(t *testing.T) {
	namespace := fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: app}}`)
	shared.Control.Create(t, namespace)
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.run(t, strings.ToLower(name))
		})
	}
}

func (k kind) run(t *testing.T, policyName string) {
	for i, manifest := range k.before {
		u := fleetrig.Object(t, manifest)
		shared.Control.Create(t, policyFor(u, fmt.Sprintf("%s-%d", policyName, i), false))
		shared.Control.Create(t, u)
	}
	template := fleetrig.Object(t, k.manifest)
	policy := policyFor(template, policyName, false)

	shared.Control.Create(t, template)
	shared.Control.Create(t, policy)
	for _, m := range shared.Members {
		m.Await(t, template, "it is created, and marked as ours", fleetrig.All(k.has(k.value), fleetrig.IsOurs))
	}

	shared.Control.Patch(t, template, k.setting(k.changed))
	for _, m := range shared.Members {
		m.Await(t, template, "it is changed", k.has(k.changed))
	}
	if k.status != nil {
		shared.Control.Await(t, template, "its status is back", func(u *unstructured.Unstructured) error {
			for name, want := range k.status {
				if got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", name); !reflect.DeepEqual(got, want) {
					return fmt.Errorf("status.%s is %v, want %v", name, got, want)
				}
			}
			return nil
		})
	}

	uids := map[string]string{}
	for _, m := range shared.Members {
		m.Patch(t, template, k.setting(k.drifted))
		m.Await(t, template, "what somebody changes on the member is changed back", k.has(k.changed))
	}
	for _, m := range shared.Members {
		before := m.Await(t, template, "it is there", fleetrig.IsThere)
		m.Delete(t, template)
		// A member takes its time over a CRD: it asks several times, a minute each, whether objects of it are left.
		m.Await(t, template, "the member lets go of what somebody deletes", func(u *unstructured.Unstructured) error {
			if u != nil && u.GetUID() == before.GetUID() {
				return fmt.Errorf("it is still the old one, deleted at %v", u.GetDeletionTimestamp())
			}
			return nil
		})
		after := m.Await(t, template, "what somebody deletes on the member comes back", k.has(k.changed))
		uids[m.Name] = string(after.GetUID())
	}

	shared.Control.Delete(t, policy)
	shared.Control.Await(t, policy, "it goes", fleetrig.IsGone)
	shared.Control.Await(t, template, "nobody claims it any more", isUnclaimed)
	shared.Control.Create(t, policy)
	shared.Control.Await(t, template, "the policy that came back claims it", isClaimed)
	for _, m := range shared.Members {
		m.Await(t, template, "it never went, though its policy did", fleetrig.All(k.has(k.changed), func(u *unstructured.Unstructured) error {
			if got := string(u.GetUID()); got != uids[m.Name] {
				return fmt.Errorf("its UID is %s, was %s", got, uids[m.Name])
			}
			return nil
		}))
	}

	shared.Control.Delete(t, template)
	for _, m := range shared.Members {
		m.Await(t, template, "what is deleted in the control plane goes", fleetrig.IsGone)
	}
	shared.Control.Await(t, template, "it goes", fleetrig.IsGone)

	// Once more, to be preserved.
	shared.Control.Patch(t, policy, `{"spec":{"preserveResourcesOnDeletion":true}}`)
	shared.Control.Create(t, template)
	for _, m := range shared.Members {
		m.Await(t, template, "it is created again", fleetrig.All(k.has(k.value), fleetrig.IsOurs))
	}
	bound := &unstructured.Unstructured{}
	bound.SetAPIVersion("work.karmada.io/v1alpha2")
	bound.SetKind("ResourceBinding")
	if template.GetNamespace() == "" {
		bound.SetKind("ClusterResourceBinding")
	}
	bound.SetNamespace(template.GetNamespace())
	bound.SetName(names.Binding(template.GetKind(), template.GetName()))
	shared.Control.Await(t, bound, "it has heard that objects are to be preserved", func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is not there")
		}
		if preserve, _, _ := unstructured.NestedBool(u.Object, "spec", "preserveResourcesOnDeletion"); !preserve {
			return errors.New("preserveResourcesOnDeletion is not set")
		}
		return nil
	})
	shared.Control.Delete(t, template)
	shared.Control.Await(t, template, "it goes", fleetrig.IsGone)
	shared.Control.Await(t, bound, "its binding goes with it", fleetrig.IsGone)
	for _, m := range shared.Members {
		m.Await(t, template, "it is preserved, and not ours any more", fleetrig.All(k.has(k.value), func(u *unstructured.Unstructured) error {
			if fleetrig.IsOurs(u) == nil {
				return errors.New("it is still marked as ours")
			}
			return nil
		}))
		m.Delete(t, template)
	}
	shared.Control.Delete(t, policy)
}

// policyFor is a policy for one object.
func policyFor(u *unstructured.Unstructured, name string, preserve bool) *unstructured.Unstructured {
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"preserveResourcesOnDeletion": preserve,
			"resourceSelectors":           []any{map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()}},
			"placement": map[string]any{
				"clusterAffinity":   map[string]any{"clusterNames": []any{"member1", "member2", "member3"}},
				"replicaScheduling": map[string]any{"replicaSchedulingType": "Duplicated"},
			},
		},
	}}
	if u.GetNamespace() != "" {
		policy.SetKind("PropagationPolicy")
		policy.SetNamespace(u.GetNamespace())
	}
	return policy
}

// setting is the merge patch that sets the field.
func (k kind) setting(value any) string {
	patch := value
	for i := len(k.field) - 1; i >= 0; i-- {
		patch = map[string]any{k.field[i]: patch}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // a table of plain values
	}
	return string(data)
}

// has checks the field.
func (k kind) has(want any) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is not there")
		}
		got, found, err := unstructured.NestedFieldNoCopy(u.Object, k.field...)
		if err != nil {
			return err
		}
		if !found && want == int64(0) {
			return nil // left out, as zeros are
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s is %v, want %v", strings.Join(k.field, "."), got, want)
		}
		return nil
	}
}

func isClaimed(u *unstructured.Unstructured) error {
	for _, key := range []string{names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel} {
		if u.GetLabels()[key] != "" {
			return nil
		}
	}
	return fmt.Errorf("no policy claims it: its labels are %v", u.GetLabels())
}

func isUnclaimed(u *unstructured.Unstructured) error {
	if isClaimed(u) == nil {
		return fmt.Errorf("it is claimed: its labels are %v", u.GetLabels())
	}
	return nil
}
