package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// MatchesCluster says whether an affinity matches a cluster; nil matches every
// one (spec: behaviour/04 4.6). The error is a selector that cannot be parsed,
// which matches no cluster. An excluded cluster, or one that is not named where
// names are, does not match, whatever the selectors are like.
func MatchesCluster(a *policyv1alpha1.ClusterAffinity, c *clusterv1alpha1.Cluster) (bool, error) {
	if a == nil {
		return true, nil
	}
	if slices.Contains(a.ExcludeClusters, c.Name) {
		return false, nil
	}
	if len(a.ClusterNames) > 0 && !slices.Contains(a.ClusterNames, c.Name) {
		return false, nil
	}
	if a.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			return false, fmt.Errorf("labelSelector: %w", err)
		}
		if !selector.Matches(labels.Set(c.Labels)) {
			return false, nil
		}
	}
	if a.FieldSelector == nil {
		return true, nil
	}
	for i, r := range a.FieldSelector.MatchExpressions {
		ok, err := matchesField(r, c)
		if err != nil {
			return false, fmt.Errorf("fieldSelector.matchExpressions[%d]: %w", i, err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// matchesField says whether one field of a cluster is as required. A field that
// is empty is absent: NotIn and DoesNotExist hold for it.
func matchesField(r corev1.NodeSelectorRequirement, c *clusterv1alpha1.Cluster) (bool, error) {
	var have []string
	switch r.Key {
	case "provider":
		have = present(c.Spec.Provider)
	case "region":
		have = present(c.Spec.Region)
	case "zone":
		have = c.Spec.Zones
	default:
		return false, fmt.Errorf("unsupported key %q, must be provider, region, or zone", r.Key)
	}

	listed := func(v string) bool { return slices.Contains(r.Values, v) }
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return false, fmt.Errorf("operator %s needs values", r.Operator)
		}
		return slices.ContainsFunc(have, listed) == (r.Operator == corev1.NodeSelectorOpIn), nil
	case corev1.NodeSelectorOpExists:
		return len(have) > 0, nil
	case corev1.NodeSelectorOpDoesNotExist:
		return len(have) == 0, nil
	default:
		return false, fmt.Errorf("unsupported operator %q, must be In or NotIn", r.Operator)
	}
}

func present(v string) []string {
	if v == "" {
		return nil
	}
	return []string{v}
}
