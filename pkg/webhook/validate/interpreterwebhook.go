package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverwebhook "k8s.io/apiserver/pkg/util/webhook"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

func interpreterWebhooks() rules[configv1alpha1.ResourceInterpreterWebhookConfiguration] {
	type configuration = configv1alpha1.ResourceInterpreterWebhookConfiguration
	return plain(func(c *configuration) any { return c.Webhooks }, func(c *configuration) field.ErrorList {
		var errs field.ErrorList
		seen := sets.New[string]()
		for i := range c.Webhooks {
			path := field.NewPath("webhooks").Index(i)
			if name := c.Webhooks[i].Name; seen.Has(name) {
				errs = append(errs, field.Duplicate(path.Child("name"), name))
			} else {
				seen.Insert(name)
			}
			errs = append(errs, interpreterWebhook(&c.Webhooks[i], path)...)
		}
		return errs
	})
}

// interpreterWebhook checks one webhook, as the API server does its own (spec:
// behaviour/06 6.4, 08 8.3).
func interpreterWebhook(w *configv1alpha1.ResourceInterpreterWebhook, path *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), w.Name)
	client := path.Child("clientConfig")
	switch c := w.ClientConfig; {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(client, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, apiserverwebhook.ValidateWebhookURL(client.Child("url"), *c.URL, true)...)
	default:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		errs = append(errs, apiserverwebhook.ValidateWebhookService(client.Child("service"), c.Service.Namespace, c.Service.Name, c.Service.Path, port)...)
	}
	for i := range w.Rules {
		errs = append(errs, interpreterRule(&w.Rules[i], path.Child("rules").Index(i))...)
	}
	if t := w.TimeoutSeconds; t != nil && (*t < 1 || *t > 30) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t, "must be between 1 and 30 seconds"))
	}
	return append(errs, contextVersions(w.InterpreterContextVersions, path.Child("interpreterContextVersions"))...)
}

func interpreterRule(r *configv1alpha1.RuleWithOperations, path *field.Path) field.ErrorList {
	supported := []configv1alpha1.InterpreterOperation{
		configv1alpha1.InterpreterOperationAll, configv1alpha1.InterpreterOperationInterpretReplica,
		configv1alpha1.InterpreterOperationInterpretComponent, configv1alpha1.InterpreterOperationReviseReplica,
		configv1alpha1.InterpreterOperationRetain, configv1alpha1.InterpreterOperationAggregateStatus,
		configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationInterpretHealth,
		configv1alpha1.InterpreterOperationInterpretDependency,
	}
	errs := wildcard(r.Operations, "operations", path.Child("operations"))
	for i, op := range r.Operations {
		if !slices.Contains(supported, op) {
			errs = append(errs, field.NotSupported(path.Child("operations").Index(i), op, supported))
		}
	}
	errs = append(errs, wildcard(r.APIGroups, "API groups", path.Child("apiGroups"))...)
	errs = append(errs, wildcard(r.APIVersions, "API versions", path.Child("apiVersions"))...)
	errs = append(errs, noneEmpty(r.APIVersions, path.Child("apiVersions"))...)
	errs = append(errs, wildcard(r.Kinds, "kinds", path.Child("kinds"))...)
	return append(errs, noneEmpty(r.Kinds, path.Child("kinds"))...)
}

// wildcard checks a list of names that is either "*" or a list of others.
func wildcard[S ~string](list []S, what string, path *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, "\"*\" stands for all")}
	case len(list) > 1 && slices.Contains(list, "*"):
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

func noneEmpty(list []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range list {
		if s == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
		}
	}
	return errs
}

// contextVersions checks the versions of questions that a webhook understands. We
// ask in one.
func contextVersions(versions []string, path *field.Path) field.ErrorList {
	ours := configv1alpha1.GroupVersion.Version
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must include "+ours)}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range versions {
		if seen.Has(v) {
			errs = append(errs, field.Duplicate(path.Index(i), v))
			continue
		}
		seen.Insert(v)
		errs = append(errs, invalid(path.Index(i), v, validation.IsDNS1035Label(v))...)
	}
	if !seen.Has(ours) {
		errs = append(errs, field.Invalid(path, versions, "must include "+ours))
	}
	return errs
}
