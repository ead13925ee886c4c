package schedule

import (
	"fmt"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/candidate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/diagnosis"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
)

// Explain tells what a scheduler with these options would decide about a binding,
// and how. It is what the scheduler itself does, and writes nothing.
func Explain(o Options, b binding.Object, s Snapshot) diagnosis.Diagnosis {
	if o.Enabled == nil {
		o.Enabled = func(string) bool { return true }
	}
	if b.BindingSpec().Placement == nil {
		err := fmt.Errorf("failed to get placement from %s(%s)", resourceOf(b), nameOf(b))
		return diagnosis.Diagnosis{Err: err, Condition: condition(err)}
	}
	a := o.algorithm(func(string) func() { return func() {} })
	why := whySchedule(b, a.sets, fleetOf(s.Clusters))
	found, err := a.run(b, s, why == causeFresh)
	d := a.diagnose(b, s, found, err)
	if isNoFit(err) {
		d.Targets = stay(b.BindingSpec(), fleetOf(s.Clusters))
	}
	d.Cause = string(why)
	return d
}

func fleetOf(clusters []*clusterv1alpha1.Cluster) fleet {
	f := fleet{all: clusters, byName: make(map[string]*clusterv1alpha1.Cluster, len(clusters))}
	for _, c := range clusters {
		f.byName[c.Name] = c
	}
	return f
}

// An attempt is what the algorithm found with one term, as far as it came.
type attempt struct {
	term       *policyv1alpha1.ClusterAffinityTerm // nil: the placement has none
	index      int
	verdict    filter.Verdict
	candidates []candidate.Cluster
	selected   []candidate.Cluster
	targets    []workv1alpha2.TargetCluster
	err        error
}

// diagnose tells what the algorithm found in a snapshot, and how.
func (a algorithm) diagnose(b binding.Object, s Snapshot, found result, err error) diagnosis.Diagnosis {
	d := diagnosis.Diagnosis{Targets: found.targets, Err: err, Condition: condition(err), Silent: s.Silent}
	for _, one := range found.attempts {
		t := diagnosis.Term{Index: one.index, Err: one.err, Clusters: a.tell(b.BindingSpec(), s, one)}
		if one.term != nil {
			t.Name = one.term.AffinityName
		}
		d.Terms = append(d.Terms, t)
	}
	return d
}

// tell says what became of each cluster in an attempt.
func (a algorithm) tell(spec *workv1alpha2.ResourceBindingSpec, s Snapshot, one attempt) []diagnosis.Cluster {
	all, at := make([]diagnosis.Cluster, len(s.Clusters)), make(map[string]*diagnosis.Cluster, len(s.Clusters))
	sorted := slices.SortedFunc(slices.Values(s.Clusters), func(a, b *clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	for i, c := range sorted {
		all[i] = diagnosis.Cluster{Name: c.Name, Stage: diagnosis.Unknown}
		if !c.DeletionTimestamp.IsZero() {
			all[i].Stage = diagnosis.Leaving
		}
		at[c.Name] = &all[i]
	}
	for _, t := range spec.Clusters {
		if c := at[t.Name]; c != nil {
			c.Current = t.Replicas
		}
	}
	for _, r := range one.verdict.Refused {
		c := at[r.Cluster.Name]
		c.Stage, c.Plugin, c.Reason = diagnosis.Refused, r.Plugin, r.Reason
	}
	for _, fit := range one.verdict.Fit {
		at[fit.Name].Stage = diagnosis.Fitting
	}
	for i := range one.candidates {
		from := &one.candidates[i]
		c := at[from.Name]
		c.Tier, c.Score, c.Estimates = from.Tier, from.Score, a.answers(spec, s, from.Cluster)
		if one.selected != nil {
			c.Stage = diagnosis.NotSelected
		}
	}
	for i := range one.selected {
		at[one.selected[i].Name].Stage = diagnosis.Selected
	}
	for _, t := range one.targets {
		c := at[t.Name]
		c.Stage, c.Replicas = diagnosis.Assigned, t.Replicas
	}
	return all
}

// answers returns what all estimators say of a cluster, the general one first.
func (a algorithm) answers(spec *workv1alpha2.ResourceBindingSpec, s Snapshot, c *clusterv1alpha1.Cluster) []estimate.Answer {
	if !a.asksEstimators(spec) {
		return nil
	}
	request, held := a.request(spec), s.Reserved[c.Name]
	all := []estimate.Answer{{
		Replicas: estimate.General{Models: a.models}.Replicas(c, request, held), At: s.SummarizedAt[c.Name], By: estimate.GeneralName, Counted: true,
	}}
	for _, other := range s.Answers[c.Name] {
		all = append(all, other.Beside(held, request))
	}
	return all
}
