package schedule

import (
	"errors"
	"fmt"
	"slices"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/assign"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/division"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/spread"
)

// Plugins returns the names of all plugins, sorted: those that refuse clusters,
// and ClusterLocality, which prefers those that a binding is in already.
func Plugins() []string {
	all := []string{clusterLocality}
	for _, p := range filter.Plugins() {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return all
}

const clusterLocality = "ClusterLocality"

// An algorithm finds clusters for bindings. It reads nothing but its arguments.
type algorithm struct {
	plugins   []filter.Plugin
	locality  bool
	keepEmpty bool // clusters that get no replica
	models    bool // resource models count
	sets      bool // several components are scheduled as one
	steps     stepTimer
}

// A stepTimer notes how long a step took; it is called at its begin, and what it
// returns at its end.
type stepTimer func(step string) (done func())

// A result is what the algorithm found.
type result struct {
	targets []workv1alpha2.TargetCluster
	// term is the name of the ClusterAffinities' term that was used.
	term string
	// failed are the terms that were tried before, and why they were not used.
	failed []termError
}

type termError struct {
	index int
	err   error
}

// run finds clusters for a binding. With fresh it forgets where the binding is.
// When nothing is found the error is that of the first term that was tried; with
// a *filter.FitError nothing fits, with any other nobody knows.
func (a algorithm) run(b binding.Object, s Snapshot, fresh bool) (result, error) {
	spec := b.BindingSpec()
	if len(spec.Placement.ClusterAffinities) == 0 {
		targets, err := a.try(spec, nil, s, fresh)
		return result{targets: targets}, err
	}

	terms := spec.Placement.ClusterAffinities
	var (
		r     result
		first error
	)
	for i := startTerm(b, fresh); i < len(terms); i++ {
		targets, err := a.try(spec, &terms[i], s, fresh)
		if err == nil {
			r.targets, r.term = targets, terms[i].AffinityName
			return r, nil
		}
		r.failed = append(r.failed, termError{i, err})
		if first == nil {
			first = err
		}
	}
	return r, first
}

// startTerm returns the index of the term to try first: scheduling never goes
// back to an earlier one by itself (spec: behaviour/04 4.5).
func startTerm(b binding.Object, fresh bool) int {
	if fresh {
		return 0
	}
	return max(0, indexOfTerm(b.BindingSpec().Placement, b.BindingStatus().SchedulerObservedAffinityName))
}

// indexOfTerm returns -1 for a term that is not there.
func indexOfTerm(p *policyv1alpha1.Placement, name string) int {
	return slices.IndexFunc(p.ClusterAffinities, func(t policyv1alpha1.ClusterAffinityTerm) bool { return t.AffinityName == name })
}

// try schedules with one term, nil for a placement that has none.
func (a algorithm) try(spec *workv1alpha2.ResourceBindingSpec, term *policyv1alpha1.ClusterAffinityTerm, s Snapshot, fresh bool) ([]workv1alpha2.TargetCluster, error) {
	if a.sets && len(spec.Components) > 1 && spread.Applies(spec.Placement) {
		return nil, &unsupportedError{"workloads of several components with spread constraints"}
	}

	done := a.steps(stepFilter)
	fit, err := filter.Clusters(a.plugins, filter.Subject{Spec: spec, Term: term}, s.Clusters)
	done()
	if err != nil {
		if fitError := (*filter.FitError)(nil); errors.As(err, &fitError) {
			return nil, err
		}
		return nil, fmt.Errorf("failed to find fit clusters: %w", err)
	}

	done = a.steps(stepScore)
	candidates, err := candidate.New(spec, term, fit, a.locality, a.estimator(spec, s))
	done()
	if err != nil {
		return nil, fmt.Errorf("failed to prioritize clusters: %w", err)
	}

	done = a.steps(stepSelect)
	selected, err := spread.Select(spec, candidates)
	done()
	if err != nil {
		return nil, fmt.Errorf("failed to select clusters: %w", err)
	}

	done = a.steps(stepAssign)
	defer done()
	targets, err := assign.Targets(assign.Request{
		Spec: spec, Selected: selected, Fresh: fresh, KeepEmpty: a.keepEmpty,
		Overflow: term != nil && len(term.OverflowAffinities) > 0,
	})
	if err != nil {
		return nil, fmt.Errorf("failed to assign replicas: %w", err)
	}
	return targets, nil
}

// asksEstimators reports whether something depends on the room that clusters
// have.
func asksEstimators(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 && (spread.Applies(spec.Placement) || division.Of(spec.Placement).LooksAtRoom())
}

// estimator returns what says how many more replicas a cluster has room for.
func (a algorithm) estimator(spec *workv1alpha2.ResourceBindingSpec, s Snapshot) func(*clusterv1alpha1.Cluster) int64 {
	if !asksEstimators(spec) {
		return func(*clusterv1alpha1.Cluster) int64 { return int64(spec.Replicas) }
	}
	general, request := estimate.General{Models: a.models}, estimate.Of(spec)
	return func(c *clusterv1alpha1.Cluster) int64 {
		least := general.Replicas(c, request, s.Reserved[c.Name])
		if other, ok := estimate.Least(s.Answers[c.Name]...); ok {
			least = min(least, other.Replicas)
		}
		return int64(least)
	}
}

// asks returns what to ask estimators about a binding, and which clusters: those
// that it may go to, by any term that may be tried. No clusters: there is nothing
// to ask.
func (a algorithm) asks(b binding.Object, s Snapshot, fresh bool) (estimate.Request, []*clusterv1alpha1.Cluster) {
	spec := b.BindingSpec()
	request := estimate.Of(spec)
	if !asksEstimators(spec) {
		return request, nil
	}
	terms := []*policyv1alpha1.ClusterAffinityTerm{nil}
	if all := spec.Placement.ClusterAffinities; len(all) > 0 {
		terms = nil
		for i := startTerm(b, fresh); i < len(all); i++ {
			terms = append(terms, &all[i])
		}
	}
	asked := map[string]bool{}
	var clusters []*clusterv1alpha1.Cluster
	for _, term := range terms {
		fit, err := filter.Clusters(a.plugins, filter.Subject{Spec: spec, Term: term}, s.Clusters)
		if err != nil {
			continue // run says so
		}
		for _, c := range fit {
			if !asked[c.Name] {
				asked[c.Name] = true
				clusters = append(clusters, c)
			}
		}
	}
	return request, clusters
}

// An unsupportedError says that this version cannot do what is asked for.
// Trying again is of no use.
type unsupportedError struct{ what string }

func (e *unsupportedError) Error() string { return "this version does not support " + e.what }
