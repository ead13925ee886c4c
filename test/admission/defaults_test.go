package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// identified checks that an object has an identity.
func identified(label string) fleetrig.Check {
	return func(u *unstructured.Unstructured) error {
		const uuid = 36
		if id := u.GetLabels()[label]; len(id) != uuid {
			return fmt.Errorf("the label %s is %q, want a UUID", label, id)
		}
		return nil
	}
}

func finalized(by string) fleetrig.Check {
	return func(u *unstructured.Unstructured) error {
		if !slices.Contains(u.GetFinalizers(), by) {
			return fmt.Errorf("its finalizers are %v, want %s", u.GetFinalizers(), by)
		}
		return nil
	}
}

// TestDefaults checks what is filled in of what a user leaves out.
func TestDefaults(t *testing.T) {
	define(t)
	makeNamespace(t, "defaults")
	path := func(p string) []string { return strings.Split(p, ".") }
	cases := map[string]struct {
		reason   string
		manifest string
		want     []fleetrig.Check
	}{
		"PropagationPolicy": {
			reason: "A policy is complete, and selects in its namespace.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: defaults, name: p}, spec: {propagateDeps: true,
				resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], failover: {application: {decisionConditions: {}}},
				placement: {spreadConstraints: [{maxGroups: 2}], replicaScheduling: {}}}}`,
			want: []fleetrig.Check{
				has("defaults", path("spec.resourceSelectors.0.namespace")...), has(int64(0), path("spec.priority")...), has("Never", path("spec.preemption")...),
				has("default-scheduler", path("spec.schedulerName")...), has("Abort", path("spec.conflictResolution")...),
				has("cluster", path("spec.placement.spreadConstraints.0.spreadByField")...), has(int64(1), path("spec.placement.spreadConstraints.0.minGroups")...),
				has("Divided", path("spec.placement.replicaScheduling.replicaSchedulingType")...), has("Weighted", path("spec.placement.replicaScheduling.replicaDivisionPreference")...),
				has(int64(300), path("spec.failover.application.decisionConditions.tolerationSeconds")...), has("Gracefully", path("spec.failover.application.purgeMode")...),
				has(int64(600), path("spec.failover.application.gracePeriodSeconds")...),
				identified(names.PropagationPolicyIDLabel), finalized(names.PropagationPolicyFinalizer),
			},
		},
		"ClusterPropagationPolicy": {
			reason: "An imported service brings what it depends on.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: defaults}, spec: {
				resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, namespace: defaults}], placement: {}}}`,
			want: []fleetrig.Check{
				has(true, path("spec.propagateDeps")...), has("default-scheduler", path("spec.schedulerName")...),
				identified(names.ClusterPropagationPolicyIDLabel), finalized(names.ClusterPropagationPolicyFinalizer),
			},
		},
		"OverridePolicy": {
			reason: "It selects in its namespace.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: defaults, name: o}, spec: {
				resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}}`,
			want: []fleetrig.Check{has("defaults", path("spec.resourceSelectors.0.namespace")...)},
		},
		"ResourceBinding": {
			reason: "A binding that a user makes has an identity.",
			manifest: `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: defaults, name: b}, spec: {schedulerName: nobody,
				resource: {apiVersion: v1, kind: ConfigMap, namespace: defaults, name: missing}}}`,
			want: []fleetrig.Check{identified(names.ResourceBindingIDLabel)},
		},
		"ClusterResourceBinding": {
			reason: "A binding that a user makes has an identity.",
			manifest: `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: defaults}, spec: {schedulerName: nobody,
				resource: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: missing}}}`,
			want: []fleetrig.Check{identified(names.ClusterResourceBindingIDLabel)},
		},
		"Work": {
			reason: "A Work that a user makes has the marks by which its objects are known, and nothing of one server.",
			manifest: `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: defaults, name: w}, spec: {workload: {manifests: [
				{apiVersion: v1, kind: ConfigMap, metadata: {namespace: defaults, name: c, uid: 8d21c36a-5d37-4b14-9f6b-58b1e0a8e6a3, resourceVersion: "7", annotations: {a: b}}}]}}}`,
			want: []fleetrig.Check{
				identified(names.WorkIDLabel),
				func(u *unstructured.Unstructured) error {
					metadata, err := at(u.Object, path("spec.workload.manifests.0.metadata")...)
					if err != nil {
						return err
					}
					m := unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
					if got, want := m.GetLabels()[names.WorkIDLabel], u.GetLabels()[names.WorkIDLabel]; got != want {
						return fmt.Errorf("the identity in the manifest is %q, want %q", got, want)
					}
					if got := m.GetAnnotations()[names.WorkNameAnnotation]; got != "w" {
						return fmt.Errorf("the name in the manifest is %q", got)
					}
					if m.GetUID() != "" || m.GetResourceVersion() != "" {
						return fmt.Errorf("the manifest has uid %q, resourceVersion %q", m.GetUID(), m.GetResourceVersion())
					}
					return nil
				},
			},
		},
		"FederatedHPA": {
			reason: "It has what a HorizontalPodAutoscaler has.",
			manifest: `{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {namespace: defaults, name: h}, spec: {maxReplicas: 3,
				scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, behavior: {scaleUp: {}}}}`,
			want: []fleetrig.Check{
				has(int64(1), path("spec.minReplicas")...), has("cpu", path("spec.metrics.0.resource.name")...),
				has(int64(80), path("spec.metrics.0.resource.target.averageUtilization")...), has("Max", path("spec.behavior.scaleUp.selectPolicy")...),
				has(int64(0), path("spec.behavior.scaleUp.stabilizationWindowSeconds")...), has(int64(4), path("spec.behavior.scaleUp.policies.0.value")...),
				has("Percent", path("spec.behavior.scaleDown.policies.0.type")...),
			},
		},
		"MultiClusterService": {
			reason: "It has an identity.",
			manifest: `{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {namespace: defaults, name: s}, spec: {types: [CrossCluster],
				ports: [{name: http, port: 80}]}}`,
			want: []fleetrig.Check{identified(names.MultiClusterServiceIDLabel)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := created(t, fleetrig.Object(t, c.manifest))
			for _, check := range c.want {
				if err := check(u); err != nil {
					t.Errorf("%s: %v", c.reason, err)
				}
			}
			if err := remove(t, u); err != nil {
				t.Error(err)
			}
		})
	}
}
