package clusterstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus/usage"
)

// Findings are what was found out about a member in one look.
type findings struct {
	ready metav1.Condition
	// details is nil when the member was not asked for more.
	details *details
}

type details struct {
	version string // "" is not known
	served  served
	// summed says whether nodes and pods are summed up at all; usage is nil when
	// not all of them have been seen yet.
	summed bool
	usage  *usage.Summary
}

// apply brings a status up to date. What is not known stays as it is, and so
// does what others write: their conditions, the remedy actions.
func (f findings) apply(status *clusterv1alpha1.ClusterStatus, now metav1.Time) {
	set := func(c metav1.Condition) {
		c.LastTransitionTime = now // kept unless the status changes
		meta.SetStatusCondition(&status.Conditions, c)
	}
	set(f.ready)
	d := f.details
	if d == nil {
		return
	}
	if d.version != "" {
		status.KubernetesVersion = d.version
	}
	if list := enablements(d.served, status.APIEnablements); len(d.served.resources) > 0 {
		status.APIEnablements = list
	}
	set(completeness(d.served, len(status.APIEnablements)))
	switch {
	case !d.summed:
		status.NodeSummary, status.ResourceSummary = nil, nil
	case d.usage != nil:
		nodes, resources := d.usage.Nodes, d.usage.Resources
		resources.AllocatableModelings = slices.Clone(resources.AllocatableModelings)
		status.NodeSummary, status.ResourceSummary = &nodes, &resources
	}
}
