package registration

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// An Endpoint is how the API server of a member is reached, apart from credentials.
type Endpoint struct {
	// URL is what becomes the Cluster's apiEndpoint.
	URL string
	// ProxyURL is the proxy in between, "" none.
	ProxyURL string
	// Insecure accepts any certificate.
	Insecure bool
	// CA is by what the kubeconfig recognises the server, in PEM form; empty if by what the system trusts.
	CA []byte
	// ServerName is the name that the kubeconfig wants in the certificate, if it is another than the URL's host. A Cluster
	// has no place for it.
	ServerName string
}

// NewEndpoint reads what a kubeconfig's settings say. What a Cluster could not keep is an error.
func NewEndpoint(cfg *rest.Config) (Endpoint, error) {
	// What a broken address is quoted with may have a password in it.
	var broken *url.Error
	if _, err := url.Parse(cfg.Host); strings.Contains(cfg.Host, "://") && errors.As(err, &broken) {
		return Endpoint{}, fmt.Errorf("the server's address in the kubeconfig is not a URL: %w", broken.Err)
	}
	base, _, err := rest.DefaultServerUrlFor(&rest.Config{Host: cfg.Host, TLSClientConfig: cfg.TLSClientConfig})
	if err != nil {
		return Endpoint{}, errors.New("the server's address in the kubeconfig is not a URL, such as https://10.0.0.1:6443")
	}
	switch {
	case base.User != nil:
		return Endpoint{}, errors.New("the server's address in the kubeconfig has credentials in it, which everybody who may read Clusters would see: take them out of the address; a token or a client certificate has its own place in a kubeconfig")
	case base.Scheme != "https" && base.Scheme != "http":
		return Endpoint{}, fmt.Errorf("the server's address in the kubeconfig begins with %s://, and neither with https:// nor with http://", base.Scheme)
	case base.Hostname() == "":
		return Endpoint{}, fmt.Errorf("the server's address %s in the kubeconfig names no host", base)
	case base.RawQuery != "" || base.Fragment != "":
		return Endpoint{}, fmt.Errorf("the server's address in the kubeconfig has more than a host and a path: leave what begins with ? or # out of %s://%s", base.Scheme, base.Host)
	}
	e := Endpoint{URL: endpointURL(cfg.Host, base), Insecure: cfg.Insecure, CA: cfg.CAData}
	if len(e.CA) == 0 && cfg.CAFile != "" {
		if e.CA, err = os.ReadFile(cfg.CAFile); err != nil {
			return Endpoint{}, fmt.Errorf("read the certificate authority of %s: %w", e.URL, err)
		}
	}
	if cfg.ServerName != base.Hostname() {
		e.ServerName = cfg.ServerName
	}
	if cfg.Proxy != nil {
		proxy, err := cfg.Proxy(&http.Request{URL: base})
		if err != nil {
			return Endpoint{}, fmt.Errorf("find the proxy for %s: %w", e.URL, err)
		}
		if proxy != nil {
			e.ProxyURL = proxy.String()
		}
	}
	return e, nil
}

// endpointURL is the address as it was given if it is a whole URL.
func endpointURL(given string, base *url.URL) string {
	if u, err := url.Parse(given); err == nil && u.Scheme == base.Scheme && u.Host == base.Host {
		return given
	}
	return base.String()
}

// caBundle is by what a control plane recognises a member: by what the member's own pods do, and by what the kubeconfig
// does, since there may be something else than the API server at its address.
func (e Endpoint) caBundle(own []byte) []byte {
	ca := bytes.TrimSpace(e.CA)
	if len(ca) == 0 || bytes.Contains(own, ca) {
		return own
	}
	own = bytes.TrimSpace(own)
	if len(own) == 0 {
		return append(bytes.Clone(ca), '\n')
	}
	return bytes.Join([][]byte{own, ca, nil}, []byte("\n"))
}

// explain says about an error what only the kubeconfig can tell.
func (e Endpoint) explain(err error) error {
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, ErrUnauthorized):
		what := "the control plane has to reach the API server itself, and nothing in front of it that asks for other credentials"
		if isClusterProxy(e.URL) {
			what = "it is a control plane's proxy to a member: give the cluster's own kubeconfig"
		}
		return fmt.Errorf("%w: the address %s does not take the tokens of the cluster's ServiceAccounts; %s", err, e.URL, what)
	case errors.As(err, &host) && e.ServerName != "":
		return fmt.Errorf("%w; with the kubeconfig's tls-server-name %s it would be right, but a Cluster has no place for that: use an address that the certificate is for", err, e.ServerName)
	case errors.As(err, &authority) && len(e.CA) == 0:
		return fmt.Errorf("%w; what the system of this host trusts, a control plane does not: put the CA of %s into the kubeconfig, as certificate-authority-data", err, e.URL)
	}
	return err
}

// isClusterProxy reports whether an address is below a Cluster of a control plane.
func isClusterProxy(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	_, below, ok := strings.Cut(u.Path, "/apis/"+clusterv1alpha1.GroupVersion.Group+"/")
	return ok && slices.Contains(strings.Split(below, "/"), "proxy")
}

// ErrUnauthorized says that an API server does not accept a token.
var ErrUnauthorized = errors.New("the API server does not accept the token")

// probe asks for the version, which everybody may know who is somebody.
func probe(ctx context.Context, e Endpoint, caBundle, token []byte) error {
	cfg := &rest.Config{Host: e.URL, BearerToken: string(token), Timeout: requestTimeout}
	cfg.Insecure = e.Insecure
	if !e.Insecure {
		cfg.CAData = caBundle
	}
	if e.ProxyURL != "" {
		proxy, err := url.Parse(e.ProxyURL)
		if err != nil {
			return errors.New("the proxy's address is not a URL")
		}
		cfg.Proxy = http.ProxyURL(proxy)
	}
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", e.URL, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", e.URL, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("make a request to %s: %w", e.URL, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return ErrUnauthorized
	}
	return err // any other answer is one to somebody that the server knows
}
