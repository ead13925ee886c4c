package estimate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// spec: behaviour/14 14.11, and beyond.
func TestReplicas(t *testing.T) {
	summary := &clusterv1alpha1.ResourceSummary{
		Allocatable: list("cpu", "8", "pods", "110", "memory", "10Gi"), Allocated: list("cpu", "2", "pods", "20"), Allocating: list("cpu", "1", "pods", "5"),
	}
	modelled := summary.DeepCopy()
	modelled.AllocatableModelings = []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 5}, {Grade: 1, Count: 2}, {Grade: 2, Count: 1}, {Grade: 7, Count: 9}}
	class := func(grade int32, cpu, memory string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: "cpu", Min: resource.MustParse(cpu)}, {Name: "memory", Min: resource.MustParse(memory)},
		}}
	}
	models := []clusterv1alpha1.ResourceModel{class(0, "0", "0"), class(1, "1", "4Gi"), class(2, "2", "16Gi")}
	need := func(pairs ...string) *workv1alpha2.ReplicaRequirements {
		return &workv1alpha2.ReplicaRequirements{ResourceRequest: list(pairs...)}
	}
	cases := map[string]struct {
		reason  string
		summary *clusterv1alpha1.ResourceSummary
		models  []clusterv1alpha1.ResourceModel
		off     bool // the gate
		need    *workv1alpha2.ReplicaRequirements
		want    int64
	}{
		"CPU":            {reason: "(8-2-1)/0.5 is less than the places for pods.", summary: summary, need: need("cpu", "500m"), want: 10},
		"Unknown":        {reason: "What the cluster does not offer it has no room for.", summary: summary, need: need("gpu", "1"), want: 0},
		"NoRequirements": {reason: "A replica takes a place for a pod.", summary: summary, want: 85},
		"NoRequest":      {reason: "The same for requirements that ask for nothing.", summary: summary, need: need("cpu", "0"), want: 85},
		"Least":          {reason: "The scarcest resource decides.", summary: summary, need: need("cpu", "100m", "memory", "3Gi"), want: 3},
		"Overcommitted": {
			reason: "There is no less than no room.", need: need("cpu", "1"), want: 0,
			summary: &clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "1", "pods", "10"), Allocated: list("cpu", "2")},
		},
		"NoSummary":        {reason: "A cluster that says nothing has no room.", need: need("cpu", "1"), want: 0},
		"Models":           {reason: "1+1+2; nodes of class 0, and of classes nobody knows, count for nothing.", summary: modelled, models: models, need: need("cpu", "1"), want: 4},
		"ModelsOff":        {reason: "Without the gate the sum counts.", summary: modelled, models: models, off: true, need: need("cpu", "1"), want: 5},
		"ModelsMissing":    {reason: "Without models to read them by the sum counts.", summary: modelled, need: need("cpu", "1"), want: 5},
		"ModelsLackThat":   {reason: "What models do not tell of fits into no node.", summary: modelled, models: models, need: need("gpu", "1"), want: 0},
		"ModelsBothNeeded": {reason: "All of it must be on one node.", summary: modelled, models: models, need: need("cpu", "1", "memory", "8Gi"), want: 2},
		"ModelsAndPods":    {reason: "Places for pods are the limit there, too.", summary: modelled, models: models, need: need("cpu", "1m"), want: 85},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{}
			c.Spec.ResourceModels, c.Status.ResourceSummary = tc.models, tc.summary
			if got := Replicas(c, tc.need, !tc.off); got != tc.want {
				t.Errorf("got %d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}
