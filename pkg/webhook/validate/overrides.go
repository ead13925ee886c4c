package validate

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

func overridePolicies() rules[policyv1alpha1.OverridePolicy] {
	type policy = policyv1alpha1.OverridePolicy
	r := plain(func(p *policy) any { return p.Spec }, func(p *policy) field.ErrorList { return overrideSpec(&p.Spec, p.Namespace) })
	r.advice = func(_ context.Context, p *policy) []string { return overrideAdvice(&p.Spec) }
	return r
}

func clusterOverridePolicies() rules[policyv1alpha1.ClusterOverridePolicy] {
	type policy = policyv1alpha1.ClusterOverridePolicy
	r := plain(func(p *policy) any { return p.Spec }, func(p *policy) field.ErrorList { return overrideSpec(&p.Spec, "") })
	r.advice = func(_ context.Context, p *policy) []string { return overrideAdvice(&p.Spec) }
	return r
}

// overrideSpec checks what both scopes of policy have in common (spec:
// behaviour/08 8.3). The namespace is that of the policy, empty for a
// cluster-scoped one.
func overrideSpec(s *policyv1alpha1.OverrideSpec, namespace string) field.ErrorList {
	path := field.NewPath("spec")
	errs := selectors(s.ResourceSelectors, namespace, path.Child("resourceSelectors"))
	if len(s.OverrideRules) > 0 {
		const instead = "overrideRules have a targetCluster and overriders each: move it there"
		if s.TargetCluster != nil {
			errs = append(errs, field.Forbidden(path.Child("targetCluster"), "overrideRules and targetCluster can't co-exist; "+instead))
		}
		// A fieldOverrider alone is let pass, with a warning.
		if o := s.Overriders; len(o.Plaintext)+len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+
			len(o.LabelsOverrider)+len(o.AnnotationsOverrider) > 0 {
			errs = append(errs, field.Forbidden(path.Child("overriders"), "overrideRules and overriders can't co-exist; "+instead))
		}
	}
	errs = append(errs, affinity(s.TargetCluster, path.Child("targetCluster"))...)
	errs = append(errs, overriders(&s.Overriders, path.Child("overriders"))...)
	for i := range s.OverrideRules {
		path := path.Child("overrideRules").Index(i)
		errs = append(errs, affinity(s.OverrideRules[i].TargetCluster, path.Child("targetCluster"))...)
		errs = append(errs, overriders(&s.OverrideRules[i].Overriders, path.Child("overriders"))...)
	}
	return errs
}

func overrideAdvice(s *policyv1alpha1.OverrideSpec) []string {
	if len(s.OverrideRules) > 0 && len(s.Overriders.FieldOverrider) > 0 {
		return []string{"spec.overriders has no effect beside spec.overrideRules: move its fieldOverrider into a rule"}
	}
	return nil
}

func overriders(o *policyv1alpha1.Overriders, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, l := range o.LabelsOverrider {
		errs = append(errs, metav1validation.ValidateLabels(l.Value, path.Child("labelsOverrider").Index(i).Child("value"))...)
	}
	for i, a := range o.AnnotationsOverrider {
		errs = append(errs, validation.ValidateAnnotations(a.Value, path.Child("annotationsOverrider").Index(i).Child("value"))...)
	}
	for i, image := range o.ImageOverrider {
		if image.Predicate != nil {
			errs = append(errs, pointer(image.Predicate.Path, path.Child("imageOverrider").Index(i).Child("predicate", "path"))...)
		}
	}
	for i, p := range o.Plaintext {
		errs = append(errs, pointer(p.Path, path.Child("plaintext").Index(i).Child("path"))...)
	}
	for i, f := range o.FieldOverrider {
		errs = append(errs, fieldOverrider(&f, path.Child("fieldOverrider").Index(i))...)
	}
	return errs
}

func fieldOverrider(f *policyv1alpha1.FieldOverrider, path *field.Path) field.ErrorList {
	errs := pointer(f.FieldPath, path.Child("fieldPath"))
	switch {
	case len(f.JSON) == 0 && len(f.YAML) == 0:
		errs = append(errs, field.Required(path, "must set either json or yaml, whichever the document is"))
	case len(f.JSON) > 0 && len(f.YAML) > 0:
		errs = append(errs, field.Forbidden(path.Child("yaml"), "must not be set together with json: a document is one of them"))
	}
	errs = append(errs, documentPatch(f.JSON, path.Child("json"))...)
	return append(errs, documentPatch(f.YAML, path.Child("yaml"))...)
}

func documentPatch(ops []policyv1alpha1.DocumentPatchOperation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, op := range ops {
		path := path.Index(i)
		errs = append(errs, pointer(op.SubPath, path.Child("subPath"))...)
		value := path.Child("value")
		switch op.Operator {
		case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
			if len(op.Value.Raw) == 0 {
				errs = append(errs, field.Required(value, "what to "+string(op.Operator)))
			}
		case policyv1alpha1.OverriderOpRemove:
			if len(op.Value.Raw) > 0 {
				errs = append(errs, field.Forbidden(value, "must not be set with remove"))
			}
		default:
			errs = append(errs, field.NotSupported(path.Child("operator"), op.Operator, []policyv1alpha1.OverriderOperator{
				policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpRemove, policyv1alpha1.OverriderOpReplace,
			}))
		}
	}
	return errs
}

// pointer checks a JSON pointer (RFC 6901) to something inside a document.
func pointer(p string, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(p, "/") {
		return field.ErrorList{field.Invalid(path, p, "must be a JSON pointer, which begins with a slash: /spec/replicas")}
	}
	// What follows a tilde is 0 or 1: they stand for ~ and /.
	for rest := p; ; {
		i := strings.IndexByte(rest, '~')
		if i < 0 {
			return nil
		}
		rest = rest[i+1:]
		if !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "1") {
			return field.ErrorList{field.Invalid(path, p, "must be a JSON pointer: write ~0 for a tilde, ~1 for a slash inside a name")}
		}
	}
}
