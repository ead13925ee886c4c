package crds

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the tables in testdata instead of comparing with them")

// TestTables holds the wire format still. Each version of each kind is printed as
// a table, one line for each field, and compared with the one in testdata. A
// change that is meant is accepted by
//
//	go test ./pkg/apis/crds -run TestTables -update
//
// and then read in the diff of testdata: a line that goes, or that becomes
// stricter, breaks somebody's manifest.
func TestTables(t *testing.T) {
	installed, err := All()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("installed", func(t *testing.T) {
		compareTables(t, filepath.Join("testdata", "tables", "installed"), installed)
	})
	t.Run("aggregated", func(t *testing.T) {
		compareTables(t, filepath.Join("testdata", "tables", "aggregated"), readDefinitions(t, filepath.Join("testdata", "aggregated")))
	})
}

// readDefinitions reads the definitions of kinds that aggregated API servers
// serve. They exist for these tests alone.
func readDefinitions(t *testing.T, dir string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, crd); err != nil {
			t.Fatalf("decode %s: %v", f, err)
		}
		out = append(out, crd)
	}
	return out
}

// compareTables compares the tables of crds with the files in dir: each of them,
// and no others.
func compareTables(t *testing.T, dir string, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	got := map[string]string{}
	for _, crd := range crds {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			name := fmt.Sprintf("%s_%s_%s.tsv", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
			got[name] = table(crd, v)
		}
	}

	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range got {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}

	want := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.Base(f)] = string(b)
	}

	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, ok := got[name]
		if !ok {
			t.Errorf("%s: a kind or version that users rely on is gone", name)
			continue
		}
		if diff := diffLines(want[name], text); diff != "" {
			t.Errorf("%s: the wire format has changed; if that is meant run this test with -update (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: a new kind or version; run this test with -update and commit its table", name)
		}
	}
}

// diffLines returns the lines that only one of two tables has. Every line names
// its field, so no others are needed around it.
func diffLines(want, got string) string {
	var out strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, l := range w {
		if !slices.Contains(g, l) {
			fmt.Fprintf(&out, "- %s\n", l)
		}
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			fmt.Fprintf(&out, "+ %s\n", l)
		}
	}
	if out.Len() == 0 && want != got {
		return "the same lines in another order\n"
	}
	return out.String()
}

// table prints one version of a definition. After a head of what is not a field,
// a line has the field's path, its type, and what else holds for it, separated by
// tabs.
func table(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	n := crd.Spec.Names
	var subresources []string
	if v.Subresources != nil {
		if v.Subresources.Scale != nil {
			subresources = append(subresources, "scale")
		}
		if v.Subresources.Status != nil {
			subresources = append(subresources, "status")
		}
	}
	lines := []string{fmt.Sprintf("# %s/%s %s plural=%s singular=%s shortNames=%s categories=%s scope=%s served=%s storage=%s deprecated=%s subresources=%s",
		crd.Spec.Group, v.Name, n.Kind, n.Plural, n.Singular, strings.Join(n.ShortNames, ","), strings.Join(n.Categories, ","),
		crd.Spec.Scope, boolean(v.Served), boolean(v.Storage), boolean(v.Deprecated), strings.Join(subresources, ","))}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		s := v.Subresources.Scale
		lines = append(lines, fmt.Sprintf("# scale %s %s", s.SpecReplicasPath, s.StatusReplicasPath))
	}
	for _, c := range v.AdditionalPrinterColumns {
		lines = append(lines, fmt.Sprintf("# column %s %s %s priority=%d", c.Name, c.Type, c.JSONPath, c.Priority))
	}
	for _, f := range v.SelectableFields {
		lines = append(lines, "# selectableField "+f.JSONPath)
	}
	lines = appendSchema(lines, "", v.Schema.OpenAPIV3Schema, false)
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, ".apiVersion\t") || strings.HasPrefix(l, ".kind\t") || strings.HasPrefix(l, ".metadata\t")
	})
	return strings.Join(lines, "\n") + "\n"
}

func appendSchema(lines []string, path string, s *apiextensionsv1.JSONSchemaProps, required bool) []string {
	lines = append(lines, strings.Join([]string{path, typeOf(s), strings.Join(facts(s, required), " ")}, "\t"))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		lines = appendSchema(lines, path+"."+name, &p, slices.Contains(s.Required, name))
	}
	if s.Items != nil && s.Items.Schema != nil {
		lines = appendSchema(lines, path+"[]", s.Items.Schema, false)
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil && len(a.Schema.Properties) > 0 {
		lines = appendSchema(lines, path+"{}", a.Schema, false)
	}
	return lines
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Type != "":
		return s.Type
	case s.XIntOrString:
		return "int-or-string"
	default:
		return "any"
	}
}

func facts(s *apiextensionsv1.JSONSchemaProps, required bool) []string {
	var out []string
	add := func(key, value string) { out = append(out, key+"="+value) }

	if required {
		out = append(out, "required")
	}
	if s.Enum != nil {
		var values []string
		for _, e := range s.Enum {
			values = append(values, strings.Trim(string(e.Raw), `"`))
		}
		add("enum", strings.Join(values, "|"))
	}
	if s.Default != nil {
		add("default", literal(s.Default.Raw))
	}
	if s.Format != "" {
		add("format", s.Format)
	}
	if s.Minimum != nil {
		add("minimum", strconv.FormatFloat(*s.Minimum, 'f', -1, 64))
	}
	if s.Maximum != nil {
		add("maximum", strconv.FormatFloat(*s.Maximum, 'f', -1, 64))
	}
	for _, limit := range []struct {
		key   string
		value *int64
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}} {
		if limit.value != nil {
			add(limit.key, strconv.FormatInt(*limit.value, 10))
		}
	}
	if s.Pattern != "" {
		add("pattern", s.Pattern)
	}
	for _, limit := range []struct {
		key   string
		value *int64
	}{{"minItems", s.MinItems}, {"maxItems", s.MaxItems}} {
		if limit.value != nil {
			add(limit.key, strconv.FormatInt(*limit.value, 10))
		}
	}
	if s.Nullable {
		add("nullable", "True")
	}
	if s.XPreserveUnknownFields != nil {
		add("preserve-unknown-fields", boolean(*s.XPreserveUnknownFields))
	}
	if s.XEmbeddedResource {
		add("embedded-resource", "True")
	}
	if s.XListType != nil {
		add("list-type", *s.XListType)
	}
	if s.XMapType != nil {
		add("map-type", *s.XMapType)
	}
	if s.XIntOrString {
		add("int-or-string", "True")
	}
	if s.XListMapKeys != nil {
		add("list-map-keys", strings.Join(s.XListMapKeys, ","))
	}
	if s.XValidations != nil {
		var rules []string
		for _, r := range s.XValidations {
			rules = append(rules, strings.ReplaceAll(r.Rule, "\n", " "))
		}
		add("CEL", strings.Join(rules, "; "))
	}
	if a := s.AdditionalProperties; s.Type == "object" && a != nil && a.Schema != nil {
		of := a.Schema.Type
		if of == "" {
			of = "any"
		}
		add("map-of", of)
	}
	return out
}

// literal prints a JSON value as the published tables of this API do.
func literal(raw []byte) string {
	switch text := string(raw); {
	case text == "true", text == "false":
		return boolean(text == "true")
	case strings.HasPrefix(text, `"`):
		return "'" + strings.Trim(text, `"`) + "'"
	default:
		return text
	}
}

func boolean(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
