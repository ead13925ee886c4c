package validate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// bindings are the rules of ResourceBindings but for quotas (spec: behaviour/08
// 8.3).
func bindings(gate featuregate.FeatureGate) rules[workv1alpha2.ResourceBinding] {
	type binding = workv1alpha2.ResourceBinding
	r := plain(func(b *binding) any { return b.Spec.Components }, func(b *binding) field.ErrorList {
		if !gate.Enabled(features.MultiplePodTemplatesScheduling) {
			return nil
		}
		return components(b.Spec.Components, field.NewPath("spec", "components"))
	})
	r.quantities = []string{"resourceRequest"}
	r.change = func(was, now *binding) field.ErrorList {
		text, ok := now.Annotations[names.DependenciesAnnotation]
		if !ok || was != nil && was.Annotations[names.DependenciesAnnotation] == text {
			return nil
		}
		return dependencies(text, field.NewPath("metadata", "annotations").Key(names.DependenciesAnnotation))
	}
	return r
}

func components(cs []workv1alpha2.Component, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range cs {
		path := path.Index(i).Child("name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(path, "component names are how their replicas are told apart"))
		case seen.Has(c.Name):
			errs = append(errs, field.Duplicate(path, c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// dependencies checks the list of what the template of a binding refers to.
func dependencies(text string, path *field.Path) field.ErrorList {
	var list []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return field.ErrorList{field.Invalid(path, brief.Text(text, 200), fmt.Sprintf("must be a JSON list of references: %v", err))}
	}
	return nil
}
