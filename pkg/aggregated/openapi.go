package aggregated

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/karmadactl/karmadactl/pkg/generated/openapi"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// addOpenAPI makes a server publish the schema of what it serves: what explain
// prints, and what server-side apply merges by.
func addOpenAPI(c *genericapiserver.Config) error {
	// Of the wire only: nobody is to see an internal version.
	scheme, err := newWireScheme()
	if err != nil {
		return err
	}
	namer := openapinamer.NewDefinitionNamer(scheme)
	name := func(name string) (string, spec.Extensions) {
		if strings.Contains(name, "/") {
			name = openapiutil.ToRESTFriendlyName(name) // ours go by their Go names until here
		}
		return namer.GetDefinitionName(name)
	}
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIConfig.GetDefinitionName, c.OpenAPIV3Config.GetDefinitionName = name, name
	for _, info := range []*spec.Info{c.OpenAPIConfig.Info, c.OpenAPIV3Config.Info} {
		info.Title = "Karmada"
		info.Version = version.Get().GitVersion
	}
	return nil
}

// definitions are our types' and those that they are made of.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := kubeopenapi.GetOpenAPIDefinitions(ref)
	maps.Copy(all, ours(ref))
	all[corev1.Taint{}.OpenAPIModelName()] = taintDefinition(ref)
	return all
}

// ours are the generated definitions. They go by their Go names and refer to
// others by theirs, while a schema on the wire, and whatever is defined in
// Kubernetes, goes by names of the wire.
func ours(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return ref(openapiutil.ToRESTFriendlyName(name)) })
	for _, d := range all {
		for i, name := range d.Dependencies {
			d.Dependencies[i] = kubeName(name)
		}
	}
	return all
}

func kubeName(name string) string {
	if !strings.HasPrefix(name, "k8s.io/") {
		return name
	}
	return openapiutil.ToRESTFriendlyName(name)
}

// taintDefinition is the one type of the core group that a Cluster has.
func taintDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	docs := corev1.Taint{}.SwaggerDoc()
	text := func(name string, values ...any) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Description: docs[name], Type: []string{"string"}, Enum: values}}
	}
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: docs[""],
			Type:        []string{"object"},
			Properties: map[string]spec.Schema{
				"key":   text("key"),
				"value": text("value"),
				"effect": text("effect", string(corev1.TaintEffectNoExecute), string(corev1.TaintEffectNoSchedule),
					string(corev1.TaintEffectPreferNoSchedule)),
				"timeAdded": {SchemaProps: spec.SchemaProps{
					Description: docs["timeAdded"],
					Ref:         ref(metav1.Time{}.OpenAPIModelName()),
				}},
			},
			Required: []string{"key", "effect"},
		}},
		Dependencies: []string{metav1.Time{}.OpenAPIModelName()},
	}
}

// checkDefinitions reports references of our types that lead nowhere, which
// would otherwise end the process while the server starts.
func checkDefinitions(all map[string]common.OpenAPIDefinition) error {
	for name := range ours(func(string) spec.Ref { return spec.Ref{} }) {
		for _, needed := range all[name].Dependencies {
			if _, ok := all[needed]; !ok {
				return fmt.Errorf("the schema of %s refers to %s, which has none", name, needed)
			}
		}
	}
	return nil
}
