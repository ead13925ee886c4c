package factory

import (
	"errors"
	"fmt"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the member's kubeconfig with the one context that was chosen,
// for a process that goes on using it: what it names in other files is embedded, as
// far as that is possible. Programs that it runs for credentials, files with tokens,
// and proxies stay as they are.
func (m *Member) Kubeconfig() (clientcmdapi.Config, error) {
	s, err := m.conn.source()
	switch {
	case err != nil:
		return clientcmdapi.Config{}, err
	case s.none != nil:
		return clientcmdapi.Config{}, s.none
	case s.inCluster:
		return clientcmdapi.Config{}, errors.New("the service account of this pod is no kubeconfig that could be handed on: name one with " + m.conn.end.kubeconfigFlag)
	}
	config := s.config.DeepCopy()
	config.CurrentContext = s.context
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return clientcmdapi.Config{}, fmt.Errorf("use %s: %w", m.conn.from(), err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return clientcmdapi.Config{}, fmt.Errorf("use %s: read a file that it names: %w", m.conn.from(), err)
	}
	return *config, nil
}
