package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmadactl/karmadactl/pkg/apis/crds"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// schemas hold objects to the schema of v1alpha2, as the API server does with what is written as v1alpha2. They are read
// when they are first needed: most control planes never see a v1alpha1 object written.
type schemas struct {
	once   sync.Once
	byKind map[string]validation.SchemaValidator
	err    error
}

// check says what is wrong with a v1alpha2 object, nil when nothing is.
func (s *schemas) check(kind string, object []byte) error {
	s.once.Do(func() { s.byKind, s.err = readSchemas() })
	if s.err != nil {
		return s.err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(object, &content); err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	if errs := validation.ValidateCustomResource(nil, content, s.byKind[kind]); len(errs) > 0 {
		return fmt.Errorf("what the annotation %s says is not valid in v1alpha2: %w", Annotation, errs.ToAggregate())
	}
	// One object that our own components cannot read would keep them from reading all others.
	var typed struct {
		Spec   workv1alpha2.ResourceBindingSpec   `json:"spec"`
		Status workv1alpha2.ResourceBindingStatus `json:"status"`
	}
	if err := json.Unmarshal(object, &typed); err != nil {
		return fmt.Errorf("what the annotation %s says cannot be read: %w", Annotation, err)
	}
	return nil
}

func readSchemas() (map[string]validation.SchemaValidator, error) {
	definitions, err := crds.Groups(workv1alpha2.GroupName)
	if err != nil {
		return nil, err
	}
	byKind := map[string]validation.SchemaValidator{}
	for _, d := range definitions {
		i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == workv1alpha2.GroupVersion.Version
		})
		if i < 0 {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(d.Spec.Versions[i].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", d.Name, err)
		}
		v, _, err := validation.NewSchemaValidator(&schema)
		if err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", d.Name, err)
		}
		byKind[d.Spec.Names.Kind] = v
	}
	return byKind, nil
}
