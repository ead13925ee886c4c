package agent

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/karmadactl/karmadactl/pkg/controllers/certrotation"
)

// controlPlaneConfig reads --karmada-kubeconfig.
func (f *Flags) controlPlaneConfig() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.ControlPlane},
		&clientcmd.ConfigOverrides{CurrentContext: f.ControlPlaneContext},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// certificateStore returns where the agent's certificate is: in the file that its
// kubeconfig names or, embedded there, in a Secret of its cluster.
func (p parts) certificateStore() (certrotation.Store, error) {
	tls := p.controlPlane.TLSClientConfig
	switch {
	case len(tls.CertData) > 0:
		core, err := v1.NewForConfig(p.memberConfig)
		if err != nil {
			return nil, fmt.Errorf("make a client of the cluster: %w", err)
		}
		return certrotation.SecretStore{Secrets: core.Secrets(p.flags.CertRotation.SecretNamespace)}, nil
	case tls.CertFile == "":
		return nil, errors.New("--karmada-kubeconfig has no client certificate to renew: disable it with --controllers=*,-certRotation")
	case tls.CertFile != tls.KeyFile:
		return nil, errors.New("--karmada-kubeconfig names one file for the certificate and another for its key, which cannot be replaced as one: put both into one file and name it twice, or disable it with --controllers=*,-certRotation")
	}
	return certrotation.FileStore(tls.CertFile), nil
}
