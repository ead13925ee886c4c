// Package filter says which clusters a binding may go to. Each plugin is one
// rule; a cluster that any of them refuses is left out, for the reason that the
// first one gives (spec: behaviour/04 4.6).
package filter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A Subject is what looks for clusters.
type Subject struct {
	// Spec is the binding's; its Placement is set.
	Spec *workv1alpha2.ResourceBindingSpec
	// Term is the one of the placement's ClusterAffinities that is tried; nil
	// when it has none.
	Term *policyv1alpha1.ClusterAffinityTerm
	// Others is where the others are of the groups that the binding is in. Nil:
	// it is in none, or groups do not count.
	Others Others

	targets map[string]bool
}

// has reports whether the binding is scheduled to a cluster already.
func (s Subject) has(c *clusterv1alpha1.Cluster) bool { return s.targets[c.Name] }

// Others tells where the other workloads are of the groups that a binding is in.
// Each method returns why it must not go to a cluster, "" when it may.
type Others interface {
	// Together is asked for workloads that it wants to be with.
	Together(cluster string) (reason string)
	// Apart is asked for workloads that it must not be with.
	Apart(cluster string) (reason string)
}

// A Plugin is one rule.
type Plugin struct {
	Name string
	// For reads what a subject asks for, once for all clusters. A nil Check lets
	// all through. The error is a placement that cannot be understood.
	For func(Subject) (Check, error)
}

// A Check returns why a cluster is out of the question, "" when it is not.
type Check func(*clusterv1alpha1.Cluster) (reason string)

// Plugins returns the rules, in the order in which they are asked: what the user
// said about clusters first, so that other reasons are given only for clusters
// that were meant.
func Plugins() []Plugin {
	return []Plugin{
		{Name: "ClusterAffinity", For: clusterAffinity},
		{Name: "SpreadConstraint", For: spreadConstraint},
		{Name: "ClusterEviction", For: clusterEviction},
		{Name: "TaintToleration", For: taintToleration},
		{Name: "APIEnablement", For: apiEnablement},
		{Name: "WorkloadAffinity", For: workloadAffinity},
		{Name: "WorkloadAntiAffinity", For: workloadAntiAffinity},
	}
}

// A Refusal says which plugin left a cluster out, and why.
type Refusal struct {
	Cluster *clusterv1alpha1.Cluster
	Plugin  string
	Reason  string
}

// A Verdict is what became of all clusters.
type Verdict struct {
	// Fit are those that every plugin lets through, in the order given.
	Fit []*clusterv1alpha1.Cluster
	// Refused are those that one does not. Clusters that are being deleted are in
	// neither.
	Refused []Refusal
}

// A Timer notes how long a plugin takes; it is called when that begins, and what
// it returns when it ends.
type Timer func(plugin string) (done func())

// Clusters asks the plugins about all clusters. When none fits the error is a
// *FitError; any other says that nobody knows. timer may be nil.
func Clusters(plugins []Plugin, s Subject, all []*clusterv1alpha1.Cluster, timer Timer) (Verdict, error) {
	s.targets = make(map[string]bool, len(s.Spec.Clusters))
	for _, t := range s.Spec.Clusters {
		s.targets[t.Name] = true
	}
	v := Verdict{Fit: make([]*clusterv1alpha1.Cluster, 0, len(all))}
	for _, c := range all {
		if c.DeletionTimestamp.IsZero() {
			v.Fit = append(v.Fit, c)
		}
	}
	for _, p := range plugins {
		if err := v.narrow(p, s, timer); err != nil {
			return Verdict{}, fmt.Errorf("plugin %s: %w", p.Name, err)
		}
	}
	if len(v.Fit) == 0 {
		return v, &FitError{Clusters: len(all), Reasons: v.reasons()}
	}
	return v, nil
}

// narrow takes out the clusters that a plugin refuses.
func (v *Verdict) narrow(p Plugin, s Subject, timer Timer) error {
	if timer != nil {
		defer timer(p.Name)()
	}
	check, err := p.For(s)
	if err != nil || check == nil {
		return err
	}
	fit := v.Fit[:0]
	for _, c := range v.Fit {
		if reason := check(c); reason != "" {
			v.Refused = append(v.Refused, Refusal{Cluster: c, Plugin: p.Name, Reason: reason})
			continue
		}
		fit = append(fit, c)
	}
	v.Fit = fit
	return nil
}

func (v *Verdict) reasons() map[string]int {
	counts := map[string]int{}
	for _, r := range v.Refused {
		counts[r.Reason]++
	}
	return counts
}

// A FitError says that no cluster may be used, and why.
type FitError struct {
	// Clusters is how many there are.
	Clusters int
	// Reasons counts the clusters that were refused, by the reason.
	Reasons map[string]int
}

// mostReasons keeps the text of an error below what a condition may hold: a reason
// can be some 400 bytes long, and a large fleet may have as many as clusters.
const mostReasons = 64

func (e *FitError) Error() string {
	if e.Clusters == 0 {
		return "no cluster exists"
	}
	if len(e.Reasons) == 0 {
		return fmt.Sprintf("0/%d clusters are available: all of them are being deleted.", e.Clusters)
	}
	frequent := slices.SortedFunc(maps.Keys(e.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.Reasons[b], e.Reasons[a]), strings.Compare(a, b))
	})
	var list []string
	others := 0
	for i, reason := range frequent {
		if i >= mostReasons {
			others += e.Reasons[reason]
			continue
		}
		list = append(list, fmt.Sprintf("%d %s", e.Reasons[reason], reason))
	}
	slices.Sort(list)
	if others > 0 {
		list = append(list, fmt.Sprintf("%d cluster(s) for other reasons", others))
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, strings.Join(list, ", "))
}
