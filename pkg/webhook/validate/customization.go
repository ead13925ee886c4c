package validate

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

// A script is what a customization says for one operation.
type script struct {
	operation configv1alpha1.InterpreterOperation
	// field is its name among the customizations, function what it has to define.
	field, function string
	lua             string
}

// scriptsOf returns the scripts of a customization. An empty one is none (spec:
// behaviour/06 6.3).
func scriptsOf(c *configv1alpha1.CustomizationRules) []script {
	var all []script
	add := func(op configv1alpha1.InterpreterOperation, field, function, lua string) {
		if strings.TrimSpace(lua) != "" {
			all = append(all, script{op, field, function, lua})
		}
	}
	if r := c.Retention; r != nil {
		add(configv1alpha1.InterpreterOperationRetain, "retention", "Retain", r.LuaScript)
	}
	if r := c.ReplicaResource; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretReplica, "replicaResource", "GetReplicas", r.LuaScript)
	}
	if r := c.ComponentResource; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretComponent, "componentResource", "GetComponents", r.LuaScript)
	}
	if r := c.ReplicaRevision; r != nil {
		add(configv1alpha1.InterpreterOperationReviseReplica, "replicaRevision", "ReviseReplica", r.LuaScript)
	}
	if r := c.StatusReflection; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretStatus, "statusReflection", "ReflectStatus", r.LuaScript)
	}
	if r := c.StatusAggregation; r != nil {
		add(configv1alpha1.InterpreterOperationAggregateStatus, "statusAggregation", "AggregateStatus", r.LuaScript)
	}
	if r := c.HealthInterpretation; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretHealth, "healthInterpretation", "InterpretHealth", r.LuaScript)
	}
	if r := c.DependencyInterpretation; r != nil {
		add(configv1alpha1.InterpreterOperationInterpretDependency, "dependencyInterpretation", "GetDependencies", r.LuaScript)
	}
	return all
}

func customizations(others client.Reader) rules[configv1alpha1.ResourceInterpreterCustomization] {
	type customization = configv1alpha1.ResourceInterpreterCustomization
	return rules[customization]{
		content: func(c *customization) any { return c.Spec },
		spec: func(ctx context.Context, c *customization) (field.ErrorList, error) {
			errs := customizationSpec(&c.Spec)
			conflicts, err := conflicts(ctx, others, c)
			return append(errs, conflicts...), err
		},
		advice: func(_ context.Context, c *customization) []string {
			var warnings []string
			for _, s := range scriptsOf(&c.Spec.Customizations) {
				// There are many ways to define a function. All of them say its name.
				if !strings.Contains(s.lua, s.function) {
					warnings = append(warnings, fmt.Sprintf("spec.customizations.%s.luaScript does not define the function %s, which is what is called", s.field, s.function))
				}
			}
			return warnings
		},
	}
}

// customizationSpec checks what can be said of a customization alone.
func customizationSpec(s *configv1alpha1.ResourceInterpreterCustomizationSpec) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("spec", "target")
	if s.Target.APIVersion == "" {
		errs = append(errs, field.Required(target.Child("apiVersion"), "the group and version of the kind, such as apps/v1"))
	} else if _, err := schema.ParseGroupVersion(s.Target.APIVersion); err != nil {
		errs = append(errs, field.Invalid(target.Child("apiVersion"), s.Target.APIVersion, "must be a group and version, such as apps/v1"))
	}
	if s.Target.Kind == "" {
		errs = append(errs, field.Required(target.Child("kind"), "the kind that the scripts are for"))
	}
	for _, script := range scriptsOf(&s.Customizations) {
		if err := compile(script.lua); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec", "customizations", script.field, "luaScript"), field.OmitValueType{}, err.Error()))
		}
	}
	return errs
}

// conflicts says which other customizations have a script for the same operation
// on the same kind: only one of the two would ever be used. Scripts that tell
// dependencies all are (spec: behaviour/06 6.3, 08 8.3).
func conflicts(ctx context.Context, others client.Reader, c *configv1alpha1.ResourceInterpreterCustomization) (field.ErrorList, error) {
	scripts := scriptsOf(&c.Spec.Customizations)
	if len(scripts) == 0 {
		return nil, nil
	}
	var list configv1alpha1.ResourceInterpreterCustomizationList
	if err := others.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the other ResourceInterpreterCustomizations, which this one must not contradict: %w", err)
	}
	var errs field.ErrorList
	for _, other := range list.Items {
		if other.Name == c.Name || other.Spec.Target != c.Spec.Target || !other.DeletionTimestamp.IsZero() {
			continue
		}
		taken := map[configv1alpha1.InterpreterOperation]bool{}
		for _, s := range scriptsOf(&other.Spec.Customizations) {
			taken[s.operation] = s.operation != configv1alpha1.InterpreterOperationInterpretDependency
		}
		for _, s := range scripts {
			if taken[s.operation] {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "customizations", s.field),
					fmt.Sprintf("conflicting with InterpreterOperation(%s) of existing ResourceInterpreterCustomization(%s)", s.operation, other.Name)))
			}
		}
	}
	return errs, nil
}
