package clusterstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus/usage"
)

func sums(cpu string) *usage.Summary {
	return &usage.Summary{
		Nodes:     clusterv1alpha1.NodeSummary{TotalNum: 2, ReadyNum: 1},
		Resources: clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}
}

// full is a status with everything in it, some of it from others.
func full() clusterv1alpha1.ClusterStatus {
	old := metav1.NewTime(epoch.Add(-1e12))
	ready, complete := clusterReady(), completeness(wholly(), 1)
	ready.LastTransitionTime, complete.LastTransitionTime = old, old
	s := sums("8")
	return clusterv1alpha1.ClusterStatus{
		KubernetesVersion: "v1.37.2",
		APIEnablements:    enablements(wholly(), nil),
		Conditions:        []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionTrue}, ready, complete},
		NodeSummary:       &s.Nodes, ResourceSummary: &s.Resources,
		RemedyActions: []string{"TrafficControl"},
	}
}

func TestApply(t *testing.T) {
	now := metav1.NewTime(epoch)
	cases := map[string]struct {
		reason string
		found  findings
		change func(*clusterv1alpha1.ClusterStatus)
	}{
		"Steady": {
			"The same again changes nothing, times included.",
			findings{clusterReady(), &details{version: "v1.37.2", served: wholly(), summed: true, usage: sums("8")}},
			func(*clusterv1alpha1.ClusterStatus) {},
		},
		"Down": {
			"Only the readiness changes when that is all there is to know.",
			findings{ready: clusterNotReachable()},
			func(s *clusterv1alpha1.ClusterStatus) {
				s.Conditions[1] = clusterNotReachable()
				s.Conditions[1].LastTransitionTime = now
			},
		},
		"OtherWords": {
			"The time is that of the last change of the status, not of its reason.",
			findings{ready: metav1.Condition{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Other"}},
			func(s *clusterv1alpha1.ClusterStatus) { s.Conditions[1].Reason, s.Conditions[1].Message = "Other", "" },
		},
		"NothingFoundOut": {
			"What could not be found out stays as it was; only the condition says so.",
			findings{clusterReady(), &details{served: served{}.with(errBoom), summed: true}},
			func(s *clusterv1alpha1.ClusterStatus) {
				s.Conditions[2] = completeness(served{}, 0)
				s.Conditions[2].LastTransitionTime = now
			},
		},
		"Partly": {
			"A complete list is not shortened by a group that does not answer.",
			findings{clusterReady(), &details{version: "v1.37.2", served: serving().fails("v1").withGroup("apps/v1"), summed: true, usage: sums("8")}},
			func(s *clusterv1alpha1.ClusterStatus) {
				s.APIEnablements = enablements(serving("v1=pods:Pod", "apps/v1="), nil)
				s.Conditions[2] = completeness(partly(), 2)
				s.Conditions[2].LastTransitionTime = now
			},
		},
		"NewSums": {
			"What the nodes come to now.",
			findings{clusterReady(), &details{version: "v1.38.0", served: wholly(), summed: true, usage: sums("16")}},
			func(s *clusterv1alpha1.ClusterStatus) {
				s.KubernetesVersion = "v1.38.0"
				s.ResourceSummary = &sums("16").Resources
			},
		},
		"NoModeling": {
			"Sums that nobody keeps up to date are taken off.",
			findings{clusterReady(), &details{version: "v1.37.2", served: wholly()}},
			func(s *clusterv1alpha1.ClusterStatus) { s.NodeSummary, s.ResourceSummary = nil, nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, got := full(), full()
			tc.change(&want)
			tc.found.apply(&got, now)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// with says that nothing could be found out.
func (s served) with(err error) served {
	s.unknown = map[root]error{coreRoot: err, groupsRoot: err}
	return s
}

// withGroup adds a group without resources.
func (s served) withGroup(name string) served {
	s.resources[gv(name)] = nil
	return s
}
