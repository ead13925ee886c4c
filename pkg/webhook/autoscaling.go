package webhook

import (
	"cmp"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
)

// What a HorizontalPodAutoscaler of autoscaling/v2 has when nothing is said
// (spec: behaviour/08 8.2). Periods are in seconds.
const (
	minReplicas       = 1
	cpuUtilization    = 80 // percent of what is requested
	scalingPeriod     = 15
	scaleUpPods       = 4   // in one period
	scalePercent      = 100 // in one period, up and down
	scaleUpStabilized = 0   // seconds
)

// FederatedHPA fills in what a HorizontalPodAutoscaler would have.
func (d Defaults) FederatedHPA(_, h *autoscalingv1alpha1.FederatedHPA) error {
	s := &h.Spec
	if s.MinReplicas == nil {
		s.MinReplicas = new(int32(minReplicas))
	}
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(cpuUtilization))},
			},
		}}
	}
	if b := s.Behavior; b != nil {
		b.ScaleUp = orRules(b.ScaleUp, autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: new(int32(scaleUpStabilized)),
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PodsScalingPolicy, Value: scaleUpPods, PeriodSeconds: scalingPeriod},
				{Type: autoscalingv2.PercentScalingPolicy, Value: scalePercent, PeriodSeconds: scalingPeriod},
			},
		})
		// Without a window of its own it is that of whoever scales.
		b.ScaleDown = orRules(b.ScaleDown, autoscalingv2.HPAScalingRules{
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PercentScalingPolicy, Value: scalePercent, PeriodSeconds: scalingPeriod},
			},
		})
	}
	return nil
}

// orRules fills in what scaling rules leave out. An empty list of policies is
// said, not left out: it is refused later.
func orRules(r *autoscalingv2.HPAScalingRules, otherwise autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	if r == nil {
		r = &autoscalingv2.HPAScalingRules{}
	}
	r.SelectPolicy = cmp.Or(r.SelectPolicy, new(autoscalingv2.MaxChangePolicySelect))
	r.StabilizationWindowSeconds = cmp.Or(r.StabilizationWindowSeconds, otherwise.StabilizationWindowSeconds)
	if r.Policies == nil {
		r.Policies = otherwise.Policies
	}
	return r
}
