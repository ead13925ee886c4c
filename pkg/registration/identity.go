package registration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// ClusterID returns what tells a cluster from all others: the UID of its namespace kube-system (spec: behaviour/01 1.7).
func ClusterID(ctx context.Context, c client.Reader) (string, error) {
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		var status apierrors.APIStatus
		var transport *url.Error
		if apierrors.IsUnexpectedServerError(err) || (!errors.As(err, &status) && !errors.As(err, &transport)) {
			err = fmt.Errorf("what answers is not a Kubernetes API server, check the address: %w", err)
		}
		return "", fmt.Errorf("read namespace %s, whose UID is the ID of a cluster: %w", metav1.NamespaceSystem, err)
	}
	if ns.UID == "" {
		return "", fmt.Errorf("read namespace %s: the answer has no UID, which is the ID of a cluster: what answers is not a Kubernetes API server, check the address", metav1.NamespaceSystem)
	}
	if !isID(string(ns.UID)) {
		return "", fmt.Errorf("read namespace %s: the answer has the UID %.80q, which is none: what answers is not a Kubernetes API server, check the address", metav1.NamespaceSystem, ns.UID)
	}
	return string(ns.UID), nil
}

// isID reports whether text can be the ID of a cluster. It is a UUID from every server known, and goes into messages and
// labels.
func isID(text string) bool { return len(validation.IsValidLabelValue(text)) == 0 }

// An Identity is what a cluster is registered as.
type Identity struct {
	Name string
	// ID is what ClusterID returned.
	ID string
	// Mode is who carries things to it.
	Mode clusterv1alpha1.ClusterSyncMode
	// Endpoint is the URL of its API server; it only helps to say what is wrong.
	Endpoint string
}

// Find returns the Cluster among known that is this cluster already, nil if none is. That the name or the ID belongs to
// another one is a *TakenError (spec: behaviour/01 1.7).
func (i Identity) Find(known []clusterv1alpha1.Cluster) (*clusterv1alpha1.Cluster, error) {
	if err := i.checkName(known); err != nil {
		return nil, err
	}
	var found *clusterv1alpha1.Cluster
	for k := range known {
		c := &known[k]
		if c.Name == i.Name {
			if err := i.Check(c); err != nil {
				return nil, err
			}
			found = c
		}
	}
	for k := range known {
		if c := &known[k]; c.Name != i.Name && c.Spec.ID == i.ID {
			return nil, &TakenError{Identity: i, By: c}
		}
	}
	return found, nil
}

// Check returns a *TakenError unless c, which has the name, is this cluster.
func (i Identity) Check(c *clusterv1alpha1.Cluster) error {
	// Somebody who writes Clusters by hand may leave the ID out.
	adopted := c.Spec.ID == "" && c.Spec.APIEndpoint != "" && c.Spec.APIEndpoint == i.Endpoint
	if (c.Spec.ID != i.ID && !adopted) || c.Spec.SyncMode != i.Mode {
		return &TakenError{Identity: i, By: c}
	}
	return nil
}

// checkName refuses names by which two clusters would share an object.
func (i Identity) checkName(known []clusterv1alpha1.Cluster) error {
	if names.ClusterServiceAccount(i.Name) == names.ImpersonatorServiceAccount {
		return fmt.Errorf("invalid cluster name(%s): its ServiceAccount %s would be the one that users are impersonated by: choose another name", i.Name, names.ImpersonatorServiceAccount)
	}
	for k := range known {
		other := known[k].Name
		if i.Name == names.ImpersonatorSecret(other) || other == names.ImpersonatorSecret(i.Name) {
			return fmt.Errorf("invalid cluster name(%s): its Secrets would be mixed up with those of cluster %s: choose another name", i.Name, other)
		}
	}
	return nil
}

// A TakenError says that the name or the ID of a cluster belongs to another one.
type TakenError struct {
	Identity
	By *clusterv1alpha1.Cluster
}

// Error is the contract's, with which it is and what to do (spec: cli/commands.md 3.1).
func (e *TakenError) Error() string {
	var why string
	leave := "unjoin"
	if e.By.Spec.SyncMode == clusterv1alpha1.Pull {
		leave = "unregister"
	}
	known := fmt.Sprintf("cluster %s is registered in %s mode", e.By.Name, e.By.Spec.SyncMode)
	switch {
	case e.By.Name != e.Name:
		why = fmt.Sprintf("this cluster is registered as %s: go on under that name, or %s %s first", e.By.Name, leave, e.By.Name)
	case e.By.Spec.ID == "":
		why = fmt.Sprintf("%s at %s without an ID to recognise it by: choose another name, or %s %s first", known, orUnknown(e.By.Spec.APIEndpoint), leave, e.Name)
	case e.By.Spec.ID != e.ID && e.By.Spec.APIEndpoint != "" && e.By.Spec.APIEndpoint == e.Endpoint:
		why = fmt.Sprintf("%s at the same address %s, but with ID %s: the cluster there was rebuilt; %s %s first, then repeat this", known, e.Endpoint, e.By.Spec.ID, leave, e.Name)
	case e.By.Spec.ID != e.ID:
		why = fmt.Sprintf("the name belongs to another cluster, with ID %s at %s: choose another name, or %s %s first", e.By.Spec.ID, orUnknown(e.By.Spec.APIEndpoint), leave, e.Name)
	default:
		why = fmt.Sprintf("%s: %s it first to change to %s mode", known, leave, e.Mode)
	}
	return fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered: %s", e.ID, e.Name, why)
}

func orUnknown(endpoint string) string {
	if strings.TrimSpace(endpoint) == "" {
		return "an unknown address"
	}
	return endpoint
}
