package webhook

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/webhook"
	"github.com/karmadactl/karmadactl/pkg/webhook/kinds"
	"github.com/karmadactl/karmadactl/pkg/webhook/protect"
	"github.com/karmadactl/karmadactl/pkg/webhook/validate"
)

// newHooks returns all webhooks (spec: behaviour/08 8.2, 8.3). config reaches the
// control plane, which is asked when a request needs it and not before: it may
// not be running yet.
func newHooks(config *rest.Config, gate featuregate.FeatureGate, allowNoExecute bool) ([]webhook.Hook, error) {
	scheme := runtime.NewScheme()
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the types of customizations: %w", err)
	}
	// What is read is known: nobody has to ask the API server for it.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configv1alpha1.GroupVersion.WithKind(configv1alpha1.KindResourceInterpreterCustomization), meta.RESTScopeRoot)
	reader, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client for the control plane: %w", err)
	}
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	served := kinds.New(asks)

	hooks := webhook.Hooks(webhook.NewDefaults())
	for _, h := range validate.Hooks(validate.Options{Reader: reader, Features: gate, AllowNoExecuteTaintPolicy: allowNoExecute}) {
		if slices.Contains(selecting(), h.Path) {
			h.Handler = served.Warn(h.Handler)
		}
		hooks = append(hooks, webhook.Hook(h))
	}
	return append(hooks, protect.Hooks(protect.Options{Namespaced: served.Namespaced, Metadata: objects})...), nil
}

// selecting are the paths of what has resource selectors, which may select what is
// not there.
func selecting() []string {
	return []string{
		"/validate-propagationpolicy", "/validate-clusterpropagationpolicy",
		"/validate-overridepolicy", "/validate-clusteroverridepolicy",
	}
}
