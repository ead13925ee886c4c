// Package filter says which clusters a binding may go to. Each plugin is one
// rule; a cluster that any of them refuses is left out, for the reason that the
// first one gives (spec: behaviour/04 4.6).
package filter

import (
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
}

// has reports whether the binding is scheduled to a cluster already.
func (s Subject) has(c *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(s.Spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name })
}

// A Plugin is one rule.
type Plugin struct {
	Name string
	// Check returns why the cluster is out of the question, "" when it is not.
	// The error is a placement that cannot be understood.
	Check func(Subject, *clusterv1alpha1.Cluster) (reason string, err error)
}

// Plugins returns the rules, in the order in which they are asked: what the user
// said about clusters first, so that other reasons are given only for clusters
// that were meant.
func Plugins() []Plugin {
	return []Plugin{
		{Name: "ClusterAffinity", Check: clusterAffinity},
		{Name: "SpreadConstraint", Check: spreadConstraint},
		{Name: "ClusterEviction", Check: clusterEviction},
		{Name: "TaintToleration", Check: taintToleration},
		{Name: "APIEnablement", Check: apiEnablement},
	}
}

// Clusters returns those that every plugin lets through, in the order given.
// Clusters that are being deleted are never among them. When there is none the
// error is a *FitError; any other says that nobody knows.
func Clusters(plugins []Plugin, s Subject, all []*clusterv1alpha1.Cluster) ([]*clusterv1alpha1.Cluster, error) {
	var fit []*clusterv1alpha1.Cluster
	reasons := map[string]int{}
	for _, c := range all {
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		reason, err := check(plugins, s, c)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if reason != "" {
			reasons[reason]++
			continue
		}
		fit = append(fit, c)
	}
	if len(fit) == 0 {
		return nil, &FitError{Clusters: len(all), Reasons: reasons}
	}
	return fit, nil
}

func check(plugins []Plugin, s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	for _, p := range plugins {
		reason, err := p.Check(s, c)
		if err != nil {
			return "", fmt.Errorf("plugin %s: %w", p.Name, err)
		}
		if reason != "" {
			return reason, nil
		}
	}
	return "", nil
}

// A FitError says that no cluster may be used, and why.
type FitError struct {
	// Clusters is how many there are.
	Clusters int
	// Reasons counts the clusters that were refused, by the reason.
	Reasons map[string]int
}

func (e *FitError) Error() string {
	if e.Clusters == 0 {
		return "no cluster exists"
	}
	if len(e.Reasons) == 0 {
		return fmt.Sprintf("0/%d clusters are available: all of them are being deleted.", e.Clusters)
	}
	var list []string
	for _, reason := range slices.Collect(maps.Keys(e.Reasons)) {
		list = append(list, fmt.Sprintf("%d %s", e.Reasons[reason], reason))
	}
	slices.Sort(list)
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, strings.Join(list, ", "))
}

// Others tells where the other workloads are of the groups that a binding is in.
// Each method returns why it must not go to a cluster, "" when it may.
type Others interface {
	// Together is asked for workloads that it wants to be with.
	Together(cluster string) (reason string)
	// Apart is asked for workloads that it must not be with.
	Apart(cluster string) (reason string)
}
