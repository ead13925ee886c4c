package validate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

func propagationPolicies() rules[policyv1alpha1.PropagationPolicy] {
	type policy = policyv1alpha1.PropagationPolicy
	r := plain(func(p *policy) any { return p.Spec }, func(p *policy) field.ErrorList {
		return append(identified(p, names.PropagationPolicyIDLabel), propagationSpec(&p.Spec, p.Namespace)...)
	})
	r.change = func(was, now *policy) field.ErrorList {
		if was == nil {
			return nil
		}
		return policyChange(was, now, &was.Spec, &now.Spec, names.PropagationPolicyIDLabel)
	}
	return r
}

func clusterPropagationPolicies() rules[policyv1alpha1.ClusterPropagationPolicy] {
	type policy = policyv1alpha1.ClusterPropagationPolicy
	r := plain(func(p *policy) any { return p.Spec }, func(p *policy) field.ErrorList {
		return append(identified(p, names.ClusterPropagationPolicyIDLabel), propagationSpec(&p.Spec, "")...)
	})
	r.change = func(was, now *policy) field.ErrorList {
		if was == nil {
			return nil
		}
		return policyChange(was, now, &was.Spec, &now.Spec, names.ClusterPropagationPolicyIDLabel)
	}
	return r
}

// identified says that a policy needs an identity. The defaults give it one.
func identified(p client.Object, label string) field.ErrorList {
	if p.GetLabels()[label] != "" {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("metadata", "labels").Key(label),
		"the identity by which objects know their policy; the control plane's own mutating webhook sets it")}
}

// policyChange checks what must stay as it is.
func policyChange(was, now client.Object, wasSpec, nowSpec *policyv1alpha1.PropagationSpec, label string) field.ErrorList {
	var errs field.ErrorList
	// Who leaves the scheduler out means the default one, as the schema does.
	if scheduler(wasSpec) != scheduler(nowSpec) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "schedulerName"), nowSpec.SchedulerName, "the schedulerName should not be updated"))
	}
	if err := unchangeable(was, now, label); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func scheduler(s *policyv1alpha1.PropagationSpec) string {
	return cmp.Or(s.SchedulerName, policyv1alpha1.DefaultSchedulerName)
}

// propagationSpec checks what both scopes of policy have in common (spec:
// behaviour/08 8.3). The namespace is that of the policy, empty for a
// cluster-scoped one.
func propagationSpec(s *policyv1alpha1.PropagationSpec, namespace string) field.ErrorList {
	path := field.NewPath("spec")
	errs := selectors(s.ResourceSelectors, namespace, path.Child("resourceSelectors"))
	if s.Preemption == policyv1alpha1.PreemptAlways {
		for i, r := range s.ResourceSelectors {
			if r.Name == "" {
				errs = append(errs, field.Required(path.Child("resourceSelectors").Index(i).Child("name"),
					"with preemption Always every selector must name the one resource that it takes from other policies"))
			}
		}
	}
	errs = append(errs, placement(&s.Placement, path.Child("placement"))...)
	errs = append(errs, failover(s, path)...)
	return append(errs, suspension(s.Suspension, path.Child("suspension"))...)
}

func placement(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.ClusterAffinity != nil && len(p.ClusterAffinities) > 0 {
		var terms []string
		for _, t := range p.ClusterAffinities {
			terms = append(terms, t.AffinityName)
		}
		errs = append(errs, field.Invalid(path.Child("clusterAffinities"), terms, "clusterAffinities cannot co-exist with clusterAffinity"))
	}
	errs = append(errs, affinity(p.ClusterAffinity, path.Child("clusterAffinity"))...)
	errs = append(errs, affinityTerms(p, path.Child("clusterAffinities"))...)
	errs = append(errs, tolerations(p.ClusterTolerations, path.Child("clusterTolerations"))...)
	errs = append(errs, spreadConstraints(p.SpreadConstraints, path.Child("spreadConstraints"))...)
	if r := p.ReplicaScheduling; r != nil && r.WeightPreference != nil {
		for i, w := range r.WeightPreference.StaticWeightList {
			errs = append(errs, affinity(&w.TargetCluster, path.Child("replicaScheduling", "weightPreference", "staticWeightList").Index(i).Child("targetCluster"))...)
		}
	}
	return append(errs, workloadAffinity(p.WorkloadAffinity, path.Child("workloadAffinity"))...)
}

// affinityTerms checks groups of clusters, and those that take what does not fit
// in them.
func affinityTerms(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	const unique = "each affinity term in a policy must have a unique name"
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, t := range p.ClusterAffinities {
		path := path.Index(i)
		errs = append(errs, labelKey(t.AffinityName, path.Child("affinityName"))...)
		if seen.Has(t.AffinityName) {
			errs = append(errs, field.Invalid(path.Child("affinityName"), t.AffinityName, unique))
		}
		seen.Insert(t.AffinityName)
		errs = append(errs, affinity(&t.ClusterAffinity, path)...)

		if len(t.OverflowAffinities) == 0 {
			continue
		}
		over := path.Child("overflowAffinities")
		if !overflows(p.ReplicaScheduling) {
			errs = append(errs, field.Forbidden(over, "only replicas that are divided by aggregation or by dynamic weight can overflow: set replicaScheduling accordingly"))
		}
		if isEmpty(&t.ClusterAffinity) {
			errs = append(errs, field.Required(path, "a term with overflowAffinities must say which clusters are its own, by labelSelector, fieldSelector, clusterNames or exclude: without them every cluster is"))
		}
		inTerm := sets.New(t.AffinityName)
		for j, o := range t.OverflowAffinities {
			path := over.Index(j)
			errs = append(errs, labelKey(o.AffinityName, path.Child("affinityName"))...)
			if inTerm.Has(o.AffinityName) {
				errs = append(errs, field.Invalid(path.Child("affinityName"), o.AffinityName, unique))
			}
			inTerm.Insert(o.AffinityName)
			errs = append(errs, affinity(&o.ClusterAffinity, path)...)
		}
	}
	return errs
}

// overflows says whether what does not fit is known, so that it can go elsewhere.
func overflows(r *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if r == nil || r.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated {
		return false
	}
	if r.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated {
		return true
	}
	return r.WeightPreference != nil && r.WeightPreference.DynamicWeight != ""
}

// tolerations refuses what no taint of a cluster is ever tolerated by.
func tolerations(ts []corev1.Toleration, path *field.Path) field.ErrorList {
	operators := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	var errs field.ErrorList
	for i, t := range ts {
		path := path.Index(i)
		if t.Operator != "" && !slices.Contains(operators, t.Operator) {
			errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator, operators))
		}
		if t.Effect != "" && !slices.Contains(effects, t.Effect) {
			errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, effects))
		}
	}
	return errs
}

func spreadConstraints(cs []policyv1alpha1.SpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	fields := sets.New[policyv1alpha1.SpreadFieldValue]()
	for i, c := range cs {
		path := path.Index(i)
		if c.SpreadByField != "" && c.SpreadByLabel != "" {
			errs = append(errs, field.Invalid(path, fmt.Sprintf("%s, %s", c.SpreadByField, c.SpreadByLabel), "spreadByLabel should not co-exist with spreadByField"))
		}
		if c.MinGroups < 0 {
			errs = append(errs, field.Invalid(path.Child("minGroups"), c.MinGroups, "minGroups lower than 0 is not allowed"))
		}
		switch {
		case c.MaxGroups < 0:
			errs = append(errs, field.Invalid(path.Child("maxGroups"), c.MaxGroups, "maxGroups lower than 0 is not allowed"))
		case c.MaxGroups > 0 && c.MaxGroups < c.MinGroups:
			errs = append(errs, field.Invalid(path.Child("maxGroups"), c.MaxGroups, "maxGroups lower than minGroups is not allowed"))
		}
		if c.SpreadByField == "" {
			continue
		}
		if fields.Has(c.SpreadByField) {
			errs = append(errs, field.Invalid(path.Child("spreadByField"), string(c.SpreadByField), fmt.Sprintf("multiple %s spread constraints are not allowed", c.SpreadByField)))
		}
		fields.Insert(c.SpreadByField)
	}
	if fields.Len() > 0 && !fields.Has(policyv1alpha1.SpreadByFieldCluster) {
		errs = append(errs, field.Invalid(path, sets.List(fields),
			"the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"))
	}
	return errs
}

func workloadAffinity(a *policyv1alpha1.WorkloadAffinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if a.Affinity != nil {
		errs = append(errs, labelKey(a.Affinity.GroupByLabelKey, path.Child("affinity", "groupByLabelKey"))...)
	}
	if a.AntiAffinity != nil {
		errs = append(errs, labelKey(a.AntiAffinity.GroupByLabelKey, path.Child("antiAffinity", "groupByLabelKey"))...)
	}
	if a.Affinity != nil && a.AntiAffinity != nil && a.Affinity.GroupByLabelKey == a.AntiAffinity.GroupByLabelKey {
		errs = append(errs, field.Invalid(path.Child("antiAffinity", "groupByLabelKey"), a.AntiAffinity.GroupByLabelKey,
			"must differ from that of affinity: workloads of a group cannot be both together and apart"))
	}
	return errs
}

func failover(s *policyv1alpha1.PropagationSpec, path *field.Path) field.ErrorList {
	f := s.Failover
	if f == nil {
		return nil
	}
	var errs field.ErrorList
	if f.Cluster != nil {
		errs = append(errs, statePreservation(f.Cluster.StatePreservation, path.Child("failover", "cluster", "statePreservation"))...)
	}
	a := f.Application
	if a == nil {
		return errs
	}
	if !s.PropagateDeps {
		errs = append(errs, field.Invalid(path.Child("propagateDeps"), false,
			"must be true with application failover: a workload is of no use where what it depends on is not"))
	}
	path = path.Child("failover", "application")
	if t := a.DecisionConditions.TolerationSeconds; t != nil && *t < 0 {
		errs = append(errs, field.Invalid(path.Child("decisionConditions", "tolerationSeconds"), *t, "must be greater than or equal to 0"))
	}
	grace := path.Child("gracePeriodSeconds")
	switch gracefully := a.PurgeMode == "" || a.PurgeMode == policyv1alpha1.PurgeModeGracefully; {
	case gracefully && a.GracePeriodSeconds == nil:
		errs = append(errs, field.Required(grace, "how many seconds to keep what is replaced, with purgeMode Gracefully"))
	case gracefully && *a.GracePeriodSeconds <= 0:
		errs = append(errs, field.Invalid(grace, *a.GracePeriodSeconds, "must be greater than 0"))
	case !gracefully && a.GracePeriodSeconds != nil:
		errs = append(errs, field.Invalid(grace, *a.GracePeriodSeconds, fmt.Sprintf("only takes effect when purgeMode is Gracefully, it is %s: leave it out", a.PurgeMode)))
	}
	return append(errs, statePreservation(a.StatePreservation, path.Child("statePreservation"))...)
}

// statePreservation checks what is carried over as labels. A path that cannot be
// read would only be found out in the emergency that it is for.
func statePreservation(s *policyv1alpha1.StatePreservation, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for i, r := range s.Rules {
		path := path.Child("rules").Index(i)
		errs = append(errs, invalid(path.Child("aliasLabelName"), r.AliasLabelName, validation.IsQualifiedName(r.AliasLabelName))...)
		if err := jsonpath.New("").Parse(r.JSONPath); err != nil {
			errs = append(errs, field.Invalid(path.Child("jsonPath"), r.JSONPath, fmt.Sprintf("cannot be read: %v; the form is that of kubectl, such as { .availableReplicas }", err)))
		}
	}
	return errs
}

func suspension(s *policyv1alpha1.Suspension, path *field.Path) field.ErrorList {
	if s == nil || s.Dispatching == nil || !*s.Dispatching || s.DispatchingOnClusters == nil || len(s.DispatchingOnClusters.ClusterNames) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "dispatching: true, dispatchingOnClusters",
		"dispatching holds back every cluster, dispatchingOnClusters some: set one of them")}
}
