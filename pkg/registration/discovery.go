package registration

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// ErrNoCA says that a kubeconfig trusts no CA of its own, so that there is nothing to recognise its server by.
var ErrNoCA = errors.New("the kubeconfig has no certificate authority")

// A Discovery says where a control plane is and how to recognise it.
type Discovery struct {
	// Endpoint is host:port, and the path below which the server is, if there is one (spec: cli/commands.md 3.3).
	Endpoint string
	// CAHashes are the public key pins of the CAs, each "sha256:" and hex.
	CAHashes []string
}

// NewDiscovery reads c for what a Discovery needs: the server, and the CAs, be they embedded or in a file. The error
// of a config without any CA is ErrNoCA.
func NewDiscovery(c *rest.Config) (Discovery, error) {
	endpoint, err := EndpointOf(c.Host)
	if err != nil {
		return Discovery{}, err
	}
	data := c.CAData
	switch {
	case len(data) > 0: // wins over the file, as it does in client-go
	case c.CAFile != "":
		if data, err = os.ReadFile(c.CAFile); err != nil {
			return Discovery{}, fmt.Errorf("read the certificate authority of %s: %w", endpoint, err)
		}
	default:
		return Discovery{}, ErrNoCA
	}
	hashes, err := CAHashes(data)
	if err != nil {
		return Discovery{}, fmt.Errorf("read the certificate authority of %s: %w", endpoint, err)
	}
	return Discovery{Endpoint: endpoint, CAHashes: hashes}, nil
}

// EndpointOf returns the endpoint of a server's URL, as register takes it: without the scheme, and with a port.
func EndpointOf(server string) (string, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err // the whole has the URL in it, which may have a password in it
		}
		return "", fmt.Errorf("the server's address is not a URL: %w", err)
	case u.User != nil:
		return "", errors.New("the server's address has credentials in it, which must not be handed on: take them out of the kubeconfig's server")
	case u.Scheme != "https":
		return "", fmt.Errorf("the server's address %s does not begin with https://: without TLS there is no control plane to recognise", server)
	case u.Hostname() == "":
		return "", fmt.Errorf("the server's address %s names no host", server)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port) + strings.TrimSuffix(u.EscapedPath(), "/"), nil
}

// CAHashes returns the public key pins of all CAs in PEM data, each once, in their order.
func CAHashes(data []byte) ([]string, error) {
	found, err := cert.ParseCertsPEM(data)
	if err != nil {
		return nil, err
	}
	var hashes []string
	for _, c := range found {
		if hash := CAHash(c); !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// CAHash is the pin of one CA, as in --discovery-token-ca-cert-hash: "sha256:" and the hex SHA-256 of its
// SubjectPublicKeyInfo (spec: cli/commands.md 3.3).
func CAHash(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// RegisterCommand is the line that registers a cluster with a token; program is what users type (spec: cli/commands.md
// 3.3). A token for a named cluster brings the name. The agent is a process, as long as register's default, a Deployment, is
// not available.
func (d Discovery) RegisterCommand(program string, t Token) string {
	line := fmt.Sprintf("%s register %s --token %s --discovery-token-ca-cert-hash %s", program, d.Endpoint, t.Value(), strings.Join(d.CAHashes, ","))
	if t.Cluster != "" {
		line += " --cluster-name " + t.Cluster
	}
	return line + " --agent=process"
}
