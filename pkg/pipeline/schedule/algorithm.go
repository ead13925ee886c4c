package schedule

import (
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
	return slices.Compact(all)
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
	// eachPlugin, unless it is nil, notes how long plugins take.
	eachPlugin pluginTimer
}

// A stepTimer notes how long a step took; it is called at its begin, and what it
// returns at its end.
type stepTimer func(step string) (done func())

// A pluginTimer does so for a plugin of a step.
type pluginTimer func(step, plugin string) (done func())

// of returns the timer of the plugins of a step.
func (t pluginTimer) of(step string) func(plugin string) (done func()) {
	if t == nil {
		return nil
	}
	return func(plugin string) func() { return t(step, plugin) }
}

// A result is what the algorithm found.
type result struct {
	targets []workv1alpha2.TargetCluster
	// term is the name of the ClusterAffinities' term that was used.
	term string
	// failed are the terms that were tried before, and why they were not used.
	failed []termError
	// attempts are all terms that were tried, the one that was used included. A
	// placement without terms has one.
	attempts []attempt
}

type termError struct {
	index int
	err   error
}

// run finds clusters for a binding. With fresh it forgets where the binding is.
// With a *filter.FitError nothing fits, with any other nobody knows. Of several
// terms the first one decides that leaves hope: a term without room may have some
// later, and one that cannot be understood must not be taken for one that nothing
// fits; if nothing fits any of them it is the first.
func (a algorithm) run(b binding.Object, s Snapshot, fresh bool) (result, error) {
	spec := b.BindingSpec()
	terms := spec.Placement.ClusterAffinities
	if len(terms) == 0 {
		one := a.try(spec, nil, s, fresh)
		return result{targets: one.targets, attempts: []attempt{one}}, one.err
	}

	var (
		r    result
		told error
	)
	for i := startTerm(b, fresh); i < len(terms); i++ {
		one := a.try(spec, &terms[i], s, fresh)
		one.index = i
		r.attempts = append(r.attempts, one)
		if one.err == nil {
			r.targets, r.term = one.targets, terms[i].AffinityName
			return r, nil
		}
		r.failed = append(r.failed, termError{i, one.err})
		if told == nil || isNoFit(told) && !isNoFit(one.err) {
			told = one.err
		}
	}
	return r, told
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
func (a algorithm) try(spec *workv1alpha2.ResourceBindingSpec, term *policyv1alpha1.ClusterAffinityTerm, s Snapshot, fresh bool) (one attempt) {
	one.term = term
	done := a.steps(stepFilter)
	one.verdict, one.err = filter.Clusters(a.plugins, a.subject(spec, term, s), s.Clusters, a.eachPlugin.of(stepFilter))
	done()
	if one.err != nil {
		if !isNoFit(one.err) {
			one.err = fmt.Errorf("failed to find fit clusters: %w", one.err)
		}
		return one
	}

	done = a.steps(stepScore)
	one.candidates, one.err = candidate.New(candidate.Request{
		Spec: spec, Term: term, Clusters: one.verdict.Fit, Scorers: a.scorers(), Timer: a.eachPlugin.of(stepScore), Estimate: a.estimator(spec, s),
	})
	done()
	if one.err != nil {
		one.err = fmt.Errorf("failed to prioritize clusters: %w", one.err)
		return one
	}

	done = a.steps(stepSelect)
	one.selected, one.err = spread.Select(spec, one.candidates)
	done()
	if one.err != nil {
		one.err = fmt.Errorf("failed to select clusters: %w", one.err)
		return one
	}

	done = a.steps(stepAssign)
	defer done()
	one.targets, one.err = assign.Targets(assign.Request{
		Spec: spec, Selected: one.selected, Fresh: fresh, KeepEmpty: a.keepEmpty,
		Overflow: term != nil && len(term.OverflowAffinities) > 0, Components: a.sets && spread.IsOneCluster(spec.Placement),
	})
	if one.err != nil {
		one.err = fmt.Errorf("failed to assign replicas: %w", one.err)
	}
	return one
}

func (a algorithm) subject(spec *workv1alpha2.ResourceBindingSpec, term *policyv1alpha1.ClusterAffinityTerm, s Snapshot) filter.Subject {
	return filter.Subject{Spec: spec, Term: term, Others: s.Others}
}

func (a algorithm) scorers() []candidate.Scorer {
	if !a.locality {
		return nil
	}
	return candidate.Scorers()
}

// asksEstimators reports whether something depends on the room that clusters
// have.
func (a algorithm) asksEstimators(spec *workv1alpha2.ResourceBindingSpec) bool {
	if division.IsWhole(spec) {
		return a.sets && spread.Applies(spec.Placement)
	}
	return spec.Replicas > 0 && (spread.Applies(spec.Placement) || division.Of(spec.Placement).LooksAtRoom())
}

// request returns what estimators are asked about a binding.
func (a algorithm) request(spec *workv1alpha2.ResourceBindingSpec) estimate.Request {
	request := estimate.Of(spec)
	if !a.sets || !division.IsWhole(spec) {
		request.Components = nil
	}
	return request
}

// estimator returns what says how many more replicas a cluster has room for: the
// least that anybody says.
func (a algorithm) estimator(spec *workv1alpha2.ResourceBindingSpec, s Snapshot) func(*clusterv1alpha1.Cluster) (int64, string) {
	if !a.asksEstimators(spec) {
		room := int64(spec.Replicas)
		if division.IsWhole(spec) {
			room = 1
		}
		return func(*clusterv1alpha1.Cluster) (int64, string) { return room, "" }
	}
	general, request := estimate.General{Models: a.models}, a.request(spec)
	return func(c *clusterv1alpha1.Cluster) (int64, string) {
		room := general.Replicas(c, request, s.Reserved[c.Name])
		by := estimate.GeneralName
		for _, other := range s.Answers[c.Name] {
			other = other.Beside(s.Reserved[c.Name], request)
			if other.Replicas != estimate.Unknown && other.Replicas < room {
				room, by = other.Replicas, other.By
			}
		}
		return int64(room), by
	}
}

// asks returns what to ask estimators about a binding, and which clusters: those
// that it may go to, by any term that may be tried. No clusters: there is nothing
// to ask.
func (a algorithm) asks(b binding.Object, s Snapshot, fresh bool) (estimate.Request, []*clusterv1alpha1.Cluster) {
	spec := b.BindingSpec()
	request := a.request(spec)
	if !a.asksEstimators(spec) {
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
		verdict, err := filter.Clusters(a.plugins, a.subject(spec, term, s), s.Clusters, nil)
		if err != nil {
			continue // run says so
		}
		for _, c := range verdict.Fit {
			if !asked[c.Name] {
				asked[c.Name] = true
				clusters = append(clusters, c)
			}
		}
	}
	return request, clusters
}
