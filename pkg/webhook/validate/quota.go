package validate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

func quotas() rules[policyv1alpha1.FederatedResourceQuota] {
	type quota = policyv1alpha1.FederatedResourceQuota
	r := plain(func(q *quota) any { return q.Spec }, func(q *quota) field.ErrorList {
		var errs field.ErrorList
		// The name becomes the value of a label.
		if len(q.Name) > validation.LabelValueMaxLength {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), q.Name, "must be no more than 63 characters"))
		}
		return append(errs, quotaSpec(&q.Spec, field.NewPath("spec"))...)
	})
	r.quantities = []string{"overall", "hard", "overallUsed", "used"}
	return r
}

// quotaSpec checks limits, and that the shares of clusters are parts of them
// (spec: behaviour/08 8.3).
func quotaSpec(s *policyv1alpha1.FederatedResourceQuotaSpec, path *field.Path) field.ErrorList {
	errs := limits(s.Overall, path.Child("overall"))
	assignments := path.Child("staticAssignments")
	clusters := sets.New[string]()
	sums := map[corev1.ResourceName]*resource.Quantity{}
	for i, a := range s.StaticAssignments {
		path := assignments.Index(i)
		errs = append(errs, clusterName(a.ClusterName, path.Child("clusterName"))...)
		if clusters.Has(a.ClusterName) {
			errs = append(errs, field.Duplicate(path.Child("clusterName"), a.ClusterName))
		}
		clusters.Insert(a.ClusterName)
		errs = append(errs, limits(a.Hard, path.Child("hard"))...)
		for _, name := range slices.Sorted(maps.Keys(a.Hard)) {
			if _, ok := s.Overall[name]; !ok {
				errs = append(errs, field.Invalid(path.Child("hard").Key(string(name)), string(name), "assignment resourceName is not exist in overall"))
				continue
			}
			if sums[name] == nil {
				sums[name] = &resource.Quantity{}
			}
			sums[name].Add(a.Hard[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		overall := s.Overall[name]
		if sums[name].Cmp(overall) > 0 {
			errs = append(errs, field.Invalid(path.Child("overall").Key(string(name)), overall.String(),
				"overall is less than assignments, which are "+sums[name].String()+" together"))
		}
	}
	return errs
}

// limits checks names and quantities as those of a ResourceQuota, which they
// become in clusters.
func limits(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		path := path.Key(string(name))
		errs = append(errs, invalid(path, string(name), quotaResource(name))...)
		quantity := list[name]
		switch {
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(path, quantity.String(), "must be greater than or equal to 0"))
		case counts(name) && !isInteger(quantity):
			errs = append(errs, field.Invalid(path, quantity.String(), "must be an integer"))
		}
	}
	return errs
}

// quotaResource returns what is wrong with the name of a resource: it has a
// domain, or is one of those that Kubernetes limits.
func quotaResource(name corev1.ResourceName) []string {
	problems := validation.IsQualifiedName(string(name))
	if len(problems) > 0 || strings.Contains(string(name), "/") {
		return problems
	}
	if slices.Contains(quantified(), name) || slices.Contains(counted(), name) ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix) {
		return nil
	}
	return []string{"must be a resource that a ResourceQuota limits, such as cpu, limits.memory or pods, or have a domain: example.com/gpu, count/jobs.batch"}
}

// quantified are the resources of ResourceQuotas that have a size.
func quantified() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceRequestsStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	}
}

// counted are the resources of ResourceQuotas that are a number of objects.
func counted() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
}

// counts says whether there are only whole ones of a resource: objects and
// devices. What has a domain of Kubernetes' own is not a device.
func counts(name corev1.ResourceName) bool {
	if slices.Contains(counted(), name) {
		return true
	}
	device := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return strings.Contains(device, "/") && !strings.Contains(device, corev1.ResourceDefaultNamespacePrefix)
}

func isInteger(q resource.Quantity) bool {
	q = q.DeepCopy() // rounding changes it
	return q.RoundUp(0)
}
