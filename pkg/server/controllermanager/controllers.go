package controllermanager

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// A controller is one name that --controllers takes.
type controller struct {
	name         string
	offByDefault bool
	// gate, unless it is empty, must be on for the controller to run.
	gate featuregate.Feature
	// needs are the kinds that it watches, apart from those of Kubernetes.
	needs []schema.GroupVersionKind
	// setup adds it to a manager; nil means that this version does not have it.
	setup func(manager.Manager, *setting) error
}

// controllers is the table (spec: cli/components.md 1, behaviour/02 2.0).
func controllers() []controller {
	clusters := clusterv1alpha1.GroupVersion.WithKind("Cluster")
	works := workv1alpha1.GroupVersion.WithKind("Work")
	bindings, clusterBindings := workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding")
	kinds := func(all ...schema.GroupVersionKind) []schema.GroupVersionKind { return all }
	return []controller{
		{name: "agentcsrapproving", needs: kinds(clusters), setup: setupAgentCSRApproving},
		{name: "applicationFailover"},
		{name: "binding"},
		{name: "bindingStatus"},
		{name: "cluster", needs: kinds(clusters, works, bindings, clusterBindings), setup: setupCluster},
		{name: "clusterStatus", needs: kinds(clusters), setup: setupClusterStatus},
		{name: "clustertaintpolicy", gate: features.Failover},
		{name: "cronFederatedHorizontalPodAutoscaler"},
		{name: "deploymentReplicasSyncer", offByDefault: true},
		{name: "endpointSlice"},
		{name: "endpointsliceCollect", gate: features.MultiClusterService},
		{name: "endpointsliceDispatch", gate: features.MultiClusterService},
		{name: "execution", needs: kinds(clusters, works), setup: setupExecution},
		{name: "federatedHorizontalPodAutoscaler"},
		{name: "federatedResourceQuotaEnforcement", gate: features.FederatedQuotaEnforcement},
		{name: "federatedResourceQuotaStatus"},
		{name: "federatedResourceQuotaSync"},
		{name: "gracefulEviction"},
		{name: "hpaScaleTargetMarker", offByDefault: true},
		{name: "multiclusterservice", gate: features.MultiClusterService},
		{name: "namespace"},
		{name: "remedy"},
		{name: "serviceExport"},
		{name: "serviceImport"},
		{name: "unifiedAuth", needs: kinds(clusters, works), setup: setupUnifiedAuth},
		{name: "workStatus"},
		{name: "workloadRebalancer"},
	}
}

func newControllersFlag(table []controller) flags.Controllers {
	var known, off []string
	for _, c := range table {
		known = append(known, c.name)
		if c.offByDefault {
			off = append(off, c.name)
		}
	}
	return flags.NewControllers(known, off)
}

// A plan says what becomes of each controller of the table that is enabled.
type plan struct {
	start   []controller
	gated   []string // need a feature gate that is off
	missing []string // are not in this version
}

func planControllers(table []controller, enabled func(name string) bool, gate featuregate.FeatureGate) plan {
	var p plan
	for _, c := range table {
		switch {
		case !enabled(c.name):
		case c.setup == nil:
			p.missing = append(p.missing, c.name)
		case c.gate != "" && !gate.Enabled(c.gate):
			p.gated = append(p.gated, c.name)
		default:
			p.start = append(p.start, c)
		}
	}
	return p
}

// needs returns what the controllers that start watch, each once.
func (p plan) needs() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, c := range p.start {
		for _, kind := range c.needs {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	return all
}

func (p plan) report(log klog.Logger) {
	var started []string
	for _, c := range p.start {
		started = append(started, c.name)
	}
	if len(started) > 0 {
		log.Info("Starting controllers", "controllers", started)
	}
	if len(p.gated) > 0 {
		log.Info("Controllers not started, because their feature gate is off", "controllers", p.gated)
	}
	if len(p.missing) > 0 {
		log.Info("Controllers not started, because this version does not have them yet", "controllers", p.missing)
	}
}

func (p plan) setUp(mgr manager.Manager, s *setting) error {
	for _, entry := range p.start {
		if err := entry.setup(mgr, s); err != nil {
			return fmt.Errorf("set up controller %s: %w", entry.name, err)
		}
	}
	return nil
}
