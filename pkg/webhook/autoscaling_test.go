package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
)

func TestFederatedHPA(t *testing.T) {
	type (
		spec     = autoscalingv1alpha1.FederatedHPASpec
		behavior = autoscalingv2.HorizontalPodAutoscalerBehavior
		rules    = autoscalingv2.HPAScalingRules
		policies = []autoscalingv2.HPAScalingPolicy
	)
	most := new(autoscalingv2.MaxChangePolicySelect)
	cpu := []autoscalingv2.MetricSpec{{
		Type: "Resource",
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: "cpu", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: new(int32(80))},
		},
	}}
	memory := []autoscalingv2.MetricSpec{{
		Type: "Resource",
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: "memory", Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: new(resource.MustParse("1Gi"))},
		},
	}}
	up := &rules{
		SelectPolicy: most, StabilizationWindowSeconds: new(int32(0)),
		Policies: policies{{Type: "Pods", Value: 4, PeriodSeconds: 15}, {Type: "Percent", Value: 100, PeriodSeconds: 15}},
	}
	down := &rules{SelectPolicy: most, Policies: policies{{Type: "Percent", Value: 100, PeriodSeconds: 15}}}
	cases := map[string]struct {
		reason     string
		spec, want spec
	}{
		"Empty": {
			reason: "One replica is the least, and cpu is what counts. How fast is for whoever scales to say.",
			spec:   spec{MaxReplicas: 3},
			want:   spec{MaxReplicas: 3, MinReplicas: new(int32(1)), Metrics: cpu},
		},
		"Said": {
			reason: "What is there stays, a least of none included: it is refused later.",
			spec:   spec{MaxReplicas: 3, MinReplicas: new(int32(0)), Metrics: memory},
			want:   spec{MaxReplicas: 3, MinReplicas: new(int32(0)), Metrics: memory},
		},
		"NoMetrics": {
			reason: "An empty list says nothing.",
			spec:   spec{MinReplicas: new(int32(2)), Metrics: []autoscalingv2.MetricSpec{}},
			want:   spec{MinReplicas: new(int32(2)), Metrics: cpu},
		},
		"EmptyBehavior": {
			reason: "With a behavior both directions are filled in.",
			spec:   spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{}},
			want:   spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{ScaleUp: up, ScaleDown: down}},
		},
		"OneDirection": {
			reason: "The other direction is filled in, and what is left out of this one.",
			spec:   spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{ScaleDown: &rules{StabilizationWindowSeconds: new(int32(60))}}},
			want: spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{
				ScaleUp: up, ScaleDown: &rules{SelectPolicy: most, StabilizationWindowSeconds: new(int32(60)), Policies: down.Policies},
			}},
		},
		"OwnRules": {
			reason: "Policies are not mixed with others, and a tolerance stays.",
			spec: spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{
				ScaleUp: &rules{
					SelectPolicy: new(autoscalingv2.DisabledPolicySelect), StabilizationWindowSeconds: new(int32(5)), Tolerance: new(resource.MustParse("0.2")),
					Policies: policies{{Type: "Pods", Value: 1, PeriodSeconds: 60}},
				},
				ScaleDown: down.DeepCopy(),
			}},
			want: spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{
				ScaleUp: &rules{
					SelectPolicy: new(autoscalingv2.DisabledPolicySelect), StabilizationWindowSeconds: new(int32(5)), Tolerance: new(resource.MustParse("0.2")),
					Policies: policies{{Type: "Pods", Value: 1, PeriodSeconds: 60}},
				},
				ScaleDown: down,
			}},
		},
		"NoPolicies": {
			reason: "A list of none is said: the user learns that it needs one.",
			spec:   spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{ScaleUp: &rules{Policies: policies{}}, ScaleDown: down.DeepCopy()}},
			want: spec{MinReplicas: new(int32(1)), Metrics: cpu, Behavior: &behavior{
				ScaleUp: &rules{SelectPolicy: most, StabilizationWindowSeconds: new(int32(0)), Policies: policies{}}, ScaleDown: down,
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := &autoscalingv1alpha1.FederatedHPA{Spec: *c.spec.DeepCopy()}
			if err := fixed().FederatedHPA(nil, h); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, h.Spec); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
			again := h.DeepCopy()
			if err := fixed().FederatedHPA(h, again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h, again); diff != "" {
				t.Errorf("once is enough (-once +twice):\n%s", diff)
			}
		})
	}
}
