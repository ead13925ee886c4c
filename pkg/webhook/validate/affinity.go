package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// affinity checks a selection of clusters, nil for all. Names are not looked up:
// a cluster may join later.
func affinity(a *policyv1alpha1.ClusterAffinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	return append(labelSelector(a.LabelSelector, path.Child("labelSelector")), fieldSelector(a.FieldSelector, path.Child("fieldSelector"))...)
}

// labelSelector refuses a selector that cannot be read, since it matches nothing.
func labelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

// fieldSelector checks a selection by the spec of clusters (spec: behaviour/08
// 8.3). One without values is refused too: it matches nothing, or says nothing.
func fieldSelector(s *policyv1alpha1.FieldSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for i, r := range s.MatchExpressions {
		path := path.Child("matchExpressions").Index(i)
		if !slices.Contains([]string{"provider", "region", "zone"}, r.Key) {
			errs = append(errs, field.Invalid(path.Child("key"), r.Key, fmt.Sprintf("unsupported key %q, must be provider, region, or zone", r.Key)))
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(path.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		default:
			errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, fmt.Sprintf("unsupported operator %q, must be In or NotIn", r.Operator)))
		}
	}
	return errs
}

// isEmpty says whether an affinity restricts nothing.
func isEmpty(a *policyv1alpha1.ClusterAffinity) bool {
	return a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) == 0 && len(a.ExcludeClusters) == 0
}

// clusterName checks the name of a cluster.
func clusterName(name string, path *field.Path) field.ErrorList {
	if err := registration.ValidateClusterName(name); err != nil {
		return field.ErrorList{field.Invalid(path, name, err.Error())}
	}
	return nil
}

// labelKey checks a key of a label that must be there.
func labelKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, "must be the key of a label")}
	}
	return invalid(path, key, validation.IsQualifiedName(key))
}

// selectors checks which objects a policy selects: those of its namespace, if it
// has one.
func selectors(rs []policyv1alpha1.ResourceSelector, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range rs {
		path := path.Index(i)
		if namespace != "" && r.Namespace != namespace {
			errs = append(errs, field.Invalid(path.Child("namespace"), r.Namespace,
				fmt.Sprintf("the namespace must be that of the policy, %q: only a cluster-scoped policy selects in others", namespace)))
		}
		errs = append(errs, labelSelector(r.LabelSelector, path.Child("labelSelector"))...)
	}
	return errs
}
