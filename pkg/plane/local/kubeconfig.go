package local

import (
	"fmt"
	"os"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/kubeconfig"
)

// The entries of the admin's kubeconfig; the context has the cluster's name (spec: cli/init.md 6).
func adminNames() kubeconfig.Names {
	return kubeconfig.Names{Cluster: names.APIServer, User: "karmada-admin", Context: names.APIServer}
}

// writeAdminKubeconfig writes the kubeconfig for people into the data directory. Contexts that they added stay.
func writeAdminKubeconfig(p plane.Plane) (bool, error) {
	return writeKubeconfig(p, p.Layout.AdminKubeconfig(), adminNames())
}

// writeKubeconfig writes the admin's credentials to path.
func writeKubeconfig(p plane.Plane, path string, n kubeconfig.Names) (bool, error) {
	ca, cert, key := p.Layout.AdminFiles()
	c, err := kubeconfig.Embedded(n, p.Config.Server(), ca, cert, key)
	if err != nil {
		return false, err
	}
	return kubeconfig.Upsert(path, c)
}

// clusterInfo is what ConfigMap cluster-info tells about the control plane.
func clusterInfo(p plane.Plane) ([]byte, error) {
	ca, _, _ := p.Layout.AdminFiles()
	data, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the CA for cluster-info: %w", err)
	}
	return kubeconfig.Encode(kubeconfig.ClusterInfo(p.Config.Server(), data))
}

// caHash is the pin by which a registering cluster recognises the control plane (spec: cli/commands.md 3.3).
func caHash(p plane.Plane) (string, error) {
	ca, _, _ := p.Layout.AdminFiles()
	data, err := os.ReadFile(ca)
	if err != nil {
		return "", fmt.Errorf("read the CA for its hash: %w", err)
	}
	parsed, err := certs.ParseCertificates(data)
	if err != nil {
		return "", fmt.Errorf("read the CA for its hash: %w", err)
	}
	return certs.Fingerprint(parsed[0]), nil
}
