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
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/clusterset"
)

// clusterAffinity lets through the clusters that the placement names. Clusters
// of overflow affinities take replicas, so they are for workloads only.
func clusterAffinity(s Subject) (Check, error) {
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
		return nil, nil
	}
	sets := make([]*clusterset.Set, 0, len(affinities))
	for _, a := range affinities {
		set, err := clusterset.Of(a)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return func(c *clusterv1alpha1.Cluster) string {
		for _, set := range sets {
			if set.Has(c) {
				return ""
			}
		}
		return "cluster(s) did not match the placement cluster affinity constraint"
	}, nil
}

// spreadConstraint leaves out clusters that are in no group of a kind that the
// placement spreads over.
func spreadConstraint(s Subject) (Check, error) {
	constraints := s.Spec.Placement.SpreadConstraints
	if len(constraints) == 0 {
		return nil, nil
	}
	return func(c *clusterv1alpha1.Cluster) string {
		for i := range constraints {
			if lacks := missingProperty(&constraints[i], c); lacks != "" {
				return "cluster(s) did not have " + lacks
			}
		}
		return ""
	}, nil
}

func missingProperty(by *policyv1alpha1.SpreadConstraint, c *clusterv1alpha1.Cluster) string {
	switch {
	case by.SpreadByLabel != "" && c.Labels[by.SpreadByLabel] == "":
		return "label " + by.SpreadByLabel
	case by.SpreadByField == policyv1alpha1.SpreadByFieldProvider && c.Spec.Provider == "":
		return "provider property"
	case by.SpreadByField == policyv1alpha1.SpreadByFieldRegion && c.Spec.Region == "":
		return "region property"
	case by.SpreadByField == policyv1alpha1.SpreadByFieldZone && len(c.Spec.Zones) == 0:
		return "zones property"
	}
	return ""
}

// clusterEviction keeps a binding from going back to where it is being evicted
// from.
func clusterEviction(s Subject) (Check, error) {
	if len(s.Spec.GracefulEvictionTasks) == 0 {
		return nil, nil
	}
	left := map[string]bool{}
	for _, t := range s.Spec.GracefulEvictionTasks {
		left[t.FromCluster] = true
	}
	return func(c *clusterv1alpha1.Cluster) string {
		if left[c.Name] {
			return "cluster(s) is in the process of eviction"
		}
		return ""
	}, nil
}

// taintToleration keeps new bindings from clusters with taints that they do not
// tolerate. Those that are there are for the taint manager to evict.
func taintToleration(s Subject) (Check, error) {
	tolerations := s.Spec.Placement.ClusterTolerations
	return func(c *clusterv1alpha1.Cluster) string {
		if len(c.Spec.Taints) == 0 || s.has(c) {
			return ""
		}
		for i := range c.Spec.Taints {
			taint := &c.Spec.Taints[i]
			if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
				continue
			}
			tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, taint, false) }
			if !slices.ContainsFunc(tolerations, tolerates) {
				return fmt.Sprintf("cluster(s) had untolerated taint {%s}", taint.ToString())
			}
		}
		return ""
	}, nil
}

// apiEnablement keeps new bindings from clusters that do not serve the
// template's kind, or do not say that they do. Where a template is, a failure of
// discovery must not remove it.
func apiEnablement(s Subject) (Check, error) {
	return func(c *clusterv1alpha1.Cluster) string {
		if s.has(c) || Serves(c, s.Spec.Resource) {
			return ""
		}
		return "cluster(s) did not have the API resource"
	}, nil
}

// Serves reports whether a cluster is known to serve the kind of a template.
func Serves(c *clusterv1alpha1.Cluster, ref workv1alpha2.ObjectReference) bool {
	for i := range c.Status.APIEnablements {
		e := &c.Status.APIEnablements[i]
		if e.GroupVersion == ref.APIVersion {
			return slices.ContainsFunc(e.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == ref.Kind })
		}
	}
	return false
}

// workloadAffinity keeps a workload with the others of its group.
func workloadAffinity(s Subject) (Check, error) {
	if s.Others == nil {
		return nil, nil
	}
	return s.unlessThere(s.Others.Together), nil
}

// workloadAntiAffinity keeps a workload apart from the others of its group.
func workloadAntiAffinity(s Subject) (Check, error) {
	if s.Others == nil {
		return nil, nil
	}
	return s.unlessThere(s.Others.Apart), nil
}

// unlessThere lets a binding stay where it is.
func (s Subject) unlessThere(refuse func(cluster string) string) Check {
	return func(c *clusterv1alpha1.Cluster) string {
		if s.has(c) {
			return ""
		}
		return refuse(c.Name)
	}
}
