package usage

import (
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A Summary is what a cluster's nodes and pods come to.
type Summary struct {
	Nodes     clusterv1alpha1.NodeSummary
	Resources clusterv1alpha1.ResourceSummary
}

// Summary returns the sums, and whether everything has been seen: before, they
// say nothing. models are the grades to count nodes by; none counts none
// (spec: behaviour/02 2.2).
func (t *Tracker) Summary(models []clusterv1alpha1.ResourceModel) (Summary, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.podsKnown || !t.nodesKnown {
		return Summary{}, false
	}
	s := Summary{
		Nodes: clusterv1alpha1.NodeSummary{TotalNum: t.total, ReadyNum: t.ready},
		Resources: clusterv1alpha1.ResourceSummary{
			Allocatable:          t.allocatable.list(t.total > 0),
			Allocating:           t.allocating.list(false),
			Allocated:            t.allocated.list(false),
			AllocatableModelings: t.modelings(models),
		},
	}
	s.Resources.Allocating[corev1.ResourcePods] = quantity(corev1.ResourcePods, t.waiting)
	s.Resources.Allocated[corev1.ResourcePods] = quantity(corev1.ResourcePods, t.placed)
	return s, true
}

// modelings counts nodes by the grade of what they have left. A node without
// room for one more pod has nothing left, and is in no grade.
func (t *Tracker) modelings(models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	modelings := make([]clusterv1alpha1.AllocatableModeling, len(models))
	for i, m := range models {
		modelings[i].Grade = m.Grade
	}
	thresholds := thresholdsOf(models)
	for _, n := range t.nodes {
		if n.exists && n.has.of(corev1.ResourcePods) > n.pods {
			modelings[n.grade(thresholds)].Count++
		}
	}
	return modelings
}

// A threshold is what each model asks for at least of one resource.
type threshold struct {
	name corev1.ResourceName
	min  []int64 // by the index of the model
}

func thresholdsOf(models []clusterv1alpha1.ResourceModel) []threshold {
	thresholds := make([]threshold, len(models[0].Ranges))
	for i, r := range models[0].Ranges {
		thresholds[i].name = r.Name
		for _, m := range models {
			least := int64(0)
			if i < len(m.Ranges) { // validation says that all have the same
				least = units(m.Ranges[i].Min)
				if r.Name == corev1.ResourceCPU {
					least = milli(m.Ranges[i].Min)
				}
			}
			thresholds[i].min = append(thresholds[i].min, least)
		}
	}
	return thresholds
}

// grade returns the index of the model that a node is in: the lowest of those
// that its resources are in, one by one. What is more than used up counts as
// used up.
func (n *node) grade(thresholds []threshold) int {
	lowest := -1
	for _, r := range thresholds {
		left := n.has.of(r.name) - n.used.of(r.name)
		index := 0
		for i, least := range r.min {
			if least <= left {
				index = i
			}
		}
		if lowest < 0 || index < lowest {
			lowest = index
		}
	}
	return max(lowest, 0)
}
