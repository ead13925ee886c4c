package registration

import (
	"context"
	"fmt"
	"slices"

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
// or the server's refusal: an agent cannot list the Clusters.
func RegisterPull(ctx context.Context, member Member, controlPlane client.Client, e Entry) (*clusterv1alpha1.Cluster, error) {
	found, err := FindCluster(ctx, controlPlane, e.Name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		if err := e.Check(found); err != nil {
			return nil, err
		}
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
