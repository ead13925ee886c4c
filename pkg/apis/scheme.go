// Package apis gathers the API types of the control plane. The types themselves
// are in the packages below it, one for each group and version; the package crds
// holds their CustomResourceDefinitions.
package apis

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	multiclusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/remedy/v1alpha1"
	searchv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/search/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// AddToScheme registers every type of the control plane's own API groups with s.
func AddToScheme(s *runtime.Scheme) error {
	return addAll(s,
		appsv1alpha1.AddToScheme,
		autoscalingv1alpha1.AddToScheme,
		clusterv1alpha1.AddToScheme,
		configv1alpha1.AddToScheme,
		multiclusterv1alpha1.AddToScheme,
		networkingv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme,
		remedyv1alpha1.AddToScheme,
		searchv1alpha1.AddToScheme,
		// The version that is stored comes first: of several it is preferred.
		workv1alpha2.AddToScheme,
		workv1alpha1.AddToScheme,
	)
}

// NewScheme returns a new scheme of everything that clients of the control plane
// speak of: its own types, those of Kubernetes, and CustomResourceDefinitions.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := addAll(s, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, AddToScheme); err != nil {
		return nil, err
	}
	return s, nil
}

func addAll(s *runtime.Scheme, adders ...func(*runtime.Scheme) error) error {
	for _, add := range adders {
		if err := add(s); err != nil {
			return fmt.Errorf("register API types: %w", err)
		}
	}
	return nil
}
