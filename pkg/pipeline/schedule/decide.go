package schedule

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/division"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// isOurs reports whether a binding is for this scheduler to place
// (spec: behaviour/04 4.2).
func isOurs(b binding.Object, scheduler string) bool {
	return binding.SchedulerOf(b) == scheduler && binding.IsScheduled(b)
}

// A cause is why a binding is scheduled; metrics call it the schedule type.
type cause string

const (
	causeNone      cause = ""                  // it is not: it stays as it is
	causePlacement cause = "ReconcileSchedule" // its placement has changed
	causeScale     cause = "ScaleSchedule"     // its replicas have
	causeFresh     cause = "RebalanceSchedule" // somebody asked for it
	causeFailover  cause = "FailoverSchedule"  // a cluster of it leaves
	causeRetry     cause = "RetrySchedule"     // there was nowhere to go before
	causeAlways    cause = "AlwaysSchedule"    // nothing is lost by looking again
)

// whySchedule says whether a binding is to be scheduled now. The first rule that
// matches counts (spec: behaviour/04 4.3).
func whySchedule(b binding.Object, sets bool, clusters fleet) cause {
	spec := b.BindingSpec()
	switch {
	case placementChanged(b):
		return causePlacement
	case replicasChanged(spec, sets):
		return causeScale
	case rescheduleAsked(b):
		return causeFresh
	case !binding.IsWorkload(spec) || division.Of(spec.Placement) == division.Duplicated:
		return causeAlways
	}
	for _, t := range spec.Clusters {
		if clusters.leaves(t.Name) {
			return causeFailover
		}
	}
	switch {
	case fitNowhere(b):
		return causeRetry
	case leftTerm(b, clusters):
		return causePlacement
	}
	return causeNone
}

// placementChanged compares the placement with the one that was applied. Of
// affinity terms only the one in use counts.
func placementChanged(b binding.Object) bool {
	now := b.BindingSpec().Placement
	text := b.GetAnnotations()[names.AppliedPlacementAnnotation]
	if text == "" {
		return true
	}
	applied := &policyv1alpha1.Placement{}
	if err := json.Unmarshal([]byte(text), applied); err != nil {
		return false // somebody's own text must not move workloads
	}
	if !equality.Semantic.DeepEqual(applied.ClusterAffinity, now.ClusterAffinity) ||
		!equality.Semantic.DeepEqual(applied.ClusterTolerations, now.ClusterTolerations) ||
		!equality.Semantic.DeepEqual(applied.SpreadConstraints, now.SpreadConstraints) ||
		!equality.Semantic.DeepEqual(applied.ReplicaScheduling, now.ReplicaScheduling) {
		return true
	}
	if equality.Semantic.DeepEqual(applied.ClusterAffinities, now.ClusterAffinities) {
		return false
	}
	term := b.BindingStatus().SchedulerObservedAffinityName
	before, after := indexOfTerm(applied, term), indexOfTerm(now, term)
	if term == "" || before < 0 || after < 0 {
		return true
	}
	return !equality.Semantic.DeepEqual(applied.ClusterAffinities[before], now.ClusterAffinities[after])
}

func replicasChanged(spec *workv1alpha2.ResourceBindingSpec, sets bool) bool {
	switch {
	case spec.Placement.ReplicaScheduling == nil:
		return false
	case len(spec.Components) > 0:
		return sets && (len(spec.Clusters) == 0 || componentsChanged(spec))
	case division.Of(spec.Placement) == division.Duplicated:
		for _, t := range spec.Clusters {
			if t.Replicas != spec.Replicas {
				return true
			}
		}
		return false
	}
	sum := int64(0)
	for _, t := range spec.Clusters {
		sum += int64(t.Replicas)
	}
	return sum != int64(spec.Replicas)
}

// componentsChanged reports whether a target tells of other components than there
// are. The workload stays where it is for that; what is said of it becomes right.
func componentsChanged(spec *workv1alpha2.ResourceBindingSpec) bool {
	same := func(a workv1alpha2.TargetComponent, b workv1alpha2.Component) bool {
		return a.Name == b.Name && a.Replicas == b.Replicas
	}
	return slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return len(t.Components) > 0 && !slices.EqualFunc(t.Components, spec.Components, same)
	})
}

// rescheduleAsked reports whether somebody asked for a fresh start since the
// last time. Times have seconds only: what was asked for in the second of the
// last scheduling counts until the binding has been looked at.
func rescheduleAsked(b binding.Object) bool {
	asked, last := b.BindingSpec().RescheduleTriggeredAt, b.BindingStatus().LastScheduledTime
	if asked == nil || last == nil {
		return false
	}
	return asked.After(last.Time) || asked.Equal(last) && !isObserved(b)
}

func isObserved(b binding.Object) bool {
	return b.BindingStatus().SchedulerObservedGeneration == b.GetGeneration()
}

// fitNowhere reports whether no cluster fitted the last time.
func fitNowhere(b binding.Object) bool {
	scheduled := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled)
	return scheduled != nil && scheduled.Reason == workv1alpha2.ReasonNoClusterFit
}

// stay returns where a binding is that fits nowhere: it keeps what it has, but for
// clusters that leave. Whoever wants it elsewhere has to say where.
func stay(spec *workv1alpha2.ResourceBindingSpec, clusters fleet) []workv1alpha2.TargetCluster {
	var kept []workv1alpha2.TargetCluster
	for _, t := range spec.Clusters {
		if !clusters.leaves(t.Name) {
			kept = append(kept, t)
		}
	}
	return kept
}

// leftTerm reports whether a binding that has not been looked at since it changed
// is in none of the clusters of the term that it is said to be in: the process
// ended between writing the clusters and the term.
func leftTerm(b binding.Object, clusters fleet) bool {
	spec := b.BindingSpec()
	i := indexOfTerm(spec.Placement, b.BindingStatus().SchedulerObservedAffinityName)
	if isObserved(b) || i < 0 || len(spec.Clusters) == 0 {
		return false
	}
	for _, t := range spec.Clusters {
		c, ok := clusters.byName[t.Name]
		if !ok || inTerm(&spec.Placement.ClusterAffinities[i], c) {
			return false
		}
	}
	return true
}

// inTerm reports whether a cluster is in a term, or in what its replicas may flow
// over to. What cannot be understood counts as in it.
func inTerm(term *policyv1alpha1.ClusterAffinityTerm, c *clusterv1alpha1.Cluster) bool {
	if ok, err := policy.MatchesCluster(&term.ClusterAffinity, c); ok || err != nil {
		return true
	}
	for i := range term.OverflowAffinities {
		if ok, err := policy.MatchesCluster(&term.OverflowAffinities[i].ClusterAffinity, c); ok || err != nil {
			return true
		}
	}
	return false
}

// A fleet is all clusters as they were at one time.
type fleet struct {
	all    []*clusterv1alpha1.Cluster
	byName map[string]*clusterv1alpha1.Cluster
}

func newFleet(list []clusterv1alpha1.Cluster) fleet {
	f := fleet{byName: make(map[string]*clusterv1alpha1.Cluster, len(list))}
	for i := range list {
		f.all = append(f.all, &list[i])
		f.byName[list[i].Name] = &list[i]
	}
	return f
}

// leaves reports whether a cluster is being deleted, or not there.
func (f fleet) leaves(name string) bool {
	c, ok := f.byName[name]
	return !ok || !c.DeletionTimestamp.IsZero()
}
