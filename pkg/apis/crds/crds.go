// Package crds holds the CustomResourceDefinitions of the control plane's own
// API, as they are generated from the types (tools/generate.sh). They are part of
// the program, so that installing them needs no file and no download.
//
// The groups cluster.karmada.io and search.karmada.io are not among them: they
// are served by aggregated API servers.
package crds

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed bases/*.yaml
var bases embed.FS

// All returns every definition, sorted by name. The caller may change them: each
// call decodes them anew. An error means that the program was built wrongly.
//
// Their conversion strategy is None, also of the bindings, which have two
// versions: whoever runs the webhook that converts between them says so.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return decode(func(string) bool { return true })
}

// Groups returns the definitions of the API groups of these names, such as
// policy.karmada.io, sorted by name. A group without any is an error, so that a
// typing mistake does not go unnoticed.
func Groups(names ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	out, err := decode(func(group string) bool { return slices.Contains(names, group) })
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Spec.Group == name }) {
			return nil, fmt.Errorf("API group %q has no CustomResourceDefinitions", name)
		}
	}
	return out, nil
}

// decode returns the definitions of the groups that are wanted. The name of each
// file starts with its group, so that no others need be decoded.
func decode(wanted func(group string) bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := bases.ReadDir("bases")
	if err != nil {
		return nil, fmt.Errorf("list embedded CustomResourceDefinitions: %w", err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		if group, _, _ := strings.Cut(f.Name(), "_"); !wanted(group) {
			continue
		}
		b, err := bases.ReadFile(path.Join("bases", f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read embedded CustomResourceDefinition %s: %w", f.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, crd); err != nil {
			return nil, fmt.Errorf("decode embedded CustomResourceDefinition %s: %w", f.Name(), err)
		}
		out = append(out, crd)
	}
	slices.SortFunc(out, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}
