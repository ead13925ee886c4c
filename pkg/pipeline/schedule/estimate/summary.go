package estimate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const podsName = corev1.ResourcePods

func podsOf(s *clusterv1alpha1.ResourceSummary) int64 { return free(s, podsName) }

// free returns how much of a resource is left, 0 for one that is not offered.
func free(s *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) int64 {
	left, ok := s.Allocatable[name]
	if !ok {
		return 0
	}
	left = left.DeepCopy()
	if used, ok := s.Allocated[name]; ok {
		left.Sub(used)
	}
	if used, ok := s.Allocating[name]; ok {
		left.Sub(used)
	}
	return max(0, amountOf(name, left))
}

// amountOf returns a quantity in the unit that it is compared in.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
