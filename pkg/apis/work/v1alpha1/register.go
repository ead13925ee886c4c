package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "work.karmada.io"

// Kinds of this package, as they stand in the "kind" field of a manifest.
const (
	KindClusterResourceBinding = "ClusterResourceBinding"
	KindResourceBinding        = "ResourceBinding"
	KindWork                   = "Work"
)

// Resources of this package, as they stand in a URL of the API.
const (
	ResourceClusterResourceBindings = "clusterresourcebindings"
	ResourceResourceBindings        = "resourcebindings"
	ResourceWorks                   = "works"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the types of this package with s. It has the signature
// that client-go's scheme builders expect and never fails.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterResourceBinding{},
		&ClusterResourceBindingList{},
		&ResourceBinding{},
		&ResourceBindingList{},
		&Work{},
		&WorkList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
