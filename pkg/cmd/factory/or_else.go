package factory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// orElse asks a second mapper about what the first does not know. The second is
// made when it is needed.
type orElse struct {
	first  meta.RESTMapper
	second func() (meta.RESTMapper, error)
}

var _ meta.RESTMapper = orElse{}

func ask[T any](o orElse, question func(meta.RESTMapper) (T, error)) (T, error) {
	answer, err := question(o.first)
	if !meta.IsNoMatchError(err) {
		return answer, err
	}
	second, secondErr := o.second()
	if secondErr != nil {
		return answer, secondErr
	}
	return question(second)
}

func (o orElse) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(o, func(m meta.RESTMapper) (schema.GroupVersionKind, error) { return m.KindFor(r) })
}

func (o orElse) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(o, func(m meta.RESTMapper) ([]schema.GroupVersionKind, error) { return m.KindsFor(r) })
}

func (o orElse) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(o, func(m meta.RESTMapper) (schema.GroupVersionResource, error) { return m.ResourceFor(r) })
}

func (o orElse) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(o, func(m meta.RESTMapper) ([]schema.GroupVersionResource, error) { return m.ResourcesFor(r) })
}

func (o orElse) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(o, func(m meta.RESTMapper) (*meta.RESTMapping, error) { return m.RESTMapping(gk, versions...) })
}

func (o orElse) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(o, func(m meta.RESTMapper) ([]*meta.RESTMapping, error) { return m.RESTMappings(gk, versions...) })
}

func (o orElse) ResourceSingularizer(resource string) (string, error) {
	return o.first.ResourceSingularizer(resource)
}
