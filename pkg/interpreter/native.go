package interpreter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A kind is what is known about one kind of Kubernetes (spec: behaviour/06 6.5).
// What is nil nobody can ask. Objects are read only, unless said otherwise.
type kind struct {
	// replicas returns how many replicas an object wants; pod is where the spec
	// of its pods is.
	replicas func(object map[string]any) (int32, error)
	pod      []string
	// revise is the field with the number of replicas.
	revise []string
	// retain changes desired, which shares nothing with observed and must not.
	retain func(desired, observed map[string]any) error
	// healthy says whether an object does what it is for.
	healthy func(object map[string]any) (bool, error)
	// dependencies returns what an object refers to, in a fixed order.
	dependencies func(object map[string]any) ([]configv1alpha1.DependentObjectReference, error)
	// status returns what of an object is reflected, empty for nothing. A kind
	// without it has its status reflected whole.
	status func(object map[string]any) (map[string]any, error)
	// aggregate changes status, the template's so far, to what members report. It
	// may put values of reports into it.
	aggregate func(template, status map[string]any, reports []report) error
}

// A report is what one cluster says: a nil status for nothing.
type report struct {
	cluster string
	status  map[string]any
}

// A native layer knows the kinds of Kubernetes.
type native struct {
	kinds     map[schema.GroupVersionKind]kind
	forQuotas bool
}

func newNative(o Options) *native {
	return &native{forQuotas: o.ForQuotas, kinds: map[schema.GroupVersionKind]kind{
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}:                            daemonSet(),
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                           deployment(),
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:                           replicaSet(),
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                          statefulSet(),
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}:       horizontalPodAutoscaler(),
		{Group: "batch", Version: "v1", Kind: "CronJob"}:                             cronJob(),
		{Group: "batch", Version: "v1", Kind: "Job"}:                                 job(),
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceImport"}: serviceImport(),
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:                 ingress(),
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:                podDisruptionBudget(),
		{Version: "v1", Kind: "PersistentVolume"}:                                    persistentVolume(),
		{Version: "v1", Kind: "PersistentVolumeClaim"}:                               persistentVolumeClaim(),
		{Version: "v1", Kind: "Pod"}:                                                 pod(),
		{Version: "v1", Kind: "Secret"}:                                              secret(),
		{Version: "v1", Kind: "Service"}:                                             service(),
		{Version: "v1", Kind: "ServiceAccount"}:                                      serviceAccount(),
	}}
}

func (n *native) kind(obj *unstructured.Unstructured) kind { return n.kinds[obj.GroupVersionKind()] }

func (n *native) Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	k := n.kinds[gvk]
	switch op {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		return k.replicas != nil
	case configv1alpha1.InterpreterOperationReviseReplica:
		return k.revise != nil
	case configv1alpha1.InterpreterOperationRetain:
		return k.retain != nil
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return k.aggregate != nil
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return k.dependencies != nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return k.healthy != nil
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return true
	default:
		return false
	}
}

func (n *native) Replicas(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	k := n.kind(obj)
	replicas, err := k.replicas(obj.Object)
	if err != nil {
		return 0, nil, err
	}
	spec, err := podSpec(obj.Object, k.pod...)
	if err != nil {
		return 0, nil, err
	}
	return replicas, PodRequirements(spec, n.forQuotas), nil
}

func (n *native) Components(_ context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	return nil, &UnsupportedError{GVK: obj.GroupVersionKind(), Operation: configv1alpha1.InterpreterOperationInterpretComponent}
}

// Revise changes the field only where there is one: what has none, the server
// decides.
func (n *native) Revise(_ context.Context, obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	path := n.kind(obj).revise
	_, found, err := at[int64](obj.Object, path...)
	if err != nil {
		return nil, err
	}
	revised := obj.DeepCopy()
	if !found {
		return revised, nil
	}
	if err := unstructured.SetNestedField(revised.Object, replicas, path...); err != nil {
		return nil, err
	}
	return revised, nil
}

func (n *native) Retain(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired.DeepCopy()
	if err := n.kind(desired).retain(retained.Object, observed.Object); err != nil {
		return nil, err
	}
	return retained, nil
}

func (n *native) Aggregate(_ context.Context, obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	reports := make([]report, 0, len(items))
	for _, item := range items {
		status, err := decode(item.Status)
		if err != nil {
			return nil, fmt.Errorf("status of cluster %s: %w", item.ClusterName, err)
		}
		reports = append(reports, report{cluster: item.ClusterName, status: status})
	}
	slices.SortStableFunc(reports, func(a, b report) int { return cmp.Compare(a.cluster, b.cluster) })

	before, err := orZero[map[string]any](obj.Object, "status")
	if err != nil {
		return nil, err
	}
	after := map[string]any{}
	if before != nil {
		after = runtime.DeepCopyJSON(before)
	}
	if err := n.kind(obj).aggregate(obj.Object, after, reports); err != nil {
		return nil, err
	}
	aggregated := obj.DeepCopy()
	if !same(before, after) {
		aggregated.Object["status"] = after
	}
	return aggregated, nil
}

// decode reads a status, nil when there is none.
func decode(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	var status map[string]any
	if err := utiljson.Unmarshal(raw.Raw, &status); err != nil {
		return nil, err
	}
	return status, nil
}

func (n *native) Dependencies(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return n.kind(obj).dependencies(obj.Object)
}

func (n *native) Status(_ context.Context, obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	reflect := n.kind(obj).status
	if reflect == nil {
		reflect = func(o map[string]any) (map[string]any, error) { return orZero[map[string]any](o, "status") }
	}
	status, err := reflect(obj.Object)
	if err != nil || len(status) == 0 {
		return nil, err
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("write status: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

func (n *native) Healthy(_ context.Context, obj *unstructured.Unstructured) (bool, error) {
	return n.kind(obj).healthy(obj.Object)
}
