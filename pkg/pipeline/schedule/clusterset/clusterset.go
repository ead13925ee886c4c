// Package clusterset reads an affinity once and then says of many clusters whether
// it matches them. What it says is what policy.MatchesCluster does, except that an
// affinity which cannot be understood is an error whichever clusters there are.
package clusterset

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A Set is the clusters that an affinity matches. Nil is all of them.
type Set struct {
	excluded, named map[string]bool
	names           []string
	labels          labels.Selector
	fields          *policyv1alpha1.ClusterAffinity // nothing but the fields
}

// Of returns the clusters that an affinity matches; nil matches all.
func Of(a *policyv1alpha1.ClusterAffinity) (*Set, error) {
	if a == nil {
		return nil, nil
	}
	s := &Set{excluded: setOf(a.ExcludeClusters), named: setOf(a.ClusterNames), names: a.ClusterNames}
	if a.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("labelSelector: %w", err)
		}
		s.labels = selector
	}
	if a.FieldSelector != nil {
		if err := checkFields(a.FieldSelector.MatchExpressions); err != nil {
			return nil, err
		}
		s.fields = &policyv1alpha1.ClusterAffinity{FieldSelector: a.FieldSelector}
	}
	return s, nil
}

// checkFields looks at each expression by itself, because none is looked at after
// one that does not match.
func checkFields(expressions []corev1.NodeSelectorRequirement) error {
	for i := range expressions {
		one := &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: expressions[i : i+1]}}
		if _, err := policy.MatchesCluster(one, &clusterv1alpha1.Cluster{}); err != nil {
			return fmt.Errorf("fieldSelector.matchExpressions[%d]: %w", i, errors.Unwrap(err))
		}
	}
	return nil
}

func setOf(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// Has reports whether a cluster is in the set.
func (s *Set) Has(c *clusterv1alpha1.Cluster) bool {
	switch {
	case s == nil:
		return true
	case s.excluded[c.Name], s.named != nil && !s.named[c.Name]:
		return false
	case s.labels != nil && !s.labels.Matches(labels.Set(c.Labels)):
		return false
	case s.fields == nil:
		return true
	}
	ok, err := policy.MatchesCluster(s.fields, c)
	return ok && err == nil // no error: they have been checked
}

// Names returns the names of which alone it can be; none: any name can.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return s.names
}
