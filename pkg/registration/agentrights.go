package registration

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/names"
)

const (
	agentRightsPrefix = "system:karmada:"
	agentRightsSuffix = ":agent"
)

// AgentRightsName returns the name of the ClusterRole of a cluster's agent, and of its binding. Those of its Roles begin
// with it (spec: behaviour/11 11.4).
func AgentRightsName(cluster string) string { return agentRightsPrefix + cluster + agentRightsSuffix }

// ClusterOfAgentRights returns the cluster whose agent has the ClusterRole of that name; false if it is another role.
func ClusterOfAgentRights(name string) (string, bool) {
	rest, begins := strings.CutPrefix(name, agentRightsPrefix)
	cluster, ends := strings.CutSuffix(rest, agentRightsSuffix)
	return cluster, begins && ends && ValidateAgentCluster(cluster) == nil
}

// AgentRights returns what lets the agent of a cluster do its work, and nothing beyond: the ClusterRole of
// AgentRightsName first, then its binding, the execution namespace, and a Role and its binding in each namespace that
// the agent has something in. The names are the contract's, the rules are fewer (spec: behaviour/11 11.4).
//
// A role cannot name what does not exist yet, so that `create` is always for any name. Admission policies
// (pkg/plane/bootstrap) and the API server of Clusters (pkg/aggregated/cluster) hold agents to their own names there,
// and to what is theirs in what they write.
//
// list and watch of Clusters are for the one name: such a request needs the field selector metadata.name=<cluster>.
func AgentRights(cluster string) ([]client.Object, error) {
	if err := ValidateAgentCluster(cluster); err != nil {
		return nil, err
	}
	const secrets, leases = "secrets", "leases"
	own := names.ExecutionNamespace(cluster)
	create, change := []string{"create"}, []string{"get", "update", "patch"}
	// Recorders create events, and patch them when the same happens again.
	events := []rbacv1.PolicyRule{
		rule("", "events", []string{"create", "patch"}),
		rule("events.k8s.io", "events", []string{"create", "patch"}),
	}
	role := func(namespace, suffix string, rules ...rbacv1.PolicyRule) []client.Object {
		return roleAndBinding(namespace, AgentRightsName(cluster)+suffix, rules, AgentUser(cluster))
	}

	objects := role("", "", clusterRules(cluster)...)
	objects = append(objects, &corev1.Namespace{ObjectMeta: systemMeta("", own)})
	objects = append(objects, role(names.ClusterNamespace, "-secret",
		rule("", secrets, create),
		rule("", secrets, change, cluster, names.ImpersonatorSecret(cluster)),
		// The heartbeat.
		rule("coordination.k8s.io", leases, create),
		rule("coordination.k8s.io", leases, change, cluster),
	)...)
	// Which of several agents leads, and that it says so.
	objects = append(objects, role(names.SystemNamespace, "-lease", append(events[:2:2],
		rule("coordination.k8s.io", leases, create),
		rule("coordination.k8s.io", leases, change, names.AgentLease(cluster)),
	)...)...)
	// The events of what has no namespace, such as the Cluster.
	objects = append(objects, role(metav1.NamespaceDefault, "-event", events...)...)
	objects = append(objects, role(own, "-work", append(events[:2:2],
		rule("work.karmada.io", "works", []string{"get", "list", "watch", "create", "update", "patch", "delete"}),
		rule("work.karmada.io", "works/status", change),
	)...)...)
	return objects, nil
}

func clusterRules(cluster string) []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		rule("cluster.karmada.io", "clusters", []string{"create"}),
		rule("cluster.karmada.io", "clusters", append(read[:3:3], "update", "patch", "delete"), cluster),
		rule("cluster.karmada.io", "clusters/status", []string{"get", "update", "patch"}, cluster),
		rule("config.karmada.io", "resourceinterpretercustomizations", read),
		rule("config.karmada.io", "resourceinterpreterwebhookconfigurations", read),
		rule("", "namespaces", []string{"get"}, names.ClusterNamespace, names.ExecutionNamespace(cluster)),
		// Renewal: ask, fetch, and clear away an earlier try.
		rule("certificates.k8s.io", "certificatesigningrequests", []string{"create"}),
		rule("certificates.k8s.io", "certificatesigningrequests", []string{"get", "delete"}, RenewalCSRName(cluster)),
	}
}

// RBACGeneratorRights returns the ClusterRole and its binding with which RBACGeneratorUser may do everything, as in the
// classic flow (spec: behaviour/11 11.6). With them, whoever holds a classic token can become administrator.
func RBACGeneratorRights() []client.Object {
	return roleAndBinding("", "system:karmada:agent-rbac-generator", []rbacv1.PolicyRule{rule("*", "*", []string{"*"})}, RBACGeneratorUser)
}

func rule(group, resource string, verbs []string, resourceNames ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs, ResourceNames: resourceNames}
}

// roleAndBinding returns a Role, or a ClusterRole if there is no namespace, and its binding to one user.
func roleAndBinding(namespace, name string, rules []rbacv1.PolicyRule, user string) []client.Object {
	meta := systemMeta(namespace, name)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if namespace == "" {
		return []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: *meta.DeepCopy(), RoleRef: ref, Subjects: subjects},
		}
	}
	ref.Kind = "Role"
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(), RoleRef: ref, Subjects: subjects},
	}
}

func systemMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{names.SystemLabel: names.True}}
}
