package names

// Labels (spec: behaviour/01 1.4).
const (
	// ManagedLabel, with value True, is on every object that was applied to a
	// member. It decides about ownership: nothing without it is changed or
	// removed on a member.
	ManagedLabel = "karmada.io/managed"
	// SystemLabel, with value True, is on objects of the system itself.
	SystemLabel = "karmada.io/system"

	PropagationPolicyIDLabel        = "propagationpolicy.karmada.io/permanent-id"
	ClusterPropagationPolicyIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
	ResourceBindingIDLabel          = "resourcebinding.karmada.io/permanent-id"
	ClusterResourceBindingIDLabel   = "clusterresourcebinding.karmada.io/permanent-id"
	WorkIDLabel                     = "work.karmada.io/permanent-id"
	MultiClusterServiceIDLabel      = "multiclusterservice.karmada.io/permanent-id"

	// DependedByLabelPrefix and a reference key make the label that an
	// attached binding carries for each binding that depends on it; see
	// DependedByLabel.
	DependedByLabelPrefix = "resourcebinding.karmada.io/depended-by-"
	// BindingManagedByLabel is on bindings that something other than the
	// detector created.
	BindingManagedByLabel = "binding.karmada.io/managed-by"

	// SkipAutoPropagationLabel, on a Namespace with a value of "true" in any
	// case, keeps it from being created on members.
	SkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
	// RetainReplicasLabel, with value True on a template, keeps the replicas
	// that are found on a member.
	RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"
	// ClaimedByLabel, on a template, makes the detector leave it alone.
	ClaimedByLabel = "resourcetemplate.karmada.io/claimed-by"
	// DeletionProtectedLabel, with value DeletionProtectedAlways, keeps an
	// object from being deleted.
	DeletionProtectedLabel = "resourcetemplate.karmada.io/deletion-protected"

	EndpointSliceNamespaceLabel = "endpointslice.karmada.io/namespace"
	EndpointSliceNameLabel      = "endpointslice.karmada.io/name"
	EndpointSliceManagedByLabel = "endpointslice.karmada.io/managed-by"

	FederatedResourceQuotaNamespaceLabel = "federatedresourcequota.karmada.io/namespace"
	FederatedResourceQuotaNameLabel      = "federatedresourcequota.karmada.io/name"
)

// Keys that are used both as labels, on Works, and as annotations, on objects
// derived from a MultiClusterService (spec: behaviour/01 1.4, 1.5).
const (
	MultiClusterServiceNamespaceKey = "multiclusterservice.karmada.io/namespace"
	MultiClusterServiceNameKey      = "multiclusterservice.karmada.io/name"
)

// Values of labels.
const (
	// True is the value of labels that mark an object.
	True = "true"
	// DeletionProtectedAlways is the only value of DeletionProtectedLabel that
	// protects.
	DeletionProtectedAlways = "Always"
	// ManagedByMultiClusterService is a value of BindingManagedByLabel and of
	// ClaimedByLabel.
	ManagedByMultiClusterService = "MultiClusterService"
	// EndpointSliceDispatchController and EndpointSliceController are the
	// values of EndpointSliceManagedByLabel.
	EndpointSliceDispatchController = "endpointslice-dispatch-controller.karmada.io"
	EndpointSliceController         = "endpointslice-controller.karmada.io"
)

// DependedByLabel returns the label key that says which binding, given by its
// reference key, an attached binding is needed by.
func DependedByLabel(referenceKey string) string {
	return DependedByLabelPrefix + referenceKey
}

// ManagedLabels returns the labels that are taken off an object that stays on
// its member when its template goes. The labels by which policies claim a
// template are taken off as well.
func ManagedLabels() []string {
	return []string{ResourceBindingIDLabel, WorkIDLabel, ManagedLabel}
}
