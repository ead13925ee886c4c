package certrotation

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

// A FileStore is a file with both the certificate and the key. Clients that name
// it take a new pair up by themselves.
type FileStore string

// fileMode is for the owner alone: there is a private key in it.
const fileMode = 0o600

// Load implements Store.
func (f FileStore) Load(context.Context) (registration.Pair, error) {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return registration.Pair{}, err
	}
	p, err := registration.ParsePair(data)
	if err != nil {
		return registration.Pair{}, fmt.Errorf("%s: %w", f, err)
	}
	return p, nil
}

// Save implements Store. A reader sees the old pair or the new one.
func (f FileStore) Save(_ context.Context, p registration.Pair) error {
	return atomicfile.WriteFile(string(f), p.PEM, fileMode)
}

// Secret and key of it that hold the agent's kubeconfig in its cluster (spec:
// behaviour/11 11.4).
const (
	KubeconfigSecret    = "karmada-kubeconfig"
	KubeconfigSecretKey = "karmada-kubeconfig"
)

// A SecretStore is the kubeconfig of an agent that runs in its cluster, kept in a
// Secret there, with the certificate and the key of its current context embedded.
type SecretStore struct {
	// Secrets are those of the namespace that the Secret is in.
	Secrets corev1client.SecretInterface
}

// Load implements Store.
func (s SecretStore) Load(ctx context.Context) (registration.Pair, error) {
	_, _, user, err := s.read(ctx)
	if err != nil {
		return registration.Pair{}, err
	}
	pair, err := registration.NewPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		return registration.Pair{}, fmt.Errorf("kubeconfig in secret %s: %w", KubeconfigSecret, err)
	}
	return pair, nil
}

// Save implements Store. A Secret that somebody else has changed meanwhile is a
// conflict, and tried again.
func (s SecretStore) Save(ctx context.Context, p registration.Pair) error {
	secret, config, user, err := s.read(ctx)
	if err != nil {
		return err
	}
	user.ClientCertificateData, user.ClientKeyData = p.Split()
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	secret.Data[KubeconfigSecretKey] = data
	_, err = s.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	return err
}

func (s SecretStore) read(ctx context.Context) (*corev1.Secret, *clientcmdapi.Config, *clientcmdapi.AuthInfo, error) {
	secret, err := s.Secrets.Get(ctx, KubeconfigSecret, metav1.GetOptions{})
	if err != nil {
		return nil, nil, nil, err
	}
	config, err := clientcmd.Load(secret.Data[KubeconfigSecretKey])
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kubeconfig in secret %s: %w", KubeconfigSecret, err)
	}
	user, err := currentUser(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kubeconfig in secret %s: %w", KubeconfigSecret, err)
	}
	return secret, config, user, nil
}

// currentUser returns the user of the current context.
func currentUser(config *clientcmdapi.Config) (*clientcmdapi.AuthInfo, error) {
	c := config.Contexts[config.CurrentContext]
	if c == nil {
		return nil, errors.New("there is no current context")
	}
	user := config.AuthInfos[c.AuthInfo]
	if user == nil {
		return nil, fmt.Errorf("there is no user %q", c.AuthInfo)
	}
	return user, nil
}
