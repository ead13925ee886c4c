package kwok

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/kwok/kustomize/metrics/usage"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/kwok/metrics"
	"sigs.k8s.io/yaml"
)

// A usageModel tells how much the containers of simulated pods use. It is
// kwok's own: what the pod's annotations kwok.x-k8s.io/usage-cpu and
// usage-memory say for each of its containers, else 1m and 1Mi.
type usageModel struct {
	expressions map[corev1.ResourceName]*metrics.Evaluator
}

func newUsageModel() (*usageModel, error) {
	var config v1alpha1.ClusterResourceUsage
	if err := yaml.Unmarshal([]byte(usage.DefaultUsageFromAnnotation), &config); err != nil {
		return nil, fmt.Errorf("decode kwok's resource usage: %w", err)
	}
	env, err := metrics.NewEnvironment(metrics.EnvironmentConfig{})
	if err != nil {
		return nil, fmt.Errorf("prepare resource usage expressions: %w", err)
	}
	m := &usageModel{expressions: map[corev1.ResourceName]*metrics.Evaluator{}}
	for _, u := range config.Spec.Usages {
		for _, name := range slices.Sorted(maps.Keys(u.Usage)) {
			if u.Usage[name].Expression == nil {
				return nil, fmt.Errorf("kwok's resource usage of %s is no expression", name)
			}
			e, err := env.Compile(*u.Usage[name].Expression)
			if err != nil {
				return nil, fmt.Errorf("resource usage of %s: %w", name, err)
			}
			m.expressions[corev1.ResourceName(name)] = e
		}
	}
	return m, nil
}

// container returns the usage of one container: CPU in milli-units, memory in
// bytes.
func (m *usageModel) container(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, e := range m.expressions {
		v, err := e.EvaluateFloat64(ctx, metrics.Data{Node: &corev1.Node{}, Pod: pod, Container: c})
		if err != nil {
			return nil, fmt.Errorf("usage of %s by container %s of pod %s/%s: %w", name, c.Name, pod.Namespace, pod.Name, err)
		}
		if name == corev1.ResourceCPU {
			list[name] = *resource.NewMilliQuantity(int64(v*1000), resource.DecimalSI)
			continue
		}
		list[name] = *resource.NewQuantity(int64(v), resource.BinarySI)
	}
	return list, nil
}

// add adds what b uses to a.
func add(a, b corev1.ResourceList) {
	for name, q := range b {
		sum := a[name]
		sum.Add(q)
		a[name] = sum
	}
}
