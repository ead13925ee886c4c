package names

import (
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Binding returns the name of the ResourceBinding or ClusterResourceBinding of
// a template. It has no hash (spec: behaviour/01 1.3).
func Binding(kind, name string) string {
	return strings.ToLower(plain(name) + "-" + kind)
}

// Work returns the name of the Work that carries a template to a cluster;
// namespace is empty for a cluster-scoped one (spec: behaviour/01 1.3).
func Work(kind, name, namespace string) string {
	name = plain(name)
	source := name + "-" + kind
	if namespace != "" {
		source = namespace + "-" + source
	}
	return strings.ToLower(name) + "-" + hash(strings.ToLower(source))
}

// BindingBeside returns the name of a template's binding when another template
// has the classic one, or when that is no valid name: it tells apart kinds of
// several groups, and names that differ in case or in a colon only.
func BindingBeside(gk schema.GroupKind, name, namespace string) string {
	return beside(Binding(gk.Kind, name), gk, name, namespace)
}

// WorkBeside returns the name of a Work when another object has the classic one
// in the same execution namespace, or when that is no valid name; see
// BindingBeside.
func WorkBeside(gk schema.GroupKind, name, namespace string) string {
	return beside(strings.ToLower(plain(name)), gk, name, namespace)
}

// longest is how long a name may be that BindingBeside makes, hash included.
const longest = 253

// beside makes a valid name that begins like classic, and ends in a hash of
// everything that identifies an object.
func beside(classic string, gk schema.GroupKind, name, namespace string) string {
	full := hash(gk.Group + "/" + gk.Kind + "/" + namespace + "/" + name)
	valid := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, classic)
	valid = strings.Trim(valid[:min(len(valid), longest-2-len(full))], "-.")
	for strings.Contains(valid, "..") || strings.Contains(valid, ".-") || strings.Contains(valid, "-.") {
		valid = strings.NewReplacer("..", ".", ".-", ".", "-.", ".").Replace(valid)
	}
	if valid == "" {
		valid = "x"
	}
	// Two dashes: no classic name of a Work ends like this.
	return valid + "--" + full
}

// BindingReferenceKey returns the short form of a reference to a binding that
// fits in a label key; namespace is empty for a ClusterResourceBinding.
func BindingReferenceKey(namespace, name string) string {
	if namespace == "" {
		return hash(name)
	}
	return hash(namespace + "/" + name)
}

// GeneratedPolicy returns the name of a policy that is made for one template,
// as promote makes it.
func GeneratedPolicy(gvk schema.GroupVersionKind, name, namespace string) string {
	return strings.ToLower(plain(name) + "-" + hash(namespace+gvk.String()))
}

// ImpersonatorServiceAccount is the service account in a member on whose
// behalf users' requests to that member are impersonated.
const ImpersonatorServiceAccount = "karmada-impersonator"

// ClusterServiceAccount returns the service account in a member through which
// the control plane reaches it.
func ClusterServiceAccount(cluster string) string {
	return "karmada-" + cluster
}

// ClusterRole returns the name of the ClusterRole and the ClusterRoleBinding
// of a member's ClusterServiceAccount.
func ClusterRole(cluster string) string {
	return ControllerManager + ":" + ClusterServiceAccount(cluster)
}

// ImpersonatorSecret returns the secret in the control plane that holds the
// token of a member's ImpersonatorServiceAccount.
func ImpersonatorSecret(cluster string) string {
	return cluster + "-impersonator"
}

// ImportedEndpointSlice returns the name of an EndpointSlice that was imported
// from a cluster.
func ImportedEndpointSlice(cluster, endpointSlice string) string {
	return "imported-" + cluster + "-" + endpointSlice
}

// DerivedService returns the name of the Service that is derived from an
// imported one.
func DerivedService(service string) string {
	return "derived-" + service
}

// EstimatorService returns the Service of a cluster's scheduler estimator. The
// default prefix is SchedulerEstimator.
func EstimatorService(prefix, cluster string) string {
	return prefix + "-" + cluster
}

// EstimatorDeployment returns the Deployment of a cluster's scheduler estimator.
func EstimatorDeployment(cluster string) string {
	return SchedulerEstimator + "-" + cluster
}

// AgentLease returns the leader election lease of a cluster's agents, in the
// control plane.
func AgentLease(cluster string) string {
	return Agent + "-" + cluster
}

// plain makes a template's name usable where only a DNS name is: RBAC objects
// have colons in theirs.
func plain(name string) string {
	return strings.ReplaceAll(name, ":", ".")
}

// hash returns the FNV-1a hash of s in decimal, digit by digit in the alphabet
// that Kubernetes uses for generated names.
func hash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // a hash never fails to write
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
