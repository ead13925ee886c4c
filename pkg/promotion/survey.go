package promotion

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A survey is what was learnt of the control plane: a run that promotes many
// objects asks about each namespace once. Its keys are namespaces, "" for what is
// in none.
type survey struct {
	policies   map[string][]policy.Object
	overrides  map[string]overrides
	namespaces map[string]bool
	made       map[string]bool // items, by id
}

type overrides struct {
	cluster    []policyv1alpha1.ClusterOverridePolicy
	namespaced []policyv1alpha1.OverridePolicy
}

func (s *survey) noteMade(i Item) {
	if s.made == nil {
		s.made = map[string]bool{}
	}
	s.made[i.id()] = true
}

// remembered returns what is known under a key, or else what ask says.
func remembered[T any](m *map[string]T, key string, ask func() (T, error)) (T, error) {
	if known, ok := (*m)[key]; ok {
		return known, nil
	}
	answer, err := ask()
	if err != nil {
		return answer, err
	}
	if *m == nil {
		*m = map[string]T{}
	}
	(*m)[key] = answer
	return answer, nil
}

// hasNamespace says whether the control plane has a namespace.
func (p *Promoter) hasNamespace(ctx context.Context, name string) (bool, error) {
	return remembered(&p.known.namespaces, name, func() (bool, error) {
		_, err := get(ctx, p.ControlPlane, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, client.ObjectKey{Name: name})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read namespace %s of the control plane: %w", name, err)
		}
		return true, nil
	})
}

// policies returns the policies that are asked about a template in a namespace.
func (p *Promoter) policies(ctx context.Context, namespace string) ([]policy.Object, error) {
	return remembered(&p.known.policies, namespace, func() ([]policy.Object, error) {
		return listPolicies(ctx, p.ControlPlane, namespace)
	})
}

// listPolicies lists the propagation policies of a namespace, or those that are in
// none.
func listPolicies(ctx context.Context, c client.Reader, namespace string) ([]policy.Object, error) {
	var all []policy.Object
	if namespace == "" {
		var list policyv1alpha1.ClusterPropagationPolicyList
		if err := c.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("list the ClusterPropagationPolicies of the control plane: %w", err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	}
	var list policyv1alpha1.PropagationPolicyList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the PropagationPolicies in namespace %s of the control plane: %w", namespace, err)
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// overridesOf returns the override policies that are asked about a template in a
// namespace.
func (p *Promoter) overridesOf(ctx context.Context, namespace string) (overrides, error) {
	return remembered(&p.known.overrides, namespace, func() (overrides, error) {
		var cluster policyv1alpha1.ClusterOverridePolicyList
		if err := p.ControlPlane.List(ctx, &cluster); err != nil {
			return overrides{}, fmt.Errorf("list the ClusterOverridePolicies of the control plane: %w", err)
		}
		if namespace == "" {
			return overrides{cluster: cluster.Items}, nil
		}
		var namespaced policyv1alpha1.OverridePolicyList
		if err := p.ControlPlane.List(ctx, &namespaced, client.InNamespace(namespace)); err != nil {
			return overrides{}, fmt.Errorf("list the OverridePolicies in namespace %s of the control plane: %w", namespace, err)
		}
		return overrides{cluster: cluster.Items, namespaced: namespaced.Items}, nil
	})
}
