package interpreter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// PodRequirements returns what a pod needs of a cluster, nil when it asks for
// nothing; forQuotas adds its priority class (spec: behaviour/03 3.7).
func PodRequirements(spec *corev1.PodSpec, forQuotas bool) *workv1alpha2.ReplicaRequirements {
	r := &workv1alpha2.ReplicaRequirements{NodeClaim: nodeClaim(spec), ResourceRequest: podRequest(spec)}
	if r.NodeClaim == nil && r.ResourceRequest == nil {
		return nil
	}
	if forQuotas {
		r.PriorityClassName = spec.PriorityClassName
	}
	return r
}

// nodeClaim returns what restricts the nodes that a pod can run on, nil when
// nothing does.
func nodeClaim(spec *corev1.PodSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0 && claim.HardNodeAffinity == nil {
		return nil
	}
	return claim
}

// podRequest returns the resources that a pod takes on a node, nil when it asks
// for none: those of its containers together, or of the init container that wants
// most, and the overhead of the pod itself.
func podRequest(spec *corev1.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, c := range spec.Containers {
		add(total, containerRequest(c))
	}
	for _, c := range spec.InitContainers {
		for name, quantity := range containerRequest(c) {
			if quantity.Cmp(total[name]) > 0 {
				total[name] = quantity
			}
		}
	}
	add(total, spec.Overhead)

	var counted corev1.ResourceList
	for name, quantity := range total {
		if quantity.IsZero() || !isCounted(name) {
			continue
		}
		if counted == nil {
			counted = corev1.ResourceList{}
		}
		counted[name] = normal(name, quantity)
	}
	return counted
}

// containerRequest returns what a container requests: its limit, where it
// requests nothing.
func containerRequest(c corev1.Container) corev1.ResourceList {
	request := corev1.ResourceList{}
	for name, quantity := range c.Resources.Limits {
		request[name] = quantity
	}
	for name, quantity := range c.Resources.Requests {
		request[name] = quantity
	}
	return request
}

func add(total, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := total[name].DeepCopy()
		sum.Add(quantity)
		total[name] = sum
	}
}

// isCounted says whether a resource is one that clusters are asked for.
func isCounted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix) ||
		isExtended(name)
}

// isExtended says whether a resource is neither of Kubernetes itself nor one of a
// quota.
func isExtended(name corev1.ResourceName) bool {
	text := string(name)
	return strings.Contains(text, "/") && !strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix)
}

// normal writes a quantity the way all requirements do, so that what is the same
// looks the same.
func normal(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(q.Value(), resource.BinarySI)
	default:
		return *resource.NewQuantity(q.Value(), resource.DecimalSI)
	}
}
