package registration

import (
	"fmt"
	"slices"
	"strings"

	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// Whoever authenticates with a bootstrap token is in group system:bootstrappers and in the groups that the token's
// Secret names. The API server writes these groups into each request, and into spec.groups of each
// CertificateSigningRequest, where its author cannot change them. So that is where the name of the one cluster travels
// that a token is for: an admission policy and the approver of requests see it without reading the Secret, and still
// see it when the token is gone.
//
// A token for a named cluster has two groups, and not the classic one, which would let it ask for any cluster's
// identity:
//
//   - NamedClusterTokenGroup is the same for all of them. RBAC knows no patterns, so this is what roles are bound to; it
//     has only what a role gives it, and says nothing about which cluster.
//   - ClusterTokenGroup(cluster) says which. No role is ever bound to it: it is data that whoever decides reads.
const (
	// DefaultTokenGroup is the group of a classic token (spec: behaviour/11 11.7). Init lets it request certificates,
	// and lets its requests for a cluster's identity be approved.
	DefaultTokenGroup = "system:bootstrappers:karmada:default-cluster-token"
	// NamedClusterTokenGroup is the group of every token for a named cluster.
	NamedClusterTokenGroup = "system:bootstrappers:karmada:named-cluster-token"
	// ClusterTokenGroupPrefix begins the group that names the cluster.
	ClusterTokenGroupPrefix = "system:bootstrappers:karmada:cluster:"
)

// ClusterTokenLabel, on the Secret of a token for a named cluster, has the cluster's name. It is there to find a
// cluster's tokens by; what a token may do is decided by its groups.
const ClusterTokenLabel = "bootstrap.karmada.io/cluster"

// ClusterTokenGroup returns the group that says for which cluster a token is.
func ClusterTokenGroup(cluster string) string { return ClusterTokenGroupPrefix + cluster }

// ClusterOfGroups returns the cluster that the groups of a bootstrap user name, such as those of a
// CertificateSigningRequest; "" means that they name none: a classic token. Groups that name two clusters, or something
// that is no cluster's name, or that name a cluster without being in NamedClusterTokenGroup or the other way round, or
// that are those of a classic token as well, are an error: nobody may pick what suits.
func ClusterOfGroups(groups []string) (string, error) {
	var clusters []string
	for _, group := range groups {
		if cluster, ok := strings.CutPrefix(group, ClusterTokenGroupPrefix); ok && !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	named := slices.Contains(groups, NamedClusterTokenGroup)
	switch {
	case len(clusters) == 0 && !named:
		return "", nil
	case len(clusters) == 0:
		return "", fmt.Errorf("group %s is there, but none that names a cluster", NamedClusterTokenGroup)
	case len(clusters) > 1:
		return "", fmt.Errorf("groups name more than one cluster: %s", strings.Join(clusters, ", "))
	case !named:
		return "", fmt.Errorf("group %s names a cluster, but group %s is missing", ClusterTokenGroup(clusters[0]), NamedClusterTokenGroup)
	case slices.Contains(groups, DefaultTokenGroup):
		return "", fmt.Errorf("groups name cluster %q, but have %s too, which is for any cluster", clusters[0], DefaultTokenGroup)
	}
	if err := ValidateClusterName(clusters[0]); err != nil {
		return "", fmt.Errorf("group %s: %w", ClusterTokenGroup(clusters[0]), err)
	}
	return clusters[0], nil
}

// validateGroups checks the groups that somebody wants for a classic token.
func validateGroups(groups []string) error {
	for _, group := range groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return err
		}
		if group == NamedClusterTokenGroup || strings.HasPrefix(group, ClusterTokenGroupPrefix) {
			return fmt.Errorf("group %q is for tokens that are for one named cluster: ask for the cluster instead, and for no groups", group)
		}
	}
	return nil
}
