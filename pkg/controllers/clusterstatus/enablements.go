package clusterstatus

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// enablements turns what a member serves into what the status says of it, and
// keeps of what was known before, if anything, all that could not be found out
// this time: nothing is taken for gone because it was not seen. Sorted, without
// sub-resources (spec: behaviour/02 2.2).
func enablements(s served, before []clusterv1alpha1.APIEnablement) []clusterv1alpha1.APIEnablement {
	var all []clusterv1alpha1.APIEnablement
	for gv, resources := range s.resources {
		if _, failed := s.failed[gv]; !failed {
			all = append(all, enablement(gv, resources))
		}
	}
	for _, e := range before {
		gv, err := schema.ParseGroupVersion(e.GroupVersion)
		if err == nil && s.missed(gv) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b clusterv1alpha1.APIEnablement) int { return cmp.Compare(a.GroupVersion, b.GroupVersion) })
	return all
}

func enablement(gv schema.GroupVersion, resources []apiResource) clusterv1alpha1.APIEnablement {
	e := clusterv1alpha1.APIEnablement{GroupVersion: gv.String()}
	for _, r := range resources {
		e.Resources = append(e.Resources, r.Value())
	}
	return e
}

// missed says whether a group and version may exist although it was not found.
func (s served) missed(gv schema.GroupVersion) bool {
	if _, failed := s.failed[gv]; failed {
		return true
	}
	if _, found := s.resources[gv]; found {
		return false
	}
	for r := range s.unknown {
		if r.holds(gv) {
			return true
		}
	}
	return false
}

// completeness says whether the list of what a member serves is all of it.
func completeness(s served, listed int) metav1.Condition {
	c := metav1.Condition{Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: metav1.ConditionFalse}
	switch {
	case len(s.resources) == 0:
		c.Reason = clusterv1alpha1.ReasonEmptyAPIEnablements
		c.Message = "collected empty APIEnablements from the cluster"
	case s.err() != nil:
		c.Reason = clusterv1alpha1.ReasonPartialAPIEnablements
		c.Message = fmt.Sprintf("might collect partial APIEnablements(%d) from the cluster", listed)
	default:
		c.Status = metav1.ConditionTrue
		c.Reason = clusterv1alpha1.ReasonCompleteAPIEnablements
		c.Message = "collected complete APIEnablements from the cluster"
	}
	return c
}
