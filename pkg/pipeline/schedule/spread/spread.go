// Package spread selects, among the clusters that a binding may go to, those
// that it does go to, as its spread constraints say (spec: behaviour/04 4.9).
package spread

import (
	"errors"
	"fmt"
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

// Select returns the clusters to use, of candidates in their order.
func Select(spec *workv1alpha2.ResourceBindingSpec, all []candidate.Cluster) ([]candidate.Cluster, error) {
	if !Applies(spec.Placement) {
		return all, nil
	}
	r := request{
		replicas:   int64(spec.Replicas),
		duplicated: division.Of(spec.Placement) == division.Duplicated,
	}
	byCluster, byRegion := false, false
	for _, c := range spec.Placement.SpreadConstraints {
		limits := bounds{least: c.MinGroups, most: c.MaxGroups}
		switch {
		case c.SpreadByLabel != "":
			return nil, errUnsupported
		case c.SpreadByField == policyv1alpha1.SpreadByFieldRegion:
			r.regions, byRegion = limits, true
		case c.SpreadByField == policyv1alpha1.SpreadByFieldCluster || c.SpreadByField == "":
			r.clusters, byCluster = limits, true
		}
	}
	switch {
	case byRegion:
		return r.selectByRegion(all)
	case byCluster:
		return r.selectByCluster(all)
	default:
		return nil, errUnsupported
	}
}

var errUnsupported = errors.New("just support cluster and region spread constraint")

// bounds are how many groups there may be.
type bounds struct{ least, most int }

// A request is what a binding asks for.
type request struct {
	replicas   int64
	duplicated bool // every cluster holds all the replicas
	clusters   bounds
	regions    bounds
}

// selectByCluster takes the first candidates, and exchanges those with the
// lowest order for others with more room until the replicas fit. A largest
// number of zero selects nothing: it is not "unlimited".
func (r request) selectByCluster(all []candidate.Cluster) ([]candidate.Cluster, error) {
	if len(all) < r.clusters.least {
		return nil, errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
	}
	n := min(len(all), r.clusters.most)
	chosen, rest := slices.Clone(all[:n]), slices.Clone(all[n:])
	if r.duplicated {
		return chosen, nil
	}
	for i := n - 1; i >= 0 && room(chosen) < r.replicas; i-- {
		best := -1
		for j := range rest {
			if rest[j].Available() > chosen[i].Available() && (best < 0 || rest[j].Available() > rest[best].Available()) {
				best = j
			}
		}
		if best >= 0 {
			chosen[i], rest[best] = rest[best], chosen[i]
		}
	}
	if room(chosen) < r.replicas {
		return nil, fmt.Errorf("no enough resource when selecting %d clusters", n)
	}
	return chosen, nil
}

func room(clusters []candidate.Cluster) int64 {
	total := int64(0)
	for _, c := range clusters {
		total += c.Available()
	}
	return total
}
