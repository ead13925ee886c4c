package join

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/registration"
)

// A planned object is one of a dry run.
type planned struct {
	Action registration.Action `json:"action"`
	Object map[string]any      `json:"object"`
}

// printPlan prints what would be done to each side.
func printPlan(out io.Writer, p registration.Plan, format string) error {
	scheme, err := registration.NewScheme()
	if err != nil {
		return err
	}
	var both struct {
		Member       []planned `json:"member"`
		ControlPlane []planned `json:"controlPlane"`
	}
	var lines, documents strings.Builder
	sides := []struct {
		name    string
		changes []registration.Change
		to      *[]planned
	}{{"member cluster", p.Member, &both.Member}, {"control plane", p.ControlPlane, &both.ControlPlane}}
	for _, side := range sides {
		for _, c := range side.changes {
			object, err := clean(scheme, c.Object)
			if err != nil {
				return err
			}
			*side.to = append(*side.to, planned{c.Action, object})
			data, err := yaml.Marshal(object)
			if err != nil {
				return fmt.Errorf("encode %s: %w", c.Object.GetName(), err)
			}
			fmt.Fprintf(&documents, "---\n# %s: %s\n%s", side.name, c.Action, data)
			name, err := nameOf(scheme, c.Object)
			if err != nil {
				return err
			}
			fmt.Fprintln(&lines, name)
		}
	}
	switch format {
	case "json":
		data, err := json.MarshalIndent(both, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the plan: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s\n", data)
		return err
	case "name":
		_, err = io.WriteString(out, lines.String())
		return err
	}
	_, err = io.WriteString(out, documents.String())
	return err
}

// printObject prints one object in a format for programs.
func printObject(out io.Writer, o client.Object, format string) error {
	scheme, err := registration.NewScheme()
	if err != nil {
		return err
	}
	if format == "name" {
		name, err := nameOf(scheme, o)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, name)
		return err
	}
	object, err := clean(scheme, o)
	if err != nil {
		return err
	}
	if format == "json" {
		data, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", o.GetName(), err)
		}
		_, err = fmt.Fprintf(out, "%s\n", data)
		return err
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", o.GetName(), err)
	}
	_, err = out.Write(data)
	return err
}

// nameOf names an object as kubectl does.
func nameOf(scheme *runtime.Scheme, o client.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", o.GetName(), err)
	}
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return kind + "/" + o.GetName(), nil
}

// clean returns an object as it would be in a file, without secrets.
func clean(scheme *runtime.Scheme, o client.Object) (map[string]any, error) {
	o, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("copy %T: it is no object", o)
	}
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.GetName(), err)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	o.SetManagedFields(nil)
	if s, ok := o.(*corev1.Secret); ok {
		hide(s)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.GetName(), err)
	}
	return object, nil
}

// hide says which values a Secret has, and nothing of them.
func hide(s *corev1.Secret) {
	keys := slices.Sorted(maps.Keys(s.Data))
	s.Data = nil
	for _, key := range keys {
		if s.StringData == nil {
			s.StringData = map[string]string{}
		}
		s.StringData[key] = "<not shown>"
	}
}
