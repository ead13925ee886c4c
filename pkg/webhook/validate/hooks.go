package validate

import (
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	networkingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// Options are what the rules depend on beside the objects.
type Options struct {
	// Reader lists customizations, of which no two may say the same of one kind. It
	// is asked only when one of them changes, and should not be a cache: what was
	// created a moment ago counts. Required.
	Reader client.Reader
	// Features switch rules on. Required.
	Features featuregate.FeatureGate
	// AllowNoExecuteTaintPolicy lets ClusterTaintPolicies evict workloads (flag
	// --allow-no-execute-taint-policy).
	AllowNoExecuteTaintPolicy bool
}

// A Hook is one admission webhook.
type Hook struct {
	// Name is how the API server's configuration, and its refusals, call it.
	Name string
	// Path is where it is served.
	Path    string
	Handler admission.Handler
}

// Hooks returns the validating webhooks of our kinds (spec: behaviour/08 8.3).
// Names and paths are the contract's. All of them are for creations and updates of
// the objects themselves, not of their sub-resources.
func Hooks(o Options) []Hook {
	return []Hook{
		{"propagationpolicy.karmada.io", "/validate-propagationpolicy", validating[policyv1alpha1.PropagationPolicy](propagationPolicies())},
		{"clusterpropagationpolicy.karmada.io", "/validate-clusterpropagationpolicy", validating[policyv1alpha1.ClusterPropagationPolicy](clusterPropagationPolicies())},
		{"overridepolicy.karmada.io", "/validate-overridepolicy", validating[policyv1alpha1.OverridePolicy](overridePolicies())},
		{"clusteroverridepolicy.karmada.io", "/validate-clusteroverridepolicy", validating[policyv1alpha1.ClusterOverridePolicy](clusterOverridePolicies())},
		{"config.karmada.io", "/validate-resourceinterpreterwebhookconfiguration", validating[configv1alpha1.ResourceInterpreterWebhookConfiguration](interpreterWebhooks())},
		{"resourceinterpretercustomization.karmada.io", "/validate-resourceinterpretercustomization", validating[configv1alpha1.ResourceInterpreterCustomization](customizations(o.Reader))},
		{"federatedresourcequota.karmada.io", "/validate-federatedresourcequota", validating[policyv1alpha1.FederatedResourceQuota](quotas())},
		{"multiclusteringress.karmada.io", "/validate-multiclusteringress", validating[networkingv1alpha1.MultiClusterIngress](ingresses())},
		{"federatedhpa.karmada.io", "/validate-federatedhpa", validating[autoscalingv1alpha1.FederatedHPA](autoscalers())},
		{"cronfederatedhpa.karmada.io", "/validate-cronfederatedhpa", validating[autoscalingv1alpha1.CronFederatedHPA](cronAutoscalers())},
		{"multiclusterservice.karmada.io", "/validate-multiclusterservice", validating[networkingv1alpha1.MultiClusterService](services())},
		{"resourcebinding.karmada.io", "/validate-resourcebinding", validating[workv1alpha2.ResourceBinding](bindings(o.Features))},
		{"clustertaintpolicy.karmada.io", "/validate-clustertaintpolicy", validating[policyv1alpha1.ClusterTaintPolicy](taintPolicies(o.AllowNoExecuteTaintPolicy))},
	}
}
