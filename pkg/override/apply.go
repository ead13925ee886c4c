package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// Applied is one rule that was applied, as annotations of Works note it.
type Applied struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// A Result is an object as one cluster is to have it.
type Result struct {
	// Object is the object that Apply was given when no rule applies to it, and
	// else a new one.
	Object *unstructured.Unstructured
	// Cluster and Namespaced are the rules that were applied, of
	// ClusterOverridePolicies and of OverridePolicies, sorted by policy and in
	// the order of its rules. They share memory with the policies.
	Cluster, Namespaced []Applied
}

// Annotations returns the annotations by which a Work tells what was applied to
// its object (spec: behaviour/07 7.1). One for which nothing was is not there.
func (r Result) Annotations() (map[string]string, error) {
	all := map[string]string{}
	for annotation, applied := range map[string][]Applied{
		names.AppliedClusterOverridesAnnotation: r.Cluster,
		names.AppliedOverridesAnnotation:        r.Namespaced,
	} {
		if len(applied) == 0 {
			continue
		}
		text, err := json.Marshal(applied)
		if err != nil {
			return nil, fmt.Errorf("write annotation %s: %w", annotation, err)
		}
		all[annotation] = string(text)
	}
	return all, nil
}

// Apply makes an object what a cluster is to have, by the policies that select
// it: all ClusterOverridePolicies first, and then, for an object in a
// namespace, the OverridePolicies of that namespace; among these the less close
// match first, then the lower name, then the rules in their order. What comes
// later sees what came before, and so wins (spec: behaviour/07 7.1, 7.2).
// Policies that are being deleted count until they are gone.
//
// Neither obj nor the policies are changed. The error is an *Error.
func Apply(
	obj *unstructured.Unstructured, c *clusterv1alpha1.Cluster,
	cops []policyv1alpha1.ClusterOverridePolicy, ops []policyv1alpha1.OverridePolicy,
) (Result, error) {
	r := Result{Object: obj}
	s := policy.SubjectOf(obj)
	var err error
	if r.Object, r.Cluster, err = applyAll(obj, obj, c, selecting(cops, "", s)); err != nil {
		return Result{}, err
	}
	if s.Namespace == "" {
		return r, nil
	}
	if r.Object, r.Namespaced, err = applyAll(obj, r.Object, c, selecting(ops, s.Namespace, s)); err != nil {
		return Result{}, err
	}
	return r, nil
}

// selecting returns the policies of a namespace that select a subject, in the
// order in which they are applied.
func selecting[T any, P interface {
	*T
	policy.Override
}](all []T, namespace string, s policy.Subject) []policy.Override {
	type match struct {
		policy policy.Override
		level  policy.Level
	}
	var matches []match
	for i := range all {
		p := P(&all[i])
		if p.GetNamespace() != namespace {
			continue
		}
		if level := policy.OverrideLevel(p.OverrideSpec(), s); level != policy.None {
			matches = append(matches, match{policy: p, level: level})
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.level, b.level), strings.Compare(a.policy.GetName(), b.policy.GetName()))
	})
	ordered := make([]policy.Override, 0, len(matches))
	for _, m := range matches {
		ordered = append(ordered, m.policy)
	}
	return ordered
}

// applyAll applies policies in their order to obj, and returns a new object if
// any rule applies. It makes one unless obj is no longer the original.
func applyAll(
	original, obj *unstructured.Unstructured, c *clusterv1alpha1.Cluster, policies []policy.Override,
) (*unstructured.Unstructured, []Applied, error) {
	var applied []Applied
	for _, p := range policies {
		for i, rule := range rulesOf(p.OverrideSpec()) {
			index := i
			if len(p.OverrideSpec().OverrideRules) == 0 {
				index = -1
			}
			ok, err := policy.MatchesCluster(rule.TargetCluster, c)
			if err != nil {
				return nil, nil, newError(p, index, &failure{field: "targetCluster", err: err})
			}
			if !ok || isEmpty(&rule.Overriders) {
				continue
			}
			if obj == original {
				obj = obj.DeepCopy()
			}
			if f := override(obj, &rule.Overriders); f != nil {
				return nil, nil, newError(p, index, f)
			}
			applied = append(applied, Applied{PolicyName: p.GetName(), Overriders: rule.Overriders})
		}
	}
	slices.SortStableFunc(applied, func(a, b Applied) int { return strings.Compare(a.PolicyName, b.PolicyName) })
	return obj, applied, nil
}

// rulesOf returns the rules of a policy; the deprecated pair is one.
func rulesOf(spec *policyv1alpha1.OverrideSpec) []policyv1alpha1.RuleWithCluster {
	if len(spec.OverrideRules) > 0 {
		return spec.OverrideRules
	}
	return []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}}
}

func isEmpty(o *policyv1alpha1.Overriders) bool {
	return len(o.ImageOverrider)+len(o.CommandOverrider)+len(o.ArgsOverrider)+len(o.LabelsOverrider)+
		len(o.AnnotationsOverrider)+len(o.FieldOverrider)+len(o.Plaintext) == 0
}

// override changes an object by one rule, in the order that is fixed for
// overriders (spec: behaviour/07 7.2).
func override(obj *unstructured.Unstructured, o *policyv1alpha1.Overriders) *failure {
	steps := []func() *failure{
		func() *failure { return overrideImages(obj, o.ImageOverrider) },
		func() *failure { return overrideLists(obj, "command", "commandOverrider", o.CommandOverrider) },
		func() *failure { return overrideLists(obj, "args", "argsOverrider", o.ArgsOverrider) },
		func() *failure { return overrideMetadata(obj, "labels", "labelsOverrider", o.LabelsOverrider) },
		func() *failure {
			return overrideMetadata(obj, "annotations", "annotationsOverrider", o.AnnotationsOverrider)
		},
		func() *failure { return overrideDocuments(obj, o.FieldOverrider) },
		func() *failure { return overrideFields(obj, o.Plaintext) },
	}
	for _, step := range steps {
		if f := step(); f != nil {
			return f
		}
	}
	return nil
}
