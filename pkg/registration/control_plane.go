package registration

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Keys of the Secrets with a member's credentials (spec: behaviour/01 1.7).
const (
	TokenKey    = "token"
	CABundleKey = "caBundle"
)

// An Entry is what a control plane keeps about a member, apart from what it finds out by itself.
type Entry struct {
	Identity
	// Namespace is where in the control plane its Secrets are: --cluster-namespace.
	Namespace string
	// Credentials and Impersonator say which of the two Secrets there are.
	Credentials, Impersonator bool
	// ProxyURL is a proxy to reach the member through, "" none.
	ProxyURL string
	// Insecure accepts any certificate of the member's API server.
	Insecure bool
	// Provider, Region and Zones say where the member is. What is empty stays as it is.
	Provider, Region string
	Zones            []string
	// Labels are those that the Cluster gets beside the ones it has. The labels of a pull mode Cluster that exists are its
	// administrator's: they stay as they are.
	Labels map[string]string
}

// EnsureSecrets puts a member's credentials into the Secrets of the control plane that w writes to, and those into the
// care of owner, so that they go when it goes (spec: cli/commands.md 3.1, step 6). Before the Cluster exists owner is nil.
// A Secret under their name that is somebody else's is an error.
func EnsureSecrets(ctx context.Context, w *Writer, e Entry, c Credentials, owner *clusterv1alpha1.Cluster) error {
	if !e.Credentials && !e.Impersonator {
		return nil
	}
	if err := ensureNamespace(ctx, w, e.Namespace, DefaultTokenTimeout); err != nil {
		return err
	}
	if e.Impersonator {
		if err := ensureSecret(ctx, w, e, e.impersonatorRef(), map[string][]byte{TokenKey: c.ImpersonatorToken}, owner); err != nil {
			return err
		}
	}
	if e.Credentials {
		return ensureSecret(ctx, w, e, e.secretRef(), map[string][]byte{TokenKey: c.Token, CABundleKey: c.CABundle}, owner)
	}
	return nil
}

func (e Entry) secretRef() *clusterv1alpha1.LocalSecretReference {
	return &clusterv1alpha1.LocalSecretReference{Namespace: e.Namespace, Name: e.Name}
}

func (e Entry) impersonatorRef() *clusterv1alpha1.LocalSecretReference {
	return &clusterv1alpha1.LocalSecretReference{Namespace: e.Namespace, Name: names.ImpersonatorSecret(e.Name)}
}

func ensureSecret(ctx context.Context, w *Writer, e Entry, ref *clusterv1alpha1.LocalSecretReference, data map[string][]byte, owner *clusterv1alpha1.Cluster) error {
	meta := metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}
	_, err := ensure(ctx, w, &corev1.Secret{ObjectMeta: meta}, func(s *corev1.Secret) error {
		if !isNew(s) {
			if err := checkSecretIsOurs(s, e.Name); err != nil {
				return err
			}
		}
		markSystem(s)
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		maps.Copy(s.Data, data)
		adopt(s, owner)
		return nil
	})
	return err
}

// checkSecretIsOurs makes sure that nobody's Secret is overwritten.
func checkSecretIsOurs(s *corev1.Secret, cluster string) error {
	owner := metav1.GetControllerOf(s)
	switch {
	case owner != nil && (owner.Kind != clusterv1alpha1.KindCluster || owner.Name != cluster):
		return fmt.Errorf("secret %s/%s of the control plane is in the way: it belongs to %s %s; choose another cluster name, or another --cluster-namespace", s.Namespace, s.Name, owner.Kind, owner.Name)
	case owner == nil && !isSystem(s):
		return fmt.Errorf("secret %s/%s of the control plane is in the way: it has no label %s=%s, so it is not a member's credentials; delete it, or choose another --cluster-namespace", s.Namespace, s.Name, names.SystemLabel, names.True)
	}
	return nil
}

// adopt makes owner the controller of a Secret, in the place of an earlier Cluster of that name: a Secret that belongs to
// one which is gone is collected as garbage. The references of others stay.
func adopt(s *corev1.Secret, owner *clusterv1alpha1.Cluster) {
	refs := slices.DeleteFunc(slices.Clone(s.OwnerReferences), func(r metav1.OwnerReference) bool {
		return r.Kind == clusterv1alpha1.KindCluster && (owner == nil || r.UID != owner.UID)
	})
	if owner != nil && !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
		refs = append(refs, *metav1.NewControllerRef(owner, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.KindCluster)))
	}
	s.OwnerReferences = refs
}

// EnsureCluster makes the Cluster of a member, or brings the one that is there up to date: what e does not speak of, taints
// among it, stays. That the name is another cluster's is a *TakenError. The server refuses an ID that is taken.
func EnsureCluster(ctx context.Context, w *Writer, e Entry) (*clusterv1alpha1.Cluster, error) {
	return ensure(ctx, w, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(c *clusterv1alpha1.Cluster) error {
		if !isNew(c) {
			if err := e.Check(c); err != nil {
				return err
			}
			if !c.DeletionTimestamp.IsZero() {
				return fmt.Errorf("cluster %s is being removed: repeat this when it is gone", c.Name)
			}
		}
		e.apply(c)
		return nil
	})
}

// apply writes what e says into a Cluster.
func (e Entry) apply(c *clusterv1alpha1.Cluster) {
	c.Spec.ID, c.Spec.SyncMode, c.Spec.APIEndpoint = e.ID, e.Mode, e.Endpoint
	c.Spec.ProxyURL, c.Spec.InsecureSkipTLSVerification = e.ProxyURL, e.Insecure
	c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = nil, nil
	if e.Credentials {
		c.Spec.SecretRef = e.secretRef()
	}
	if e.Impersonator {
		c.Spec.ImpersonatorSecretRef = e.impersonatorRef()
	}
	if e.Provider != "" {
		c.Spec.Provider = e.Provider
	}
	if e.Region != "" {
		c.Spec.Region = e.Region
	}
	if len(e.Zones) > 0 {
		c.Spec.Zones, c.Spec.Zone = slices.Clone(e.Zones), ""
	}
	if len(e.Labels) > 0 && (isNew(c) || e.Mode == clusterv1alpha1.Push) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		maps.Copy(c.Labels, e.Labels)
	}
}

// RemoveSecrets deletes a member's Secrets from the control plane that w writes to, in case that no Cluster does: those that
// are in the care of one go with it. Secrets of others stay.
func RemoveSecrets(ctx context.Context, w *Writer, cluster, namespace string) error {
	r := &remover{Writer: w}
	for _, name := range []string{cluster, names.ImpersonatorSecret(cluster)} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if !r.find(ctx, s) || checkSecretIsOurs(s, cluster) != nil {
			continue
		}
		if err := w.remove(ctx, s); err != nil {
			return err
		}
	}
	if len(r.errs) > 0 {
		return r.errs[0]
	}
	return nil
}

// FindCluster returns the Cluster of that name, nil if there is none.
func FindCluster(ctx context.Context, c client.Reader, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		if isAbsent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	return cluster, nil
}
