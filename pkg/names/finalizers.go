package names

// Finalizers, each with the kind of object that carries it
// (spec: behaviour/01 1.6).
const (
	ClusterFinalizer                  = "karmada.io/cluster-controller"                  // Cluster
	WorkFinalizer                     = "karmada.io/execution-controller"                // Work
	ResourceBindingFinalizer          = "karmada.io/binding-controller"                  // ResourceBinding
	ClusterResourceBindingFinalizer   = "karmada.io/cluster-resource-binding-controller" // ClusterResourceBinding
	DependenciesFinalizer             = "karmada.io/binding-dependencies-distributor"    // ResourceBinding with propagateDeps
	PropagationPolicyFinalizer        = "karmada.io/propagation-policy-controller"       // PropagationPolicy
	ClusterPropagationPolicyFinalizer = "karmada.io/cluster-propagation-policy-controller"
	EndpointSliceFinalizer            = "karmada.io/endpointslice-controller"       // Work with a collected EndpointSlice
	MultiClusterServiceFinalizer      = "karmada.io/multiclusterservice-controller" // MultiClusterService
	// EndpointSliceCollectFinalizer is only ever removed: earlier versions set it.
	EndpointSliceCollectFinalizer  = "karmada.io/mcs-endpointslice-collect-controller"
	EndpointSliceDispatchFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller" // MultiClusterService, Work
)
