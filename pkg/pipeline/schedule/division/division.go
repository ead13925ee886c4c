// Package division says in one word how a placement wants replicas to be divided
// among clusters.
package division

import (
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A Strategy is a way to divide replicas.
type Strategy string

// The strategies.
const (
	// Duplicated gives all replicas to every cluster.
	Duplicated Strategy = "Duplicated"
	// StaticWeight divides them by weights that the placement gives.
	StaticWeight Strategy = "StaticWeight"
	// DynamicWeight divides them by the room that clusters have.
	DynamicWeight Strategy = "DynamicWeight"
	// Aggregated uses as few clusters as have the room.
	Aggregated Strategy = "Aggregated"
	// Unknown is what nobody knows.
	Unknown Strategy = "Unknown"
)

// Of returns the strategy of a placement.
func Of(p *policyv1alpha1.Placement) Strategy {
	s := p.ReplicaScheduling
	switch {
	case s == nil || s.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return Duplicated
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return Aggregated
	case s.ReplicaDivisionPreference != policyv1alpha1.ReplicaDivisionPreferenceWeighted:
		return Unknown
	case s.WeightPreference != nil && s.WeightPreference.DynamicWeight != "":
		return DynamicWeight
	default:
		return StaticWeight
	}
}

// LooksAtRoom reports whether the strategy depends on the room that clusters
// have, and keeps replicas where they are as long as it can.
func (s Strategy) LooksAtRoom() bool { return s == DynamicWeight || s == Aggregated }

// IsWhole reports whether a workload is not divided at all: all of its components
// go to each of its clusters. One with a single component is divided if it has a
// number of replicas.
func IsWhole(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Components) > 1 || len(spec.Components) == 1 && spec.Replicas == 0
}
