// Package estimate tells how many replicas a cluster has room for, from what the
// cluster's status sums up (spec: behaviour/04 4.8 "General estimator").
package estimate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// podsPerNode is how many pods a node of a resource model is taken to hold.
const podsPerNode = 110

// Replicas returns how many more replicas with those requirements fit into a
// cluster. With models, free resources are counted by node where the cluster's
// status does so: what fits into the sum need not fit into any node. Nil
// requirements ask for a place for a pod alone. Which nodes a replica may run on
// is not considered.
func Replicas(c *clusterv1alpha1.Cluster, need *workv1alpha2.ReplicaRequirements, models bool) int64 {
	s := c.Status.ResourceSummary
	if s == nil {
		return 0
	}
	room := free(s, corev1.ResourcePods)
	if need == nil {
		return room
	}
	if models && len(s.AllocatableModelings) > 0 && len(c.Spec.ResourceModels) > 0 {
		return min(room, inModels(c, need.ResourceRequest))
	}
	for name, request := range need.ResourceRequest {
		if amount := amountOf(name, request); amount > 0 {
			room = min(room, free(s, name)/amount)
		}
	}
	return room
}

// free returns how much of a resource is left, 0 for one that is not offered.
func free(s *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) int64 {
	left := s.Allocatable[name]
	left = left.DeepCopy()
	left.Sub(s.Allocated[name])
	left.Sub(s.Allocating[name])
	return max(0, amountOf(name, left))
}

// amountOf returns a quantity in the unit that it is compared in.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// inModels counts the replicas that fit into nodes which have, each, the least
// that nodes of their class have left (spec: behaviour/04 4.17).
func inModels(c *clusterv1alpha1.Cluster, request corev1.ResourceList) int64 {
	total := int64(0)
	for _, class := range c.Status.ResourceSummary.AllocatableModelings {
		for _, model := range c.Spec.ResourceModels {
			if model.Grade == class.Grade && class.Count > 0 {
				total += int64(class.Count) * inNode(model, request)
			}
		}
	}
	return total
}

func inNode(model clusterv1alpha1.ResourceModel, request corev1.ResourceList) int64 {
	fits := int64(podsPerNode)
	for name, q := range request {
		need := amountOf(name, q)
		if need <= 0 {
			continue
		}
		has := int64(0)
		for _, r := range model.Ranges {
			if r.Name == name {
				has = amountOf(name, r.Min)
			}
		}
		fits = min(fits, has/need)
	}
	return fits
}
