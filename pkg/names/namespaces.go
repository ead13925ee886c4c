package names

import (
	"fmt"
	"strings"
)

// Namespaces of the control plane (spec: behaviour/01 1.1).
const (
	// SystemNamespace holds system components, leader election leases and
	// default kubeconfig secrets.
	SystemNamespace = "karmada-system"
	// ClusterNamespace holds, in the control plane, the credentials of member
	// clusters and the leases of pull mode agents; in a member, the service
	// accounts that joining creates.
	ClusterNamespace = "karmada-cluster"
	// ExecutionNamespacePrefix begins the name of every execution namespace.
	ExecutionNamespacePrefix = "karmada-es-"
	// DefaultNamespace is exempt from being created on members; what is in it
	// is propagated as anything else.
	DefaultNamespace = "default"
)

// ExecutionNamespace returns the namespace that holds the Works of a cluster.
func ExecutionNamespace(cluster string) string {
	return ExecutionNamespacePrefix + cluster
}

// ClusterOfExecutionNamespace returns the cluster whose Works a namespace
// holds. A namespace that is no execution namespace is an error.
func ClusterOfExecutionNamespace(namespace string) (string, error) {
	cluster, ok := strings.CutPrefix(namespace, ExecutionNamespacePrefix)
	if !ok || cluster == "" {
		return "", fmt.Errorf("namespace %q is not an execution namespace: it does not have the form %s<cluster>", namespace, ExecutionNamespacePrefix)
	}
	return cluster, nil
}

// IsReservedNamespace says whether a namespace belongs to the system: it is
// never propagated, and nothing in it is.
func IsReservedNamespace(namespace string) bool {
	return namespace == SystemNamespace ||
		namespace == ClusterNamespace ||
		strings.HasPrefix(namespace, ExecutionNamespacePrefix)
}
