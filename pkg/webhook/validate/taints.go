package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

func taintPolicies(allowNoExecute bool) rules[policyv1alpha1.ClusterTaintPolicy] {
	type policy = policyv1alpha1.ClusterTaintPolicy
	return plain(func(p *policy) any { return p.Spec }, func(p *policy) field.ErrorList {
		path := field.NewPath("spec")
		errs := affinity(p.Spec.TargetClusters, path.Child("targetClusters"))
		errs = append(errs, matchConditions(p.Spec.AddOnConditions, path.Child("addOnConditions"))...)
		errs = append(errs, matchConditions(p.Spec.RemoveOnConditions, path.Child("removeOnConditions"))...)
		return append(errs, policyTaints(p.Spec.Taints, allowNoExecute, path.Child("taints"))...)
	})
}

// policyTaints checks taints of a policy. They have to be such as a Cluster can
// have, or the policy would fail at every cluster.
func policyTaints(taints []policyv1alpha1.Taint, allowNoExecute bool, path *field.Path) field.ErrorList {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := sets.New[identity]()
	for i, t := range taints {
		path := path.Index(i)
		errs = append(errs, labelKey(t.Key, path.Child("key"))...)
		errs = append(errs, invalid(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		switch {
		case !slices.Contains(effects, t.Effect):
			errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, effects))
		case t.Effect == corev1.TaintEffectNoExecute && !allowNoExecute:
			errs = append(errs, field.Forbidden(path.Child("effect"),
				"the effect NoExecute makes workloads leave clusters: it is not allowed unless karmada-webhook is started with --allow-no-execute-taint-policy"))
		}
		if id := (identity{t.Key, t.Effect}); seen.Has(id) {
			errs = append(errs, field.Duplicate(path, t.Key+":"+string(t.Effect)))
		} else {
			seen.Insert(id)
		}
	}
	return errs
}

// matchConditions refuses a condition that can never hold, or holds for whatever
// status a cluster has.
func matchConditions(conditions []policyv1alpha1.MatchCondition, path *field.Path) field.ErrorList {
	operators := []policyv1alpha1.MatchConditionOperator{policyv1alpha1.MatchConditionOpIn, policyv1alpha1.MatchConditionOpNotIn}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	var errs field.ErrorList
	for i, c := range conditions {
		path := path.Index(i)
		if c.ConditionType == "" {
			errs = append(errs, field.Required(path.Child("conditionType"), "the type of a condition of clusters, such as Ready"))
		}
		if !slices.Contains(operators, c.Operator) {
			errs = append(errs, field.NotSupported(path.Child("operator"), c.Operator, operators))
		}
		if len(c.StatusValues) == 0 {
			errs = append(errs, field.Required(path.Child("statusValues"), "one or more of True, False and Unknown"))
		}
		for j, s := range c.StatusValues {
			if !slices.Contains(statuses, s) {
				errs = append(errs, field.NotSupported(path.Child("statusValues").Index(j), s, statuses))
			}
		}
	}
	return errs
}
