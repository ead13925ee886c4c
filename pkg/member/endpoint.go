package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// Keys of the Secrets that a Cluster refers to (spec: behaviour/01 1.7).
const (
	tokenKey    = "token"
	caBundleKey = "caBundle"
)

const (
	dialTimeout         = 30 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
)

// Secrets reads a Secret of the control plane. It is asked often: with a cache
// behind it nobody pays for that.
type Secrets func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// An Endpoint is where the API of a member is, and how connections to it are
// made. It has no credentials. It is not changed once it is made.
type Endpoint struct {
	// URL is the root of the API, with a path when the API has a prefix.
	URL *url.URL
	// CA are the certificates that are trusted, PEM encoded. Empty: those of the
	// system.
	CA []byte
	// Insecure accepts any certificate.
	Insecure bool
	// Proxy is what connections go through: http, https or socks5. Nil: what the
	// environment says.
	Proxy *url.URL
	// ProxyHeader are the headers of CONNECT requests to Proxy.
	ProxyHeader http.Header
}

// NewEndpoint returns how the API of a cluster is reached. A cluster without
// secretRef has no authority of its own: those of the system are trusted
// (spec: behaviour/09 9.2). An error says what is wrong with the Cluster or its
// Secret.
func NewEndpoint(ctx context.Context, c *clusterv1alpha1.Cluster, secrets Secrets) (*Endpoint, error) {
	e := &Endpoint{Insecure: c.Spec.InsecureSkipTLSVerification}
	var err error
	if e.URL, err = apiURL(c); err != nil {
		return nil, err
	}
	if e.Proxy, e.ProxyHeader, err = proxyOf(c); err != nil {
		return nil, err
	}
	if e.Insecure || c.Spec.SecretRef == nil {
		return e, nil
	}
	secret, err := secrets(ctx, c.Spec.SecretRef.Namespace, c.Spec.SecretRef.Name)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of cluster %s: %w", c.Name, err)
	}
	ca := secret.Data[caBundleKey]
	if len(ca) == 0 {
		return nil, fmt.Errorf("secret %s/%s of cluster %s has no key %s: join the cluster again, or set spec.insecureSkipTLSVerification",
			secret.Namespace, secret.Name, c.Name, caBundleKey)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("key %s of secret %s/%s of cluster %s holds no PEM certificate: join the cluster again",
			caBundleKey, secret.Namespace, secret.Name, c.Name)
	}
	e.CA = ca
	return e, nil
}

func apiURL(c *clusterv1alpha1.Cluster) (*url.URL, error) {
	if c.Spec.APIEndpoint == "" {
		return nil, fmt.Errorf("the api endpoint of cluster %s is empty", c.Name)
	}
	u, err := url.Parse(c.Spec.APIEndpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the api endpoint of cluster %s is no URL", c.Name) // the error quotes it, with any password in it
	case u.User != nil:
		return nil, fmt.Errorf("the api endpoint of cluster %s has credentials in it: they belong into its secret", c.Name)
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the api endpoint %q of cluster %s is no http(s) URL", c.Spec.APIEndpoint, c.Name)
	}
	return u, nil
}

// proxyOf returns the proxy of a cluster, nil when it has none. A header with
// several values has them separated by commas (spec: behaviour/01 1.7).
func proxyOf(c *clusterv1alpha1.Cluster) (*url.URL, http.Header, error) {
	if c.Spec.ProxyURL == "" {
		return nil, nil, nil
	}
	u, err := url.Parse(c.Spec.ProxyURL)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("the proxy URL of cluster %s is no URL", c.Name)
	}
	if !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return nil, nil, fmt.Errorf("the proxy URL of cluster %s has the scheme %q: http, https and socks5 are supported", c.Name, u.Scheme)
	}
	header := http.Header{}
	for _, key := range slices.Sorted(maps.Keys(c.Spec.ProxyHeader)) {
		for value := range strings.SplitSeq(c.Spec.ProxyHeader[key], ",") {
			header.Add(key, strings.TrimSpace(value))
		}
	}
	return u, header, nil
}

// TLS returns the settings of connections to the API, at least of version min
// (tls.VersionTLS13, say).
func (e *Endpoint) TLS(min uint16) (*tls.Config, error) {
	t := &tls.Config{MinVersion: min, InsecureSkipVerify: e.Insecure} //nolint:gosec // the user's own choice, per cluster
	if len(e.CA) > 0 {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(e.CA) {
			return nil, errors.New("the authority of the cluster is no PEM certificate")
		}
	}
	return t, nil
}

// Transport returns a new transport with connections of its own, made by Dial:
// it serves plain requests and, with its DialContext and TLSClientConfig,
// upgrades to SPDY or WebSocket alike. It follows no environment.
func (e *Endpoint) Transport(minTLS uint16) (*http.Transport, error) {
	t, err := e.TLS(minTLS)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               func(*http.Request) (*url.URL, error) { return nil, nil }, // Dial does that
		DialContext:         e.Dial,
		TLSClientConfig:     t,
		TLSHandshakeTimeout: tlsHandshakeTimeout,
		MaxIdleConnsPerHost: 25,
	}), nil
}

// Dial opens a connection to an address of the member, without TLS, through the
// proxy if there is one.
func (e *Endpoint) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return dialThrough(ctx, e.proxy, e.ProxyHeader, network, address)
}

// proxy says what a request to the member goes through; nil for nothing.
func (e *Endpoint) proxy(r *http.Request) (*url.URL, error) {
	if e.Proxy != nil {
		return e.Proxy, nil
	}
	return http.ProxyFromEnvironment(r)
}
