package registration

import (
	"fmt"
	"slices"
	"strings"

	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// Who an agent is to the control plane (spec: behaviour/11 11.4).
const (
	// AgentUserPrefix and the name of its cluster make the user of an agent.
	AgentUserPrefix = "system:karmada:agent:"
	// AgentGroup is the group of every agent. It has no rights of its own but to renew: it is what admission policies
	// and the API server of Clusters know agents by.
	AgentGroup = "system:karmada:agents"
	// RBACGeneratorUser is who, in the classic flow, makes the rights of an agent with a bootstrap token. It is no agent,
	// although its name has the form of one.
	RBACGeneratorUser = AgentUserPrefix + rbacGenerator
)

const (
	rbacGenerator = "rbac-generator"
	// impersonatorSuffix ends the name of a cluster's second secret (names.ImpersonatorSecret).
	impersonatorSuffix = "-impersonator"
)

// AgentUser returns the user of a cluster's agent.
func AgentUser(cluster string) string { return AgentUserPrefix + cluster }

// ClusterOfAgent returns the cluster that a user is the agent of. A user that is no agent, or one of a cluster that can
// have none, is an error.
func ClusterOfAgent(user string) (string, error) {
	cluster, ok := strings.CutPrefix(user, AgentUserPrefix)
	if !ok {
		return "", fmt.Errorf("user %q is no agent: the name of one begins with %s", user, AgentUserPrefix)
	}
	if err := ValidateAgentCluster(cluster); err != nil {
		return "", err
	}
	return cluster, nil
}

// ValidateAgentCluster returns an error when a cluster of that name cannot have an agent. Beyond what every cluster's
// name must be, the rights that follow from it must not reach something else.
func ValidateAgentCluster(name string) error {
	if err := ValidateClusterName(name); err != nil {
		return err
	}
	switch {
	case name == rbacGenerator:
		return fmt.Errorf("invalid cluster name(%s): %s is the user that makes the rights of agents; give the cluster another name", name, RBACGeneratorUser)
	case strings.HasSuffix(name, impersonatorSuffix):
		return fmt.Errorf("invalid cluster name(%s): secret %q would be that of cluster %q too; give the cluster a name that does not end with %s",
			name, name, strings.TrimSuffix(name, impersonatorSuffix), impersonatorSuffix)
	}
	return nil
}

// RenewalCSRName returns the name of the one CertificateSigningRequest that an agent may read and remove: the one by
// which it renews its certificate. The dot keeps it apart from the requests of register, <cluster>-<random>.
func RenewalCSRName(cluster string) string { return names.Agent + "." + cluster }

// TokenOfUser returns the id of the bootstrap token that a user has authenticated with; false if it was something else.
// The API server alone gives both the name and the group: the name is checked too because an administrator may sign a
// certificate for any group.
func TokenOfUser(user string, groups []string) (id string, ok bool) {
	id, ok = strings.CutPrefix(user, bootstrapapi.BootstrapUserPrefix)
	return id, ok && bootstraputil.IsValidBootstrapTokenID(id) && slices.Contains(groups, bootstrapapi.BootstrapDefaultGroup)
}
