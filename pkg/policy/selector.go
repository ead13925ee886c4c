package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// A Level says how closely a policy selects an object: the higher, the closer
// (spec: behaviour/03 3.4).
type Level int

// The levels, in ascending order.
const (
	None  Level = iota // not at all
	All                // as one of all objects of its kind
	Label              // by its labels
	Name               // by its name
)

// A Subject is what selectors look at in an object.
type Subject struct {
	APIVersion, Kind string
	Namespace, Name  string
	Labels           map[string]string
}

// SubjectOf returns what selectors look at in an object.
func SubjectOf(u *unstructured.Unstructured) Subject {
	return Subject{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(),
		Namespace: u.GetNamespace(), Name: u.GetName(),
		Labels: u.GetLabels(),
	}
}

// GVK returns the kind of a subject.
func (s Subject) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
}

// LevelOf returns the level of the closest of some selectors, None when no one
// matches (spec: behaviour/03 3.4). A label selector that cannot be parsed
// matches nothing.
//
// The selectors of a namespaced policy mean its own namespace, whatever they
// say: whoever asks must have seen to that.
func LevelOf(selectors []policyv1alpha1.ResourceSelector, s Subject) Level {
	level := None
	for i := range selectors {
		level = max(level, levelOf(&selectors[i], s))
		if level == Name {
			break
		}
	}
	return level
}

func levelOf(r *policyv1alpha1.ResourceSelector, s Subject) Level {
	switch {
	case r.Kind != s.Kind || r.APIVersion != s.APIVersion:
		return None
	case r.Namespace != "" && r.Namespace != s.Namespace:
		return None
	case r.Name != "":
		if r.Name != s.Name {
			return None
		}
		return Name
	case r.LabelSelector == nil:
		return All
	}
	selector, err := metav1.LabelSelectorAsSelector(r.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(s.Labels)) {
		return None
	}
	return Label
}

// OverrideLevel returns how closely an override policy selects an object. One
// without selectors selects everything, as one of all (spec: behaviour/07 7.1).
func OverrideLevel(spec *policyv1alpha1.OverrideSpec, s Subject) Level {
	if len(spec.ResourceSelectors) == 0 {
		return All
	}
	return LevelOf(spec.ResourceSelectors, s)
}
