package policy

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// An Object is a propagation policy of either scope. One without a namespace is
// a ClusterPropagationPolicy.
type Object interface {
	client.Object
	PropagationSpec() *policyv1alpha1.PropagationSpec
}

// An Override is an override policy of either scope. One without a namespace is
// a ClusterOverridePolicy.
type Override interface {
	client.Object
	OverrideSpec() *policyv1alpha1.OverrideSpec
}

var (
	_ Object   = (*policyv1alpha1.PropagationPolicy)(nil)
	_ Object   = (*policyv1alpha1.ClusterPropagationPolicy)(nil)
	_ Override = (*policyv1alpha1.OverridePolicy)(nil)
	_ Override = (*policyv1alpha1.ClusterOverridePolicy)(nil)
)

// Priority returns the explicit priority of a policy, 0 when it has none.
func Priority(spec *policyv1alpha1.PropagationSpec) int32 {
	if spec.Priority == nil {
		return 0
	}
	return *spec.Priority
}
