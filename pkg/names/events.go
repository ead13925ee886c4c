package names

// Reasons of events (spec: behaviour/01 1.9).
const (
	// On Clusters.
	EventCreateExecutionSpaceFailed     = "CreateExecutionSpaceFailed"
	EventCreateExecutionSpaceSucceed    = "CreateExecutionSpaceSucceed"
	EventRemoveExecutionSpaceFailed     = "RemoveExecutionSpaceFailed"
	EventRemoveExecutionSpaceSucceed    = "RemoveExecutionSpaceSucceed"
	EventClusterHeld                    = "ClusterHeld" // ours: it is deleted, and something keeps it
	EventTaintClusterFailed             = "TaintClusterFailed"
	EventTaintClusterSucceed            = "TaintClusterSucceed"
	EventSyncImpersonationConfigSucceed = "SyncImpersonationConfigSucceed"
	EventSyncImpersonationConfigFailed  = "SyncImpersonationConfigFailed"

	// On Works.
	EventReflectStatusSucceed   = "ReflectStatusSucceed"
	EventReflectStatusFailed    = "ReflectStatusFailed"
	EventInterpretHealthSucceed = "InterpretHealthSucceed"
	EventInterpretHealthFailed  = "InterpretHealthFailed"
	EventSyncFailed             = "SyncFailed"
	EventSyncSucceed            = "SyncSucceed"
	EventWorkDispatching        = "WorkDispatching"

	// On bindings.
	EventCleanupWorkFailed                       = "CleanupWorkFailed"
	EventSyncScheduleResultToDependenciesSucceed = "SyncScheduleResultToDependenciesSucceed"
	EventSyncScheduleResultToDependenciesFailed  = "SyncScheduleResultToDependenciesFailed"
	EventDependencyPolicyConflict                = "DependencyPolicyConflict"
	EventScheduleBindingFailed                   = "ScheduleBindingFailed"
	EventScheduleBindingSucceed                  = "ScheduleBindingSucceed"
	EventDescheduleBindingFailed                 = "DescheduleBindingFailed"
	EventDescheduleBindingSucceed                = "DescheduleBindingSucceed"
	EventEvictWorkloadFromClusterSucceed         = "EvictWorkloadFromClusterSucceed"
	EventEvictWorkloadFromClusterFailed          = "EvictWorkloadFromClusterFailed"

	// On bindings and on FederatedResourceQuotas.
	EventSyncWorkFailed         = "SyncWorkFailed"
	EventSyncWorkSucceed        = "SyncWorkSucceed"
	EventAggregateStatusFailed  = "AggregateStatusFailed"
	EventAggregateStatusSucceed = "AggregateStatusSucceed"

	// On FederatedResourceQuotas.
	EventCollectOverallStatusFailed  = "CollectOverallStatusFailed"
	EventCollectOverallStatusSucceed = "CollectOverallStatusSucceed"

	// On templates.
	EventApplyPolicyFailed          = "ApplyPolicyFailed"
	EventApplyPolicySucceed         = "ApplyPolicySucceed"
	EventApplyOverridePolicyFailed  = "ApplyOverridePolicyFailed"
	EventApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	EventGetDependenciesSucceed     = "GetDependenciesSucceed"
	EventGetDependenciesFailed      = "GetDependenciesFailed"
	EventGetComponentsSucceed       = "GetComponentsSucceed"
	EventGetComponentsFailed        = "GetComponentsFailed"
	EventGetReplicasSucceed         = "GetReplicasSucceed"
	EventGetReplicasFailed          = "GetReplicasFailed"
	EventPreemptPolicySucceed       = "PreemptPolicySucceed"
	EventPreemptPolicyFailed        = "PreemptPolicyFailed"

	// On ServiceImports.
	EventSyncDerivedServiceSucceed = "SyncDerivedServiceSucceed"
	EventSyncDerivedServiceFailed  = "SyncDerivedServiceFailed"

	// On MultiClusterServices.
	EventSyncServiceFailed            = "SyncServiceFailed"
	EventSyncServiceSucceed           = "SyncServiceSucceed"
	EventDispatchEndpointSliceFailed  = "DispatchEndpointSliceFailed"
	EventDispatchEndpointSliceSucceed = "DispatchEndpointSliceSucceed"
	EventClusterNotFound              = "ClusterNotFound"
	EventAPIIncompatible              = "APIIncompatible"
)
