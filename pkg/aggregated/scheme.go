package aggregated

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// NewScheme returns the scheme of the server. There is one version, so the
// types that are served are also those that the server works with and stores:
// they stand for the internal version, too, and nothing is ever converted.
func NewScheme() (*runtime.Scheme, error) {
	s, err := newWireScheme()
	if err != nil {
		return nil, err
	}
	s.AddKnownTypes(schema.GroupVersion{Group: clusterv1alpha1.GroupName, Version: runtime.APIVersionInternal},
		&clusterv1alpha1.Cluster{}, &clusterv1alpha1.ClusterList{})
	if err := s.SetVersionPriority(clusterv1alpha1.GroupVersion); err != nil {
		return nil, fmt.Errorf("order API versions: %w", err)
	}
	if err := s.AddFieldLabelConversionFunc(clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.KindCluster), selectableField); err != nil {
		return nil, fmt.Errorf("register selectable fields: %w", err)
	}
	return s, nil
}

// newWireScheme returns what clients see of the scheme.
func newWireScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(s); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, v1)
	s.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s, nil
}

// selectableField accepts the only field that Clusters can be selected by
// (spec: behaviour/09 9.1).
func selectableField(label, value string) (string, string, error) {
	if label != metav1.ObjectNameField {
		return "", "", fmt.Errorf("%q is not a known field selector: only %q", label, metav1.ObjectNameField)
	}
	return label, value, nil
}

// textSerializer speaks JSON and YAML, as API servers do for custom resources:
// the types have no protobuf form, and who asks for either gets JSON instead of
// an error.
type textSerializer struct {
	serializer.CodecFactory
}

func (s textSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	var text []runtime.SerializerInfo
	for _, info := range s.CodecFactory.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON || info.MediaType == runtime.ContentTypeYAML {
			text = append(text, info)
		}
	}
	return text
}
