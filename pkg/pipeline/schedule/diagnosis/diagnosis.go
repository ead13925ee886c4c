// Package diagnosis is what there is to tell about how clusters were found for a
// binding, or why none were. It is plain data: what made it may be far away.
package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

// A Diagnosis tells of one run of the scheduling algorithm.
type Diagnosis struct {
	// Cause is why the binding would be scheduled now, as metrics call it. Empty:
	// it would be left as it is, and this is what would come out otherwise.
	Cause string
	// Terms are the affinity terms that were tried, in order; the last one counts
	// if Err is nil. A placement without ClusterAffinities has one without a name.
	Terms []Term
	// Targets are the clusters that were found.
	Targets []workv1alpha2.TargetCluster
	// Err is why none were.
	Err error
	// Condition is what the condition Scheduled says of it.
	Condition metav1.Condition
	// Silent is why estimators gave no answer, by their names.
	Silent map[string]error
}

// A Term tells of one affinity term.
type Term struct {
	// Name is that of the term; Index its place in ClusterAffinities.
	Name  string
	Index int
	// Err is why it could not be used.
	Err error
	// Clusters are all clusters, by name.
	Clusters []Cluster
}

// A Stage is how far a cluster came.
type Stage string

// The stages.
const (
	// Leaving clusters are being deleted.
	Leaving Stage = "Leaving"
	// Refused clusters must not be used.
	Refused Stage = "Refused"
	// Fitting clusters may be used. They were not looked at further, because
	// something failed.
	Fitting Stage = "Fitting"
	// NotSelected clusters are left out by spread constraints.
	NotSelected Stage = "NotSelected"
	// Selected clusters could get replicas, and got none.
	Selected Stage = "Selected"
	// Assigned clusters are targets.
	Assigned Stage = "Assigned"
	// Unknown is what became of a cluster when nothing could be told at all.
	Unknown Stage = "Unknown"
)

// A Cluster tells of one cluster.
type Cluster struct {
	Name  string
	Stage Stage
	// Plugin refused it, for Reason.
	Plugin, Reason string
	// Tier is 0 for a cluster of the affinity itself, i+1 for one of its i-th
	// overflow affinity.
	Tier int
	// Score is what plugins gave it.
	Score int64
	// Estimates are what estimators say it has room for; the smallest counts. There
	// are none when nothing depends on it.
	Estimates []estimate.Answer
	// Current is how many replicas it has now, Replicas how many it is given.
	Current, Replicas int32
}

// Verdict says in one line what became of the cluster, at a time.
func (c Cluster) Verdict(now time.Time) string {
	switch c.Stage {
	case Leaving:
		return "is being deleted"
	case Refused:
		return fmt.Sprintf("refused by %s: %s", c.Plugin, c.Reason)
	case Unknown:
		return "not looked at"
	case Assigned:
		return c.with(fmt.Sprintf("assigned %d, has %d", c.Replicas, c.Current), now)
	case Selected:
		return c.with("selected, but without a replica", now)
	case NotSelected:
		return c.with("not selected by spread constraints", now)
	default:
		return c.with("may be used", now)
	}
}

// with adds what the verdict depends on.
func (c Cluster) with(verdict string, now time.Time) string {
	parts := []string{verdict}
	if c.Tier > 0 {
		parts = append(parts, fmt.Sprintf("overflow %d", c.Tier))
	}
	if c.Score > 0 {
		parts = append(parts, fmt.Sprintf("score %d", c.Score))
	}
	for _, e := range c.Estimates {
		parts = append(parts, describe(e, now))
	}
	return strings.Join(parts, "; ")
}

func describe(e estimate.Answer, now time.Time) string {
	if e.Replicas < 0 {
		return e.By + " cannot tell"
	}
	text := fmt.Sprintf("room for %d more (%s", e.Replicas, e.By)
	if !e.At.IsZero() {
		text += fmt.Sprintf(", %s ago", now.Sub(e.At).Round(time.Second))
	}
	return text + ")"
}

// Cluster returns what became of a cluster.
func (t Term) Cluster(name string) (Cluster, bool) {
	i, found := slices.BinarySearchFunc(t.Clusters, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return Cluster{}, false
	}
	return t.Clusters[i], true
}
