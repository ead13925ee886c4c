package names

// Annotations (spec: behaviour/01 1.5).
const (
	PropagationPolicyNamespaceAnnotation   = "propagationpolicy.karmada.io/namespace"
	PropagationPolicyNameAnnotation        = "propagationpolicy.karmada.io/name"
	ClusterPropagationPolicyNameAnnotation = "clusterpropagationpolicy.karmada.io/name"

	// AppliedPlacementAnnotation holds, on a binding, the Placement that the
	// scheduler last applied, as JSON.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation and AppliedClusterOverridesAnnotation hold, on
	// a Work, the override policies that were applied, as JSON lists.
	AppliedOverridesAnnotation        = "policy.karmada.io/applied-overrides"
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"

	ResourceBindingNamespaceAnnotation   = "resourcebinding.karmada.io/namespace"
	ResourceBindingNameAnnotation        = "resourcebinding.karmada.io/name"
	ClusterResourceBindingNameAnnotation = "clusterresourcebinding.karmada.io/name"
	// DependenciesAnnotation holds, on a binding, the references to what its
	// template depends on, as a JSON array.
	DependenciesAnnotation = "resourcebinding.karmada.io/dependencies"

	// TemplateFingerprintAnnotation is on a binding, and tells which state of its
	// template it was made of: one hash of what its user wrote, and one that counts
	// marks of controllers as well. With it a restart tells what has changed from
	// what has only another resourceVersion, as after each change of status. It is
	// not part of Karmada's API.
	TemplateFingerprintAnnotation = "binding.karmadactl.io/template"

	WorkNamespaceAnnotation = "work.karmada.io/namespace"
	WorkNameAnnotation      = "work.karmada.io/name"
	// ConflictResolutionAnnotation says what to do about an object that a
	// member already has and that is not ours.
	ConflictResolutionAnnotation = "work.karmada.io/conflict-resolution"
	// AdoptedAnnotation says, with True, on a Namespace of a member that it was
	// there before we took it over: it is not deleted, but released. It is not
	// part of Karmada's API.
	AdoptedAnnotation = "work.karmadactl.io/adopted"

	TemplateUIDAnnotation        = "resourcetemplate.karmada.io/uid"
	TemplateGenerationAnnotation = "resourcetemplate.karmada.io/generation"
	// ManagedAnnotationsAnnotation and ManagedLabelsAnnotation list, sorted
	// and separated by commas, the keys that were set from the template: what
	// leaves the list was deleted in the template, what never was in it is the
	// member's own.
	ManagedAnnotationsAnnotation = "resourcetemplate.karmada.io/managed-annotations"
	ManagedLabelsAnnotation      = "resourcetemplate.karmada.io/managed-labels"

	// ProvisionClusterAnnotation names the cluster that a dispatched
	// EndpointSlice came from.
	ProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"
	// CachedFromClusterAnnotation is put on objects of the search cache.
	CachedFromClusterAnnotation = "resource.karmada.io/cached-from-cluster"
	// QueryFromClusterAnnotation is put on metrics of pods.
	QueryFromClusterAnnotation = "resource.karmada.io/query-from-cluster"

	// ClusterCascadeAnnotation says, on a Cluster that is removed, what becomes
	// of the objects that were propagated to it: CascadeDelete or CascadeOrphan.
	// It is set before the Cluster is deleted. It is not part of Karmada's API.
	ClusterCascadeAnnotation = "cluster.karmadactl.io/cascade"
)

// Values of ClusterCascadeAnnotation.
const (
	// CascadeDelete, the default, deletes them.
	CascadeDelete = "delete"
	// CascadeOrphan leaves them in the cluster, without the marks of the control
	// plane.
	CascadeOrphan = "orphan"
)

// Values of ConflictResolutionAnnotation.
const (
	ConflictOverwrite = "overwrite"
	ConflictAbort     = "abort"
)

// ManagedAnnotations returns the annotations that are taken off an object that
// stays on its member when its template goes.
func ManagedAnnotations() []string {
	return []string{
		ManagedAnnotationsAnnotation,
		ManagedLabelsAnnotation,
		ResourceBindingNamespaceAnnotation,
		ResourceBindingNameAnnotation,
		TemplateUIDAnnotation,
		TemplateGenerationAnnotation,
		WorkNameAnnotation,
		WorkNamespaceAnnotation,
	}
}
