package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/networking/v1alpha1"
)

func services() rules[networkingv1alpha1.MultiClusterService] {
	type service = networkingv1alpha1.MultiClusterService
	r := plain(func(s *service) any { return s.Spec }, func(s *service) field.ErrorList {
		errs := invalid(field.NewPath("metadata", "name"), s.Name, validation.IsDNS1035Label(s.Name))
		return append(errs, serviceSpec(&s.Spec, field.NewPath("spec"))...)
	})
	r.change = func(was, now *service) field.ErrorList {
		var errs field.ErrorList
		if was == nil {
			return nil
		}
		if !slices.Equal(was.Spec.Types, now.Spec.Types) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "types"), now.Spec.Types, "MultiClusterService types are immutable"))
		}
		if !equality.Semantic.DeepEqual(was.Status.LoadBalancer, now.Status.LoadBalancer) {
			errs = append(errs, loadBalancer(&now.Status.LoadBalancer, field.NewPath("status", "loadBalancer"))...)
		}
		return errs
	}
	return r
}

// serviceSpec checks how a service is exposed, and where (spec: behaviour/08
// 8.3).
func serviceSpec(s *networkingv1alpha1.MultiClusterServiceSpec, path *field.Path) field.ErrorList {
	types := []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer}
	var errs field.ErrorList
	for i, t := range s.Types {
		if !slices.Contains(types, t) {
			errs = append(errs, field.NotSupported(path.Child("types").Index(i), t, types))
		}
	}
	if len(s.Types) > 1 {
		errs = append(errs, field.Invalid(path.Child("types"), s.Types, "must have no more than one type"))
	}
	seen := sets.New[string]()
	for i, p := range s.Ports {
		path := path.Child("ports").Index(i)
		for _, problem := range validation.IsValidPortNum(int(p.Port)) {
			errs = append(errs, field.Invalid(path.Child("port"), p.Port, problem))
		}
		if p.Name == "" {
			continue
		}
		errs = append(errs, invalid(path.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
		if seen.Has(p.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		}
		seen.Insert(p.Name)
	}
	errs = append(errs, clusterSelectors(s.ProviderClusters, path.Child("providerClusters"))...)
	return append(errs, clusterSelectors(s.ConsumerClusters, path.Child("consumerClusters"))...)
}

func clusterSelectors(clusters []networkingv1alpha1.ClusterSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range clusters {
		errs = append(errs, clusterName(c.Name, path.Index(i).Child("name"))...)
	}
	return errs
}

// loadBalancer checks where a load balancer is said to be, as the API server does
// for Services.
func loadBalancer(s *corev1.LoadBalancerStatus, path *field.Path) field.ErrorList {
	modes := []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy}
	var errs field.ErrorList
	for i, in := range s.Ingress {
		path := path.Child("ingress").Index(i)
		if in.IP != "" {
			errs = append(errs, validation.IsValidIP(path.Child("ip"), in.IP)...)
		}
		if in.IPMode != nil {
			if in.IP == "" {
				errs = append(errs, field.Forbidden(path.Child("ipMode"), "may not be specified when `ip` is not set"))
			}
			if !slices.Contains(modes, *in.IPMode) {
				errs = append(errs, field.NotSupported(path.Child("ipMode"), *in.IPMode, modes))
			}
		}
		if in.Hostname != "" {
			errs = append(errs, dnsName(in.Hostname, false, path.Child("hostname"))...)
		}
	}
	return errs
}
