package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=overridepolicies,scope=Namespaced,shortName=op,categories={karmada-io}

// An OverridePolicy makes resources of its own namespace differ from cluster to
// cluster. It is applied after every ClusterOverridePolicy, and so wins.
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources differ, where and how.
	Spec OverrideSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// An OverridePolicyList is a list of OverridePolicies.
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []OverridePolicy `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteroverridepolicies,scope=Cluster,shortName=cop,categories={karmada-io}

// A ClusterOverridePolicy makes resources of any namespace, and cluster-scoped
// ones, differ from cluster to cluster.
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources differ, where and how.
	Spec OverrideSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// A ClusterOverridePolicyList is a list of ClusterOverridePolicies.
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec says which resources differ, where and how. Both scopes of
// override policy share it.
//
// Several policies may apply to one resource: first those that match every
// resource, then those that match by labels, then those that match by name, and
// within each of these groups by the policy's name. A later one sees what an
// earlier one made.
type OverrideSpec struct {
	// ResourceSelectors choose the resources; one that matches is enough. Empty:
	// every resource, of the policy's own namespace if it has one.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules say what changes in which clusters. They are applied in the
	// order of this list.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster is deprecated: use OverrideRules, which exclude it. It says
	// where Overriders apply. Absent: in every cluster.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders is deprecated: use OverrideRules, which exclude it. It says what
	// changes.
	// +optional
	Overriders Overriders `json:"overriders,omitzero"`
}

// A RuleWithCluster says what changes in some clusters.
type RuleWithCluster struct {
	// TargetCluster says where the rule applies. Absent: in every cluster.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders say what changes.
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes to a resource. Whatever the order in the manifest they
// are made in the order of the fields below, and within a field in the order of
// its list. A change that cannot be made holds the resource back from that
// cluster.
type Overriders struct {
	// ImageOverrider changes images of containers.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the command of a container.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the arguments of a container.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// LabelsOverrider changes labels.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes annotations.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes a JSON or YAML document that stands in a string
	// field, such as an entry of a ConfigMap.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`

	// Plaintext changes any field. The whole list is one JSON patch (RFC 6902).
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`
}

// An OverriderOperator says what is done with a value.
type OverriderOperator string

// What is done with a value. Not every overrider knows all three.
const (
	// OverriderOpAdd adds or appends the value.
	OverriderOpAdd OverriderOperator = "add"
	// OverriderOpRemove removes what is named.
	OverriderOpRemove OverriderOperator = "remove"
	// OverriderOpReplace puts the value in the place of what is there.
	OverriderOpReplace OverriderOperator = "replace"
)

// An ImageOverrider changes one part of images. An image is written
// [registry/]repository[:tag|@digest].
type ImageOverrider struct {
	// Predicate finds the image. Without it the images of all containers of a Pod,
	// ReplicaSet, Deployment, DaemonSet, StatefulSet, Job or CronJob are changed,
	// init containers excepted; in other kinds nothing is.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part of the image that changes.
	// +kubebuilder:validation:Enum=Registry;Repository;Tag
	Component ImageComponent `json:"component"`

	// Operator says how it changes: add appends Value to the part, replace sets
	// the part to Value, remove takes the part away.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is what is appended or set. It is not used by remove.
	// +optional
	Value string `json:"value,omitempty"`
}

// An ImagePredicate finds an image in a resource.
type ImagePredicate struct {
	// Path is a JSON pointer to a string field, such as
	// /spec/template/spec/containers/0/image. The field must be there.
	Path string `json:"path"`
}

// An ImageComponent is a part of an image.
type ImageComponent string

// The parts of an image.
const (
	// ImageComponentRegistry is what is before the first slash, if it looks like a
	// host.
	ImageComponentRegistry ImageComponent = "Registry"
	// ImageComponentRepository is the path after the registry.
	ImageComponentRepository ImageComponent = "Repository"
	// ImageComponentTag is the tag or the digest.
	ImageComponentTag ImageComponent = "Tag"
)

// A CommandArgsOverrider changes the command, or the arguments, of a container
// of a Pod, ReplicaSet, Deployment, DaemonSet, StatefulSet or Job.
type CommandArgsOverrider struct {
	// ContainerName is the container.
	ContainerName string `json:"containerName"`

	// Operator says how the list changes: add appends all values, remove takes
	// away every element that equals one of them.
	// +kubebuilder:validation:Enum=add;remove
	Operator OverriderOperator `json:"operator"`

	// Value are the elements.
	// +optional
	Value []string `json:"value,omitempty"`
}

// A LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// Operator says how they change: add sets each pair, replace sets and remove
	// takes away only keys that are there.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value are the pairs. The values are not used by remove.
	Value map[string]string `json:"value"`
}

// A FieldOverrider changes a document that stands in a string field. Exactly one
// of JSON and YAML is set; it says what the document is.
type FieldOverrider struct {
	// FieldPath is a JSON pointer to the field, such as /data/config.yaml. The
	// field must be there and be a string.
	FieldPath string `json:"fieldPath"`

	// JSON are changes to a JSON document.
	// +optional
	JSON []DocumentPatchOperation `json:"json,omitempty"`

	// YAML are changes to a YAML document. It is written back with its keys sorted
	// and without comments.
	// +optional
	YAML []DocumentPatchOperation `json:"yaml,omitempty"`
}

// A DocumentPatchOperation changes one place of a JSON or YAML document.
type DocumentPatchOperation struct {
	// SubPath is a JSON pointer into the document.
	SubPath string `json:"subPath"`

	// Operator says how the place changes, as in a JSON patch.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is what is added or set: required there, forbidden with remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitzero"`
}

// A PlaintextOverrider changes one field of a resource.
type PlaintextOverrider struct {
	// Path is a JSON pointer to the field.
	Path string `json:"path"`

	// Operator says how the field changes, as in a JSON patch: what is replaced or
	// removed must be there, and so must the parent of what is added.
	// +kubebuilder:validation:Enum=add;remove;replace
	Operator OverriderOperator `json:"operator"`

	// Value is what is added or set. It is not used by remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitzero"`
}
