package pending

import (
	"encoding/json"
	"slices"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// counts returns how many units of a binding each target gets: replicas, or one
// set of components. What has neither takes no room.
func counts(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) map[string]int64 {
	all := make(map[string]int64, len(targets))
	for _, t := range targets {
		n := int64(t.Replicas)
		if len(spec.Components) > 0 {
			n = 1
		}
		if n > 0 {
			all[t.Name] = n
		}
	}
	return all
}

func unitOf(spec *workv1alpha2.ResourceBindingSpec) unit {
	if len(spec.Components) == 0 {
		one := part{count: 1}
		if spec.ReplicaRequirements != nil {
			one.request = spec.ReplicaRequirements.ResourceRequest
		}
		return unit{one}
	}
	var all unit
	for _, c := range spec.Components {
		p := part{count: int64(c.Replicas)}
		if c.ReplicaRequirements != nil {
			p.request = c.ReplicaRequirements.ResourceRequest
		}
		all = append(all, p)
	}
	return all
}

// exists reports whether a cluster has all that it was given of a binding, as far
// as what it told of it is known. Health alone may be that of what was there
// before; a count of replicas is not.
func exists(b binding.Object, cluster string) (exists, known bool) {
	spec, all := b.BindingSpec(), b.BindingStatus().AggregatedStatus
	i := slices.IndexFunc(all, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == cluster })
	if i < 0 {
		return false, false
	}
	item := all[i]
	if item.Health == workv1alpha2.ResourceUnknown || item.Health == "" {
		return false, false
	}
	healthy := item.Health == workv1alpha2.ResourceHealthy
	if len(spec.Components) > 0 || item.Status == nil {
		return healthy, true
	}
	var status struct {
		Replicas *int64 `json:"replicas"`
	}
	if err := json.Unmarshal(item.Status.Raw, &status); err != nil || status.Replicas == nil {
		return healthy, true
	}
	return *status.Replicas >= counts(spec, spec.Clusters)[cluster], true
}
