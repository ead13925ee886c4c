package bind

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// An activation says what of a template and its policy reaches the binding.
type activation int

const (
	nothing      activation = iota // the policy waits for its user
	templateOnly                   // what the policy says waits, what the template says does not
	everything
)

// seen is what is known of a template beside what it says.
type seen struct {
	touched bool // this process saw its user make or change it
	waited  bool // this process knew it before there was a policy for it
	claimed bool // the policy had claimed it before
}

// activate decides what a policy does to a template that it claims. One that is
// lazy does nothing before the template's user does something (spec: behaviour/03
// 3.6): what counts is not how the news came, but whether the template says
// anything that its binding was not made of. So a restart activates nothing.
func activate(p policy.Object, t *unstructured.Unstructured, now binding.Object, f fingerprint, s seen) activation {
	if p.PropagationSpec().ActivationPreference != policyv1alpha1.LazyActivation {
		return everything
	}
	if now != nil && isBound(now) {
		made, ok := readFingerprint(now.GetAnnotations())
		switch {
		case ok && made.user == f.user:
			return nothing
		case ok, s.touched:
			return everything
		default:
			return templateOnly // made by another control plane: nobody can tell
		}
	}
	if s.touched || !s.waited && cameAfter(t, p, s.claimed) {
		return everything
	}
	return nothing
}

// isBound reports whether a policy has made a binding say what it says: one that is
// there because something depends on the template says nothing of a policy.
func isBound(b binding.Object) bool { return b.BindingSpec().Placement != nil }

// cameAfter reports whether a template without a binding is newer than its policy.
// Times of creation are in seconds; within one, the version of the template tells
// whether anybody wrote it after the policy, unless that was the claim.
func cameAfter(t *unstructured.Unstructured, p policy.Object, claimed bool) bool {
	template, rule := t.GetCreationTimestamp(), p.GetCreationTimestamp()
	if !template.Equal(&rule) {
		return rule.Before(&template)
	}
	if claimed {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(t.GetResourceVersion(), p.GetResourceVersion())
	return err == nil && order > 0
}
