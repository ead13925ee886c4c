package validate

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
)

const (
	// longestWindow is the longest stabilization window, longestPeriod the longest
	// period of a scaling policy, both in seconds (as of autoscaling/v2).
	longestWindow = 3600
	longestPeriod = 1800
)

const notNegative = "must be greater than or equal to 0"
const positive = "must be greater than 0"

// autoscalers are the rules of a HorizontalPodAutoscaler of autoscaling/v2 (spec:
// behaviour/08 8.3).
func autoscalers() rules[autoscalingv1alpha1.FederatedHPA] {
	type autoscaler = autoscalingv1alpha1.FederatedHPA
	r := plain(func(a *autoscaler) any { return a.Spec }, func(a *autoscaler) field.ErrorList {
		return autoscalerSpec(&a.Spec, field.NewPath("spec"))
	})
	r.quantities = []string{"value", "averageValue", "tolerance"}
	return r
}

func autoscalerSpec(s *autoscalingv1alpha1.FederatedHPASpec, path *field.Path) field.ErrorList {
	errs := scaleTarget(s.ScaleTargetRef, path.Child("scaleTargetRef"))
	if s.MinReplicas != nil && *s.MinReplicas < 1 {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), *s.MinReplicas, "must be greater than or equal to 1"))
	}
	switch {
	case s.MaxReplicas < 1:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), s.MaxReplicas, positive))
	case s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	for i := range s.Metrics {
		errs = append(errs, metric(&s.Metrics[i], path.Child("metrics").Index(i))...)
	}
	if b := s.Behavior; b != nil {
		errs = append(errs, scalingRules(b.ScaleUp, path.Child("behavior", "scaleUp"))...)
		errs = append(errs, scalingRules(b.ScaleDown, path.Child("behavior", "scaleDown"))...)
	}
	return errs
}

func scaleTarget(r autoscalingv2.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	return append(segment(r.Kind, path.Child("kind")), segment(r.Name, path.Child("name"))...)
}

// metric checks that a metric has the one source that its type says.
func metric(m *autoscalingv2.MetricSpec, path *field.Path) field.ErrorList {
	types := []autoscalingv2.MetricSourceType{
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
		autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
	}
	sources := map[autoscalingv2.MetricSourceType]struct {
		name  string
		set   bool
		check func(*field.Path) field.ErrorList
	}{
		autoscalingv2.ObjectMetricSourceType:            {"object", m.Object != nil, func(p *field.Path) field.ErrorList { return objectMetric(m.Object, p) }},
		autoscalingv2.PodsMetricSourceType:              {"pods", m.Pods != nil, func(p *field.Path) field.ErrorList { return podsMetric(m.Pods, p) }},
		autoscalingv2.ResourceMetricSourceType:          {"resource", m.Resource != nil, func(p *field.Path) field.ErrorList { return resourceMetric(m.Resource, p) }},
		autoscalingv2.ContainerResourceMetricSourceType: {"containerResource", m.ContainerResource != nil, func(p *field.Path) field.ErrorList { return containerMetric(m.ContainerResource, p) }},
		autoscalingv2.ExternalMetricSourceType:          {"external", m.External != nil, func(p *field.Path) field.ErrorList { return externalMetric(m.External, p) }},
	}
	var errs field.ErrorList
	switch _, known := sources[m.Type]; {
	case m.Type == "":
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric source type"))
	case !known:
		errs = append(errs, field.NotSupported(path.Child("type"), m.Type, types))
	}
	for _, t := range types {
		source := sources[t]
		path := path.Child(source.name)
		switch {
		case source.set && t != m.Type:
			errs = append(errs, field.Forbidden(path, "must not be set, the type of the metric is another"))
		case source.set:
			errs = append(errs, source.check(path)...)
		case t == m.Type:
			errs = append(errs, field.Required(path, "must populate information for the given metric source"))
		}
	}
	return errs
}

func objectMetric(m *autoscalingv2.ObjectMetricSource, path *field.Path) field.ErrorList {
	errs := scaleTarget(m.DescribedObject, path.Child("describedObject"))
	errs = append(errs, metricIdentifier(m.Metric, path.Child("metric"))...)
	errs = append(errs, metricTarget(m.Target, path.Child("target"))...)
	return append(errs, oneOf(path.Child("target"), "value", m.Target.Value != nil, "averageValue", m.Target.AverageValue != nil)...)
}

func externalMetric(m *autoscalingv2.ExternalMetricSource, path *field.Path) field.ErrorList {
	errs := metricIdentifier(m.Metric, path.Child("metric"))
	errs = append(errs, metricTarget(m.Target, path.Child("target"))...)
	return append(errs, oneOf(path.Child("target"), "value", m.Target.Value != nil, "averageValue", m.Target.AverageValue != nil)...)
}

func podsMetric(m *autoscalingv2.PodsMetricSource, path *field.Path) field.ErrorList {
	errs := metricIdentifier(m.Metric, path.Child("metric"))
	errs = append(errs, metricTarget(m.Target, path.Child("target"))...)
	if m.Target.AverageValue == nil {
		errs = append(errs, field.Required(path.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func resourceMetric(m *autoscalingv2.ResourceMetricSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	}
	return append(errs, resourceTarget(m.Target, path.Child("target"))...)
}

func containerMetric(m *autoscalingv2.ContainerResourceMetricSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must specify a resource name"))
	}
	errs = append(errs, segment(m.Container, path.Child("container"))...)
	return append(errs, resourceTarget(m.Target, path.Child("target"))...)
}

func resourceTarget(t autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	errs := metricTarget(t, path)
	return append(errs, oneOf(path, "averageUtilization", t.AverageUtilization != nil, "averageValue", t.AverageValue != nil)...)
}

// oneOf says that exactly one of two fields must be set.
func oneOf(path *field.Path, a string, hasA bool, b string, hasB bool) field.ErrorList {
	switch {
	case hasA && hasB:
		return field.ErrorList{field.Forbidden(path.Child(b), fmt.Sprintf("may not set both %s and %s", a, b))}
	case !hasA && !hasB:
		return field.ErrorList{field.Required(path.Child(a), fmt.Sprintf("must set either %s or %s", a, b))}
	}
	return nil
}

func metricIdentifier(m autoscalingv2.MetricIdentifier, path *field.Path) field.ErrorList {
	return append(segment(m.Name, path.Child("name")), labelSelector(m.Selector, path.Child("selector"))...)
}

func metricTarget(t autoscalingv2.MetricTarget, path *field.Path) field.ErrorList {
	types := []autoscalingv2.MetricTargetType{autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType}
	var errs field.ErrorList
	switch {
	case t.Type == "":
		errs = append(errs, field.Required(path.Child("type"), "must specify a metric target type"))
	case !slices.Contains(types, t.Type):
		errs = append(errs, field.NotSupported(path.Child("type"), t.Type, types))
	}
	if t.Value != nil && t.Value.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if u := t.AverageUtilization; u != nil && *u < 1 {
		errs = append(errs, field.Invalid(path.Child("averageUtilization"), *u, positive))
	}
	return errs
}

func scalingRules(r *autoscalingv2.HPAScalingRules, path *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	selects := []autoscalingv2.ScalingPolicySelect{autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect}
	types := []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		switch path := path.Child("stabilizationWindowSeconds"); {
		case *w < 0:
			errs = append(errs, field.Invalid(path, *w, notNegative))
		case *w > longestWindow:
			errs = append(errs, field.Invalid(path, *w, fmt.Sprintf("must be less than or equal to %d", longestWindow)))
		}
	}
	if r.SelectPolicy != nil && !slices.Contains(selects, *r.SelectPolicy) {
		errs = append(errs, field.NotSupported(path.Child("selectPolicy"), *r.SelectPolicy, selects))
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("tolerance"), r.Tolerance.String(), notNegative))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(path.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		path := path.Child("policies").Index(i)
		if !slices.Contains(types, p.Type) {
			errs = append(errs, field.NotSupported(path.Child("type"), p.Type, types))
		}
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(path.Child("value"), p.Value, positive))
		}
		switch {
		case p.PeriodSeconds <= 0:
			errs = append(errs, field.Invalid(path.Child("periodSeconds"), p.PeriodSeconds, positive))
		case p.PeriodSeconds > longestPeriod:
			errs = append(errs, field.Invalid(path.Child("periodSeconds"), p.PeriodSeconds, fmt.Sprintf("must be less than or equal to %d", longestPeriod)))
		}
	}
	return errs
}
