package filter

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// clusterAffinity lets through the clusters that the placement names. Clusters
// of overflow affinities take replicas, so they are for workloads only.
func clusterAffinity(s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	const reason = "cluster(s) did not match the placement cluster affinity constraint"
	var affinities []*policyv1alpha1.ClusterAffinity
	switch {
	case s.Spec.Placement.ClusterAffinity != nil:
		affinities = append(affinities, s.Spec.Placement.ClusterAffinity)
	case s.Term != nil:
		affinities = append(affinities, &s.Term.ClusterAffinity)
		if binding.IsWorkload(s.Spec) {
			for i := range s.Term.OverflowAffinities {
				affinities = append(affinities, &s.Term.OverflowAffinities[i].ClusterAffinity)
			}
		}
	default:
		return "", nil
	}
	for _, a := range affinities {
		if ok, err := policy.MatchesCluster(a, c); ok || err != nil {
			return "", err
		}
	}
	return reason, nil
}

// spreadConstraint leaves out clusters that are in no group of a kind that the
// placement spreads over.
func spreadConstraint(s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	for _, constraint := range s.Spec.Placement.SpreadConstraints {
		switch constraint.SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider:
			if c.Spec.Provider == "" {
				return "cluster(s) did not have provider property", nil
			}
		case policyv1alpha1.SpreadByFieldRegion:
			if c.Spec.Region == "" {
				return "cluster(s) did not have region property", nil
			}
		case policyv1alpha1.SpreadByFieldZone:
			if len(c.Spec.Zones) == 0 {
				return "cluster(s) did not have zones property", nil
			}
		}
	}
	return "", nil
}

// clusterEviction keeps a binding from going back to where it is being evicted
// from.
func clusterEviction(s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	leaves := func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == c.Name }
	if slices.ContainsFunc(s.Spec.GracefulEvictionTasks, leaves) {
		return "cluster(s) is in the process of eviction", nil
	}
	return "", nil
}

// taintToleration keeps new bindings from clusters with taints that they do not
// tolerate. Those that are there are for the taint manager to evict.
func taintToleration(s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	if s.has(c) {
		return "", nil
	}
	for i := range c.Spec.Taints {
		taint := &c.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, taint, false) }
		if !slices.ContainsFunc(s.Spec.Placement.ClusterTolerations, tolerates) {
			return fmt.Sprintf("cluster(s) had untolerated taint {%s}", taint.ToString()), nil
		}
	}
	return "", nil
}

// apiEnablement keeps new bindings from clusters that do not serve the
// template's kind, or do not say that they do. Where a template is, a failure of
// discovery must not remove it.
func apiEnablement(s Subject, c *clusterv1alpha1.Cluster) (string, error) {
	if s.has(c) || Serves(c, s.Spec.Resource) {
		return "", nil
	}
	return "cluster(s) did not have the API resource", nil
}

// Serves reports whether a cluster is known to serve the kind of a template.
func Serves(c *clusterv1alpha1.Cluster, ref workv1alpha2.ObjectReference) bool {
	for _, e := range c.Status.APIEnablements {
		if e.GroupVersion == ref.APIVersion {
			return slices.ContainsFunc(e.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == ref.Kind })
		}
	}
	return false
}
