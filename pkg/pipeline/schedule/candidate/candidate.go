// Package candidate holds what is known of a cluster that a binding may go to,
// on which its choice and its share of replicas depend.
package candidate

import (
	"cmp"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A Cluster is a candidate.
type Cluster struct {
	*clusterv1alpha1.Cluster
	// Tier orders candidates before all else: 0 is the affinity itself, i+1 the
	// i-th of its overflow affinities.
	Tier int
	// Score says how much the cluster is wanted, 0 to 100.
	Score int64
	// Allocatable is how many more replicas it has room for.
	Allocatable int64
	// Assigned is how many replicas it has now.
	Assigned int64
}

// Available is how many replicas it could hold, those it has included.
func (c Cluster) Available() int64 { return c.Allocatable + c.Assigned }

// noTier is the tier of clusters that no affinity of the term matches.
const noTier = 1000

// localityScore is what a cluster scores that the binding is in already
// (spec: behaviour/04 4.7).
const localityScore = 100

// New returns the candidates of a binding, in order (spec: behaviour/04 4.7,
// 4.9). With locality clusters that it is in come first. estimate says how many
// more replicas a cluster has room for.
func New(spec *workv1alpha2.ResourceBindingSpec, term *policyv1alpha1.ClusterAffinityTerm, fit []*clusterv1alpha1.Cluster,
	locality bool, estimate func(*clusterv1alpha1.Cluster) int64,
) ([]Cluster, error) {
	now := make(map[string]int64, len(spec.Clusters))
	for _, t := range spec.Clusters {
		now[t.Name] = int64(t.Replicas)
	}
	all := make([]Cluster, 0, len(fit))
	for _, c := range fit {
		tier, err := tierOf(term, c)
		if err != nil {
			return nil, err
		}
		replicas, there := now[c.Name]
		one := Cluster{Cluster: c, Tier: tier, Assigned: replicas, Allocatable: estimate(c)}
		if there && locality {
			one.Score = localityScore
		}
		all = append(all, one)
	}
	slices.SortFunc(all, Compare)
	return all, nil
}

// Compare orders candidates: the wanted ones and those with more room first.
func Compare(a, b Cluster) int {
	return cmp.Or(
		cmp.Compare(a.Tier, b.Tier),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.Available(), a.Available()),
		strings.Compare(a.Name, b.Name),
	)
}

func tierOf(term *policyv1alpha1.ClusterAffinityTerm, c *clusterv1alpha1.Cluster) (int, error) {
	if term == nil {
		return 0, nil
	}
	if ok, err := policy.MatchesCluster(&term.ClusterAffinity, c); ok || err != nil {
		return 0, err
	}
	for i := range term.OverflowAffinities {
		if ok, err := policy.MatchesCluster(&term.OverflowAffinities[i].ClusterAffinity, c); ok || err != nil {
			return i + 1, err
		}
	}
	return noTier, nil
}
