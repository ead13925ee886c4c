package controllermanager

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/pipeline/bind"
	"github.com/karmadactl/karmadactl/pkg/pipeline/bind/dependencies"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// A controller is one name that --controllers takes.
type controller = role.Controller[*setting]

// controllers is the table (spec: cli/components.md 1, behaviour/02 2.0). The
// first rows run in any case.
func controllers() []controller {
	clusters := clusterv1alpha1.GroupVersion.WithKind("Cluster")
	works := workv1alpha1.GroupVersion.WithKind("Work")
	bindings, clusterBindings := workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding")
	policies, clusterPolicies := policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy")
	overrides, clusterOverrides := policyv1alpha1.GroupVersion.WithKind("OverridePolicy"), policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy")
	rebalancers := appsv1alpha1.GroupVersion.WithKind("WorkloadRebalancer")
	kinds := func(all ...schema.GroupVersionKind) []schema.GroupVersionKind { return all }
	return []controller{
		{Name: "templates", Always: true, Needs: kinds(works, bindings, clusterBindings), Setup: setupShared},
		{Name: bind.Name, Always: true, Needs: kinds(bindings, clusterBindings, policies, clusterPolicies, overrides, clusterOverrides), Setup: setupDetector},
		{Name: dependencies.Name, Always: true, Needs: kinds(bindings), Setup: setupDependencies},
		{Name: "agentcsrapproving", Needs: kinds(clusters), Setup: setupAgentCSRApproving},
		{Name: "applicationFailover"},
		{Name: "binding", Needs: kinds(clusters, works, bindings, clusterBindings, overrides, clusterOverrides), Setup: setupBinding},
		{Name: "bindingStatus", Needs: kinds(works, bindings, clusterBindings), Setup: setupBindingStatus},
		{Name: "cluster", Needs: kinds(clusters, works, bindings, clusterBindings), Setup: setupCluster},
		{Name: "clusterStatus", Needs: kinds(clusters), Setup: setupClusterStatus},
		{Name: "clustertaintpolicy", Gate: features.Failover},
		{Name: "cronFederatedHorizontalPodAutoscaler"},
		{Name: "deploymentReplicasSyncer", OffByDefault: true},
		{Name: "endpointSlice"},
		{Name: "endpointsliceCollect", Gate: features.MultiClusterService},
		{Name: "endpointsliceDispatch", Gate: features.MultiClusterService},
		{Name: "execution", Needs: kinds(clusters, works), Setup: setupExecution},
		{Name: "federatedHorizontalPodAutoscaler"},
		{Name: "federatedResourceQuotaEnforcement", Gate: features.FederatedQuotaEnforcement},
		{Name: "federatedResourceQuotaStatus"},
		{Name: "federatedResourceQuotaSync"},
		{Name: "gracefulEviction"},
		{Name: "hpaScaleTargetMarker", OffByDefault: true},
		{Name: "multiclusterservice", Gate: features.MultiClusterService},
		{Name: "namespace", Needs: kinds(clusters, works, clusterOverrides), Setup: setupNamespace},
		{Name: "remedy"},
		{Name: "serviceExport"},
		{Name: "serviceImport"},
		{Name: "unifiedAuth", Needs: kinds(clusters, works), Setup: setupUnifiedAuth},
		{Name: "workStatus", Needs: kinds(clusters, works), Setup: setupWorkStatus},
		{Name: "workloadRebalancer", Needs: kinds(bindings, clusterBindings, rebalancers), Setup: setupWorkloadRebalancer},
	}
}
