package registration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// What --report-secrets takes (spec: cli/components.md 5).
const (
	ReportCredentials  = "KubeCredentials"
	ReportImpersonator = "KubeImpersonator"
	ReportNone         = "None"
)

// ReportSecrets returns everything that --report-secrets takes.
func ReportSecrets() []string { return []string{ReportCredentials, ReportImpersonator, ReportNone} }

// PullEntry is how a cluster whose agent reports these secrets is entered at the control plane.
func PullEntry(e Entry, report []string) Entry {
	none := slices.Contains(report, ReportNone)
	e.Mode = clusterv1alpha1.Pull
	e.Credentials = !none && slices.Contains(report, ReportCredentials)
	e.Impersonator = !none && slices.Contains(report, ReportImpersonator)
	return e
}

// RegisterPull enters the cluster of an agent at the control plane, with the rights that an agent has: what is reported is
// made in the member, handed to the control plane, and then the Cluster is made or brought up to date (spec: behaviour/11
// 11.1). It can be repeated, and writes nothing that is right. A name or an ID that is another cluster's is a *TakenError,
// or the server's refusal: an agent cannot list the Clusters. A Cluster that is being removed is returned as it is: its
// agent has to take away what it put there, until it is gone.
func RegisterPull(ctx context.Context, member Member, controlPlane client.Client, e Entry) (*clusterv1alpha1.Cluster, error) {
	found, err := CheckPull(ctx, controlPlane, e)
	if err != nil || found != nil && !found.DeletionTimestamp.IsZero() {
		return found, err
	}
	credentials, err := EnsureMemberAccess(ctx, NewWriter(member.Client), Access{
		Cluster: e.Name, Namespace: e.Namespace, Credentials: e.Credentials, Impersonator: e.Impersonator,
	})
	if err != nil {
		return nil, fmt.Errorf("make the credentials of cluster %s: %w", e.Name, err)
	}
	credentials.CABundle = member.Endpoint.caBundle(credentials.CABundle)
	w := NewWriter(controlPlane)
	if err := EnsureSecrets(ctx, w, e, credentials, found); err != nil {
		return nil, fmt.Errorf("hand the credentials of cluster %s to the control plane: %w", e.Name, err)
	}
	cluster, err := EnsureCluster(ctx, w, e)
	if err != nil {
		return nil, fmt.Errorf("register cluster %s: %w", e.Name, err)
	}
	if found == nil {
		// Now there is something that they go with.
		if err := EnsureSecrets(ctx, w, e, credentials, cluster); err != nil {
			return nil, fmt.Errorf("put the credentials of cluster %s into its care: %w", e.Name, err)
		}
	}
	return cluster, nil
}

// CheckPull asks the control plane whether the cluster of an agent can be entered, and writes nothing. It returns the
// Cluster if it is there already. A name or an ID that is another cluster's is an error as of RegisterPull.
func CheckPull(ctx context.Context, controlPlane client.Client, e Entry) (*clusterv1alpha1.Cluster, error) {
	found, err := FindCluster(ctx, controlPlane, e.Name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		if err := e.Check(found); err != nil {
			return nil, err
		}
		return found, nil
	}
	c := &clusterv1alpha1.Cluster{}
	c.Name = e.Name
	e.apply(c)
	if err := controlPlane.Create(ctx, c, client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("register cluster %s: %w", e.Name, err)
	}
	return nil, nil
}

// ValidateAddress returns an error when a URL cannot be told to a control plane as an address of a member or of a proxy; ""
// is none. The error has nothing of it, which may be a password.
func ValidateAddress(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must be a URL that begins with https:// or http://")
	case u.User != nil:
		return errors.New("must not have credentials in it, which everybody could read who can read Clusters")
	}
	return nil
}

// IsTaken reports that a name or an ID is another cluster's. An agent, which cannot list the Clusters, hears that from the
// server, in the contract's words.
func IsTaken(err error) bool {
	var taken *TakenError
	return errors.As(err, &taken) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), " has been registered")
}

// AgentRightsNames lists the access rules that the control plane makes for the agent of a cluster, each as
// "Kind/[namespace/]name" (spec: cli/commands.md 3.5, step 3).
func AgentRightsNames(cluster string) ([]string, error) {
	objects, err := AgentRights(cluster)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, object := range objects {
		kind := ""
		switch object.(type) {
		case *rbacv1.ClusterRole:
			kind = "ClusterRole"
		case *rbacv1.ClusterRoleBinding:
			kind = "ClusterRoleBinding"
		case *rbacv1.Role:
			kind = "Role"
		case *rbacv1.RoleBinding:
			kind = "RoleBinding"
		default:
			continue // the execution namespace, which holds Works
		}
		rules = append(rules, path.Join(kind, object.GetNamespace(), object.GetName()))
	}
	return rules, nil
}

// PreviewPull returns what an agent would make in its cluster, and the Cluster that it would enter. Nothing is written, and
// the control plane is not asked.
func PreviewPull(ctx context.Context, member Member, e Entry) ([]Change, *clusterv1alpha1.Cluster, error) {
	w := NewDryWriter(member.Client)
	if _, err := EnsureMemberAccess(ctx, w, Access{Cluster: e.Name, Namespace: e.Namespace, Credentials: e.Credentials, Impersonator: e.Impersonator}); err != nil {
		return nil, nil, err
	}
	c := &clusterv1alpha1.Cluster{}
	c.Name = e.Name
	e.apply(c)
	return w.Changes(), c, nil
}
