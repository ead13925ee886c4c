// Package candidate holds what is known of a cluster that a binding may go to,
// on which its choice and its share of replicas depend.
package candidate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/clusterset"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/division"
)

// A Cluster is a candidate.
type Cluster struct {
	*clusterv1alpha1.Cluster
	// Tier orders candidates before all else: 0 is the affinity itself, i+1 the
	// i-th of its overflow affinities.
	Tier int
	// Score says how much the cluster is wanted: the sum of what plugins give.
	Score int64
	// Allocatable is how many more replicas, or sets of components, it has room for.
	Allocatable int64
	// By names the estimator that says so; "" when nobody was asked.
	By string
	// Assigned is how many it has now.
	Assigned int64
	// Held says that the binding is in it now.
	Held bool
}

// Available is how many replicas it could hold, those it has included.
func (c Cluster) Available() int64 { return c.Allocatable + c.Assigned }

// noTier is the tier of clusters that no affinity of the term matches.
const noTier = 1000

// localityScore is what a cluster scores that the binding is in already
// (spec: behaviour/04 4.7).
const localityScore = 100

// A Scorer is a plugin that says how much clusters are wanted.
type Scorer struct {
	Name string
	// For reads what a binding asks for, once for all clusters; nil scores 0.
	For func(*workv1alpha2.ResourceBindingSpec) Score
}

// A Score is what a plugin gives a cluster, 0 to 100.
type Score func(*clusterv1alpha1.Cluster) int64

// Scorers returns the plugins that score. That of ClusterAffinity gives nothing
// to any cluster (spec: behaviour/04 4.7).
func Scorers() []Scorer {
	return []Scorer{
		{Name: "ClusterLocality", For: clusterLocality},
		{Name: "ClusterAffinity", For: func(*workv1alpha2.ResourceBindingSpec) Score { return nil }},
	}
}

// clusterLocality prefers clusters that a binding is in already.
func clusterLocality(spec *workv1alpha2.ResourceBindingSpec) Score {
	if len(spec.Clusters) == 0 {
		return nil
	}
	in := make(map[string]bool, len(spec.Clusters))
	for _, t := range spec.Clusters {
		in[t.Name] = true
	}
	return func(c *clusterv1alpha1.Cluster) int64 {
		if in[c.Name] {
			return localityScore
		}
		return 0
	}
}

// A Request is what candidates are made of.
type Request struct {
	Spec *workv1alpha2.ResourceBindingSpec
	// Term is the one of ClusterAffinities that is tried; nil when there is none.
	Term *policyv1alpha1.ClusterAffinityTerm
	// Clusters are those that the binding may go to.
	Clusters []*clusterv1alpha1.Cluster
	// Scorers say how much they are wanted.
	Scorers []Scorer
	// Timer, unless it is nil, is called when a Scorer begins, and what it returns
	// when it ends.
	Timer func(plugin string) (done func())
	// Estimate says how many more replicas a cluster has room for, and who says so.
	Estimate func(*clusterv1alpha1.Cluster) (replicas int64, by string)
}

// New returns the candidates of a binding, in order (spec: behaviour/04 4.7,
// 4.9). The error is an affinity that cannot be understood.
func New(r Request) ([]Cluster, error) {
	tierOf, err := tiers(r.Term)
	if err != nil {
		return nil, err
	}
	now, whole := make(map[string]int64, len(r.Spec.Clusters)), division.IsWhole(r.Spec)
	for _, t := range r.Spec.Clusters {
		now[t.Name] = int64(t.Replicas)
		if whole {
			now[t.Name] = 1 // what is there fits there
		}
	}
	all := make([]Cluster, len(r.Clusters))
	for i, c := range r.Clusters {
		one := &all[i]
		one.Cluster, one.Tier = c, tierOf(c)
		one.Assigned, one.Held = now[c.Name]
		one.Allocatable, one.By = r.Estimate(c)
	}
	for _, s := range r.Scorers {
		r.score(s, all)
	}
	slices.SortFunc(all, Compare)
	return all, nil
}

func (r Request) score(s Scorer, all []Cluster) {
	if r.Timer != nil {
		defer r.Timer(s.Name)()
	}
	score := s.For(r.Spec)
	if score == nil {
		return
	}
	for i := range all {
		all[i].Score += score(all[i].Cluster)
	}
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

// tiers returns what tells the tier of a cluster.
func tiers(term *policyv1alpha1.ClusterAffinityTerm) (func(*clusterv1alpha1.Cluster) int, error) {
	if term == nil {
		return func(*clusterv1alpha1.Cluster) int { return 0 }, nil
	}
	first, err := clusterset.Of(&term.ClusterAffinity)
	if err != nil {
		return nil, err
	}
	sets := []*clusterset.Set{first}
	for i := range term.OverflowAffinities {
		set, err := clusterset.Of(&term.OverflowAffinities[i].ClusterAffinity)
		if err != nil {
			return nil, fmt.Errorf("overflowAffinities[%d]: %w", i, err)
		}
		sets = append(sets, set)
	}
	return func(c *clusterv1alpha1.Cluster) int {
		if tier := slices.IndexFunc(sets, func(s *clusterset.Set) bool { return s.Has(c) }); tier >= 0 {
			return tier
		}
		return noTier
	}, nil
}
