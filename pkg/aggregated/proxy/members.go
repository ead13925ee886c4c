package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

// tokenKey is the token's key in an impersonator Secret (spec: behaviour/01 1.7).
const tokenKey = "token"

// members keeps the connections to members. Each has its own: one that is slow
// or dead holds up nobody else.
type members struct {
	secrets  *secrets
	patience time.Duration // how long an upgrade may take to be answered

	mu    sync.Mutex
	conns map[string]*connection // by the cluster's name
}

// A connection is how one member is reached, as long as its Cluster and its
// authority stay as they are.
type connection struct {
	origin origin
	// plain shares HTTP/2 connections. upgrade has HTTP/1.1 alone, which is all that
	// can be turned into something else.
	plain, upgrade *http.Transport
}

// An origin is what a connection is made of.
type origin struct {
	URL         string
	CA          string
	Insecure    bool
	Proxy       string
	ProxyHeader http.Header
}

// An access is what one request to a member needs.
type access struct {
	conn    *connection
	root    *url.URL
	token   string
	from    types.NamespacedName // where the token is
	secrets map[types.NamespacedName]*corev1.Secret
}

func newMembers(s *secrets, patience time.Duration) *members {
	return &members{secrets: s, patience: patience, conns: map[string]*connection{}}
}

// access returns how to reach a cluster. refused is one that the member did not
// take, nil for none: its Secrets are read again.
func (m *members) access(ctx context.Context, c *clusterv1alpha1.Cluster, refused *access) (*access, error) {
	ref := c.Spec.ImpersonatorSecretRef
	if ref == nil {
		return nil, misconfigured("the impersonatorSecretRef of cluster %s is nil: join the cluster again, or let its agent report it with --report-secrets=KubeCredentials,KubeImpersonator", c.Name)
	}
	if c.Spec.APIEndpoint == "" {
		return nil, misconfigured("the api endpoint of cluster %s is empty: set spec.apiEndpoint to the URL of its API server", c.Name)
	}
	a := &access{from: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secrets: map[types.NamespacedName]*corev1.Secret{}}
	read := func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		var old *corev1.Secret
		if refused != nil {
			old = refused.secrets[key]
		}
		secret, err := m.secrets.get(ctx, key, old)
		if err != nil {
			return nil, err
		}
		a.secrets[key] = secret
		return secret, nil
	}
	secret, err := read(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, misconfigured("the impersonator secret %s of cluster %s does not exist: join or register the cluster again", a.from, c.Name)
	case err != nil:
		return nil, misconfigured("read the impersonator secret %s of cluster %s: %s", a.from, c.Name, oneLine(err))
	}
	if a.token = strings.TrimSpace(string(secret.Data[tokenKey])); a.token == "" {
		return nil, misconfigured("the impersonator secret %s of cluster %s has no key %s: join or register the cluster again", a.from, c.Name, tokenKey)
	}
	endpoint, err := member.NewEndpoint(ctx, c, read)
	switch {
	case apierrors.IsNotFound(err):
		return nil, misconfigured("%s: join or register the cluster again", oneLine(err))
	case err != nil:
		return nil, misconfigured("%s", oneLine(err))
	}
	if a.conn, err = m.connection(c.Name, endpoint); err != nil {
		return nil, misconfigured("connect to cluster %s: %s", c.Name, oneLine(err))
	}
	a.root = endpoint.URL
	return a, nil
}

// same says whether two ways to reach a member are the same.
func (a *access) same(other *access) bool { return a.conn == other.conn && a.token == other.token }

// connection returns the connection to an endpoint, a new one if there is none
// or what it is made of has changed.
func (m *members) connection(name string, e *member.Endpoint) (*connection, error) {
	from := origin{URL: e.URL.String(), CA: string(e.CA), Insecure: e.Insecure, ProxyHeader: e.ProxyHeader}
	if e.Proxy != nil {
		from.Proxy = e.Proxy.String()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.conns[name]
	if old != nil && reflect.DeepEqual(old.origin, from) {
		return old, nil
	}
	conn, err := newConnection(from, e, m.patience)
	if err != nil {
		return nil, err
	}
	m.conns[name] = conn
	if old != nil {
		old.close()
	}
	return conn, nil
}

// forget drops the connection to a cluster that is gone.
func (m *members) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if conn := m.conns[name]; conn != nil {
		conn.close()
		delete(m.conns, name)
	}
}

// close drops all connections.
func (m *members) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, conn := range m.conns {
		conn.close()
		delete(m.conns, name)
	}
}

func newConnection(from origin, e *member.Endpoint, patience time.Duration) (*connection, error) {
	plain, err := newTransport(e)
	if err != nil {
		return nil, err
	}
	upgrade, err := newTransport(e)
	if err != nil {
		return nil, err
	}
	upgrade.ForceAttemptHTTP2 = false
	upgrade.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	upgrade.ResponseHeaderTimeout = patience
	upgrade.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return &connection{origin: from, plain: plain, upgrade: upgrade}, nil
}

// newTransport returns a transport that passes answers on as they are and whose
// failures to connect are told apart from others. Members are newer than TLS 1.2
// (spec: behaviour/09 9.2).
func newTransport(e *member.Endpoint) (*http.Transport, error) {
	t, err := e.Transport(tls.VersionTLS13)
	if err != nil {
		return nil, err
	}
	t.DisableCompression = true
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	return t, nil
}

// close gives up connections that nobody uses; those in use go on.
func (c *connection) close() {
	c.plain.CloseIdleConnections()
	c.upgrade.CloseIdleConnections()
}
