// Package spread selects, among the clusters that a binding may go to, those
// that it does go to, as its spread constraints say (spec: behaviour/04 4.9).
package spread

import (
	"errors"
	"slices"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/division"
)

// Applies reports whether a placement has spread constraints that count. Static
// weights go to all clusters that weigh anything, whatever the constraints say.
func Applies(p *policyv1alpha1.Placement) bool {
	return len(p.SpreadConstraints) > 0 && division.Of(p) != division.StaticWeight
}

// IsOneCluster reports whether a placement has a constraint by which a workload
// goes to one cluster. Then there must be room for all of its components there
// (spec: behaviour/04 4.8 "Multi-component").
func IsOneCluster(p *policyv1alpha1.Placement) bool {
	return Applies(p) && slices.ContainsFunc(p.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool {
		return isByCluster(c) && c.MinGroups == 1 && c.MaxGroups == 1
	})
}

func isByCluster(c policyv1alpha1.SpreadConstraint) bool {
	return c.SpreadByLabel == "" && (c.SpreadByField == policyv1alpha1.SpreadByFieldCluster || c.SpreadByField == "")
}

// Select returns the clusters to use, of candidates in their order.
func Select(spec *workv1alpha2.ResourceBindingSpec, all []candidate.Cluster) ([]candidate.Cluster, error) {
	if !Applies(spec.Placement) {
		return all, nil
	}
	r, err := read(spec)
	if err != nil {
		return nil, err
	}
	if r.groupOf != nil {
		return r.selectByGroup(all)
	}
	return r.selectByCluster(all)
}

// Errors of constraints that cannot be followed.
var (
	errUnsupported = errors.New("just support cluster and region spread constraint")
	errTwoKinds    = errors.New("spread constraints by region and by label, or by two labels, cannot be combined: keep one of them")
	errTooFew      = errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
)

// bounds are how many groups there may be.
type bounds struct {
	least int
	most  int // 0: any number
}

// limit returns the largest number of n that is allowed.
func (b bounds) limit(n int) int {
	if b.most <= 0 {
		return n
	}
	return min(n, b.most)
}

// A request is what a binding asks for.
type request struct {
	replicas   int64
	duplicated bool // every cluster holds all the replicas
	clusters   bounds

	// groupOf tells the group of a cluster, "" if it is in none. Nil: clusters are
	// not grouped.
	groupOf func(*candidate.Cluster) string
	groups  bounds
	// kind is what errors call a group.
	kind string
}

// read returns what the constraints of a binding say. Groups by zone or provider
// only leave out, as a filter, clusters that are in none.
func read(spec *workv1alpha2.ResourceBindingSpec) (request, error) {
	r := request{replicas: replicasOf(spec), duplicated: division.Of(spec.Placement) == division.Duplicated}
	byCluster := false
	for _, c := range spec.Placement.SpreadConstraints {
		limits := bounds{least: c.MinGroups, most: c.MaxGroups}
		switch {
		case c.SpreadByLabel != "" || c.SpreadByField == policyv1alpha1.SpreadByFieldRegion:
			if r.groupOf != nil {
				return request{}, errTwoKinds
			}
			r.groups, r.kind, r.groupOf = limits, "region", regionOf
			if label := c.SpreadByLabel; label != "" {
				r.kind, r.groupOf = "values of label "+label, func(c *candidate.Cluster) string { return c.Labels[label] }
			}
		case isByCluster(c):
			r.clusters, byCluster = limits, true
		}
	}
	if r.groupOf == nil && !byCluster {
		return request{}, errUnsupported
	}
	return r, nil
}

// replicasOf returns how many replicas there must be room for. Of components it is
// one set, if that is to be in one cluster; where each cluster gets all of them,
// nothing can be said of their sum.
func replicasOf(spec *workv1alpha2.ResourceBindingSpec) int64 {
	switch {
	case !division.IsWhole(spec):
		return int64(spec.Replicas)
	case IsOneCluster(spec.Placement):
		return 1
	default:
		return 0
	}
}

func regionOf(c *candidate.Cluster) string { return c.Spec.Region }

// selectByCluster takes the first candidates, and exchanges those with the
// lowest order for others with more room until the replicas fit.
func (r request) selectByCluster(all []candidate.Cluster) ([]candidate.Cluster, error) {
	if len(all) < r.clusters.least {
		return nil, errTooFew
	}
	n := r.clusters.limit(len(all))
	chosen, rest := slices.Clone(all[:n]), slices.Clone(all[n:])
	if r.duplicated {
		return chosen, nil
	}
	if err := exchange(chosen, rest, r.replicas); err != nil {
		return nil, err
	}
	return chosen, nil
}
