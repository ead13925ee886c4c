package unifiedauth

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/search/v1alpha1"
)

// The groups of ServiceAccounts: of all, and, with its name, of those of a
// namespace.
const (
	allAccounts = "system:serviceaccounts"
	accountsOf  = allAccounts + ":"
)

// An access is the clusters that a ClusterRole lets its subjects reach.
type access struct {
	all      bool
	clusters []string
}

func (a access) none() bool { return !a.all && len(a.clusters) == 0 }

func (a access) includes(cluster string) bool { return a.all || slices.Contains(a.clusters, cluster) }

// accessOf reads the rules of a ClusterRole.
func accessOf(role *rbacv1.ClusterRole) access {
	var a access
	for _, rule := range role.Rules {
		switch {
		case grants(rule, searchv1alpha1.GroupVersion.Group, "proxying/proxy") && meansSearch(rule):
			a.all = true
		case !grants(rule, clusterv1alpha1.GroupVersion.Group, "clusters/proxy"):
		case len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, "*"):
			a.all = true // the name * stands for all clusters in a path of the proxy
		default:
			a.clusters = append(a.clusters, rule.ResourceNames...)
		}
	}
	return a
}

// grants says whether a rule is about a sub-resource of a group, as an
// authorizer reads it.
func grants(rule rbacv1.PolicyRule, group, resource string) bool {
	has := func(list []string, accepted ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(accepted, s) })
	}
	return has(rule.APIGroups, group, rbacv1.APIGroupAll) && has(rule.Resources, resource, "*/proxy", rbacv1.ResourceAll)
}

// meansSearch says whether a rule is about the search proxy by more than
// wildcards: the names in such a rule are clusters, if there are any.
func meansSearch(rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.APIGroups, searchv1alpha1.GroupVersion.Group) || slices.Contains(rule.Resources, "proxying/proxy")
}

// subjectsOf returns who may reach a cluster: the subjects of all bindings of
// the roles that let them.
func subjectsOf(cluster string, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []rbacv1.Subject {
	granting := map[string]bool{}
	for i := range roles {
		if accessOf(&roles[i]).includes(cluster) {
			granting[roles[i].Name] = true
		}
	}
	var subjects []rbacv1.Subject
	for _, b := range bindings {
		if granting[b.RoleRef.Name] && isClusterRole(b.RoleRef) {
			subjects = append(subjects, b.Subjects...)
		}
	}
	return subjects
}

func isClusterRole(ref rbacv1.RoleRef) bool {
	return ref.Kind == "ClusterRole" && ref.APIGroup == rbacv1.GroupName
}

// impersonation returns rules that let impersonate these subjects: one for each
// kind of which there are any. A ServiceAccount comes with the groups that its
// token puts it in, as the proxy impersonates those, too.
func impersonation(subjects []rbacv1.Subject) []rbacv1.PolicyRule {
	names := map[string][]string{}
	for _, s := range subjects {
		names[s.Kind] = append(names[s.Kind], s.Name)
		if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "" {
			names[rbacv1.GroupKind] = append(names[rbacv1.GroupKind], allAccounts, accountsOf+s.Namespace)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, kind := range []struct{ kind, resource string }{
		{rbacv1.UserKind, "users"}, {rbacv1.ServiceAccountKind, "serviceaccounts"}, {rbacv1.GroupKind, "groups"},
	} {
		if len(names[kind.kind]) == 0 {
			continue
		}
		slices.Sort(names[kind.kind])
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{kind.resource}, ResourceNames: slices.Compact(names[kind.kind]),
		})
	}
	return rules
}
