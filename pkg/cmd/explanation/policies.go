package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/pipeline/match"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A ranking says which policy counts for a template, as the control plane decides
// that (spec: behaviour/03 3.2 to 3.4).
type ranking struct {
	// counts is the policy that the template is, or is to be, propagated by; nil for none.
	counts policy.Object
	// claim is what the template says of it, and claimed whether it says anything.
	claim   policy.Claim
	claimed bool
	// holder is the policy that the claim names; nil when it is not there.
	holder policy.Object

	policies, misses []Policy
}

// rank decides which of the policies counts, and why others do not.
func (f *facts) rank() ranking {
	var r ranking
	index := match.NewIndex()
	for _, p := range f.policies {
		index.Set(p)
	}
	if r.claim, r.claimed = policy.ClaimOf(f.template); r.claimed {
		r.holder, _ = index.Get(r.claim.Namespace, r.claim.Name)
	}
	if r.holder != nil && f.level(r.holder) != policy.None {
		r.counts = r.holder
	} else if best, ok := index.Best(f.subject); ok {
		r.counts = best
	}
	for _, p := range f.policies {
		entry := f.describe(p)
		if f.level(p) == policy.None {
			entry.Verdict, entry.Reason = Misses, f.missReason(p)
			if entry.Reason != "" {
				r.misses = append(r.misses, entry)
			}
			continue
		}
		switch {
		case p != r.counts:
			entry.Verdict, entry.Reason = Loses, r.loseReason(f, p)
		case r.holder == p:
			entry.Verdict = Claimed
		default:
			entry.Verdict = Wins
		}
		r.policies = append(r.policies, entry)
	}
	order := func(a, b Policy) int {
		rank := func(p Policy) int {
			if p.Verdict == Loses {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(r.policies, order)
	slices.SortFunc(r.misses, order)
	return r
}

func (f *facts) level(p policy.Object) policy.Level {
	return policy.LevelOf(p.PropagationSpec().ResourceSelectors, f.subject)
}

func (f *facts) describe(p policy.Object) Policy {
	d := Policy{Kind: kindOfPolicy(p), Namespace: p.GetNamespace(), Name: p.GetName(), Priority: policy.Priority(p.PropagationSpec()), Selects: byWhat(f.level(p))}
	if at := p.GetDeletionTimestamp(); at != nil {
		d.Deleted = moment(at.Time)
	}
	return d
}

func kindOfPolicy(p policy.Object) string {
	if p.GetNamespace() != "" {
		return "PropagationPolicy"
	}
	return "ClusterPropagationPolicy"
}

func byWhat(l policy.Level) string {
	switch l {
	case policy.Name:
		return "name"
	case policy.Label:
		return "labels"
	case policy.All:
		return "kind"
	default:
		return ""
	}
}

// loseReason says why a policy that selects the template does not count.
func (r *ranking) loseReason(f *facts, p policy.Object) string {
	w := r.counts
	name := fmt.Sprintf("%s %s", kindOfPolicy(w), policy.By(w))
	switch {
	case !p.GetDeletionTimestamp().IsZero():
		return "it is being deleted"
	case r.holder == w && f.beats(p, w):
		return r.tooLate(p, name)
	case w.GetNamespace() != "" && p.GetNamespace() == "":
		return "a PropagationPolicy of the namespace comes first, whatever the priorities"
	}
	theirs, its := policy.Priority(w.PropagationSpec()), policy.Priority(p.PropagationSpec())
	switch {
	case its < theirs:
		return fmt.Sprintf("its priority %d is lower than the %d of %s", its, theirs, w.GetName())
	case f.level(p) < f.level(w):
		return fmt.Sprintf("it selects the object by %s, and %s by %s, which is closer", byWhat(f.level(p)), w.GetName(), byWhat(f.level(w)))
	default:
		return fmt.Sprintf("all else is the same, and its name comes after %s", w.GetName())
	}
}

// tooLate says why a policy that comes first does not count: another has claimed the
// template before it was there (spec: behaviour/03 3.8, 3.9).
func (r *ranking) tooLate(p policy.Object, holder string) string {
	if p.PropagationSpec().Preemption != policyv1alpha1.PreemptAlways {
		return fmt.Sprintf("it would come first, but %s has claimed the object before, and only a policy with preemption: Always takes over", holder)
	}
	switch {
	case p.GetNamespace() == r.holder.GetNamespace() && policy.Priority(p.PropagationSpec()) <= policy.Priority(r.holder.PropagationSpec()):
		return fmt.Sprintf("%s has claimed the object before, and only a higher priority takes over", holder)
	case !slices.ContainsFunc(p.PropagationSpec().ResourceSelectors, func(s policyv1alpha1.ResourceSelector) bool { return s.Name != "" }):
		return fmt.Sprintf("%s has claimed the object before, and only a policy that selects it by name takes over", holder)
	default:
		return fmt.Sprintf("it is to take over from %s, which needs the feature gate PropagationPolicyPreemption of the control plane", holder)
	}
}

// beats reports whether p, alone with w, would be the one to claim the template.
func (f *facts) beats(p, w policy.Object) bool {
	two := match.NewIndex()
	two.Set(p)
	two.Set(w)
	best, ok := two.Best(f.subject)
	return ok && best == p
}

// missReason says why a policy does not select the template though it selects objects
// of this kind, "" when it has nothing to do with it: by the selector that comes
// closest.
func (f *facts) missReason(p policy.Object) string {
	var closest int
	var reason string
	for _, s := range p.PropagationSpec().ResourceSelectors {
		if far, why := f.miss(p, s); far > closest {
			closest, reason = far, why
		}
	}
	return reason
}

// miss says why a selector does not match, and how far it came, 0 being nowhere.
func (f *facts) miss(p policy.Object, s policyv1alpha1.ResourceSelector) (far int, reason string) {
	switch {
	case !strings.EqualFold(s.Kind, f.subject.Kind):
		return 0, ""
	case s.Kind != f.subject.Kind:
		return 1, fmt.Sprintf("kind %s must be written %s", s.Kind, f.subject.Kind)
	case s.APIVersion != f.subject.APIVersion:
		return 2, fmt.Sprintf("it selects apiVersion %s, and this is %s", s.APIVersion, f.subject.APIVersion)
	case s.Namespace != "" && s.Namespace != f.subject.Namespace:
		return 3, fmt.Sprintf("it selects in namespace %s only", s.Namespace)
	case s.Name != "":
		return 4, fmt.Sprintf("it selects name %s only", s.Name)
	case s.LabelSelector == nil:
		return 0, ""
	}
	if _, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
		return 5, fmt.Sprintf("its labelSelector cannot be read: %v", err)
	}
	return 5, fmt.Sprintf("it selects labels %s, which the object does not have", metav1.FormatLabelSelector(s.LabelSelector))
}
