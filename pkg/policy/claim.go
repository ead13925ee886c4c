package policy

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Claim says which policy a template is propagated by. It is written on the
// template and on its binding, as a label and annotations (spec: behaviour/01
// 1.4, 1.5, behaviour/03 3.3).
type Claim struct {
	// Namespace and Name are the policy's. One without a namespace is a
	// ClusterPropagationPolicy.
	Namespace, Name string
	// ID is the policy's permanent identity: a policy that is made anew under the
	// same name has another.
	ID string
}

// By returns the claim that a policy makes. Its ID is empty when the policy has
// no permanent identity (yet): then it can claim nothing.
func By(p Object) Claim {
	c := Claim{Namespace: p.GetNamespace(), Name: p.GetName()}
	c.ID = p.GetLabels()[c.Label()]
	return c
}

// ClaimOf returns the claim that is written on an object, ok false when there is
// none, or none that is whole. One of a PropagationPolicy comes first.
func ClaimOf(o metav1.Object) (c Claim, ok bool) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	c = Claim{
		Namespace: annotations[names.PropagationPolicyNamespaceAnnotation],
		Name:      annotations[names.PropagationPolicyNameAnnotation],
		ID:        labels[names.PropagationPolicyIDLabel],
	}
	if c.Namespace != "" && c.Name != "" && c.ID != "" {
		return c, true
	}
	c = Claim{Name: annotations[names.ClusterPropagationPolicyNameAnnotation], ID: labels[names.ClusterPropagationPolicyIDLabel]}
	if c.Name != "" && c.ID != "" {
		return c, true
	}
	return Claim{}, false
}

// Label returns the key of the label that holds the ID.
func (c Claim) Label() string {
	if c.Namespace != "" {
		return names.PropagationPolicyIDLabel
	}
	return names.ClusterPropagationPolicyIDLabel
}

// String names the policy, as events do.
func (c Claim) String() string {
	if c.Namespace != "" {
		return c.Namespace + "/" + c.Name
	}
	return c.Name
}

// Put writes the claim on an object, and takes every other claim off.
func (c Claim) Put(o metav1.Object) {
	labels, annotations := without(o)
	labels[c.Label()] = c.ID
	if c.Namespace != "" {
		annotations[names.PropagationPolicyNamespaceAnnotation] = c.Namespace
		annotations[names.PropagationPolicyNameAnnotation] = c.Name
	} else {
		annotations[names.ClusterPropagationPolicyNameAnnotation] = c.Name
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// Remove takes the claim off an object that carries its ID, and leaves any other
// alone.
func (c Claim) Remove(o metav1.Object) {
	if c.ID == "" || o.GetLabels()[c.Label()] != c.ID {
		return
	}
	labels, annotations := maps.Clone(o.GetLabels()), maps.Clone(o.GetAnnotations())
	delete(labels, c.Label())
	for _, k := range c.annotations() {
		delete(annotations, k)
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

func (c Claim) annotations() []string {
	if c.Namespace != "" {
		return []string{names.PropagationPolicyNamespaceAnnotation, names.PropagationPolicyNameAnnotation}
	}
	return []string{names.ClusterPropagationPolicyNameAnnotation}
}

// without returns copies of an object's labels and annotations, with no claim.
func without(o metav1.Object) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	maps.Copy(labels, o.GetLabels())
	maps.Copy(annotations, o.GetAnnotations())
	for _, c := range []Claim{{Namespace: "namespaced"}, {}} {
		delete(labels, c.Label())
		for _, k := range c.annotations() {
			delete(annotations, k)
		}
	}
	return labels, annotations
}
