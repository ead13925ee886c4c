package factory

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A wrapped roundTripper is one around another, which what looks for a
// connection can get at.
type wrapped struct {
	roundTripper
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = wrapped{}

func (w wrapped) WrappedRoundTripper() http.RoundTripper { return w.next }

// A failure is how the last request of a connection went wrong; the zero value
// is one that did not.
type failure struct {
	raw       error // what the transport said
	url       string
	explained *Error
}

// server is what an error says about the other end.
type server struct {
	url string
	// via is the proxy in between, "" none.
	via        string
	clientCert func() *x509.Certificate
}

func describe(cfg *rest.Config) server {
	data, file := cfg.CertData, cfg.CertFile
	return server{url: withoutUser(cfg.Host), via: proxyOf(cfg), clientCert: func() *x509.Certificate {
		if len(data) == 0 && file != "" {
			data, _ = os.ReadFile(file) // without it there is one explanation less
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return nil
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return cert
	}}
}

// withoutUser takes a password out of an address, if there is one.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// proxyOf returns the proxy that the kubeconfig, or else the environment, puts in between.
func proxyOf(cfg *rest.Config) string {
	u, err := url.Parse(cfg.Host)
	if err != nil {
		return ""
	}
	find := cfg.Proxy
	if find == nil {
		find = http.ProxyFromEnvironment
	}
	proxy, err := find(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return withoutUser(proxy.String())
}

// watchFailures remembers how the last request went. The errors themselves are
// passed on as they are: client-go decides by them what to try again.
func (c *connection) watchFailures(s server) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return wrapped{next: next, roundTripper: func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			var last failure
			switch {
			case errors.Is(err, context.Canceled):
				// The command gave up by itself.
			case leadsNowhere(req, resp):
				last = failure{explained: c.explainRedirect(s, req, resp)}
			case wantsTLS(resp):
				last = failure{explained: c.explainPlain(s, req)}
			case err != nil:
				last = failure{raw: asClient(err), url: s.url, explained: c.explain(s, err)}
			case isPage(resp):
				last = failure{explained: c.explainPage(s, resp)}
			case resp.StatusCode == http.StatusUnauthorized:
				last = failure{explained: c.explainUnauthorized(s)}
			}
			c.remember(last)
			return resp, err
		}}
	}
}

// watchLosses remembers the requests that went nowhere, and no answer: what is
// answered on the way to a member may be the member's.
func (c *connection) watchLosses(s server) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return wrapped{next: next, roundTripper: func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			var last failure
			if err != nil && req.Context().Err() == nil {
				last = failure{raw: asClient(err), url: s.url, explained: c.explain(s, err)}
			}
			c.remember(last)
			return resp, err
		}}
	}
}

// asClient is how an http.Client passes err on. It has words of its own for a
// server that answers a TLS handshake in plain text.
func asClient(err error) error {
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return http.ErrSchemeMismatch
	}
	return err
}

// failFast repeats the first failure of a server that never answered: kubectl's
// packages ask five times before they give up, each for as long as a dial takes.
func failFast(next http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	var answered bool
	var failed error
	return wrapped{next: next, roundTripper: func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		known := failed
		mu.Unlock()
		if known != nil {
			return nil, known
		}

		resp, err := next.RoundTrip(req)

		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			answered, failed = true, nil
		case !answered && !errors.Is(err, context.Canceled):
			failed = err
		}
		return resp, err
	}}
}

// someFailures is how many failures are remembered after another request has
// succeeded: a command that failed may clean up before it says so.
const someFailures = 16

func (c *connection) remember(last failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = last
	if last.raw != nil && len(c.earlier) < someFailures {
		c.earlier = append(c.earlier, last)
	}
}

// explanationOf returns why err happened, nil if not because of this server.
func (c *connection) explanationOf(err error) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.explained != nil && isAbout(err, c.last) {
		return c.last.explained
	}
	var transport *url.Error
	if !errors.As(err, &transport) {
		return nil
	}
	for _, f := range c.earlier {
		if errors.Is(err, f.raw) && isAbout(err, f) {
			return f.explained
		}
	}
	// Where credentials come from is asked before anything goes to the server.
	if text := oneLine(transport.Err); strings.HasPrefix(text, "getting credentials: ") && isBelow(transport.URL, c.server) {
		return &Error{Reason: CredentialsUnavailable, cause: err, text: fmt.Sprintf(
			"the credentials of %s cannot be had: %s; run its credential plugin by itself to see why, or pass another kubeconfig with %s",
			c.from(), strings.TrimPrefix(text, "getting credentials: "), c.end.kubeconfigFlag)}
	}
	return nil
}

// from names the kubeconfig and the context that led to the server.
func (c *connection) from() string {
	s, err := c.source()
	switch {
	case err != nil:
		return "the kubeconfig"
	case s.inCluster:
		return "the service account of this pod"
	default:
		return fmt.Sprintf("context %q of kubeconfig %s", s.context, s.name())
	}
}

// explain turns what the transport said into what the user can act on.
func (c *connection) explain(s server, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	as := func(r Reason, format string, args ...any) *Error {
		return &Error{Reason: r, text: fmt.Sprintf(format, args...), cause: err}
	}

	var (
		unknownCA *x509.UnknownAuthorityError
		invalid   *x509.CertificateInvalidError
		host      *x509.HostnameError
		dns       *net.DNSError
		netErr    net.Error
		record    tls.RecordHeaderError
		op        *net.OpError
	)
	name := c.end.server(s.url)
	switch {
	case asValue(err, &unknownCA):
		return as(WrongCA, "the certificate of %s is not signed by the CA that %s trusts; it belongs to another %s, or is older than this one: %s",
			name, c.from(), c.end.kind, c.end.newKubeconfig)
	case asValue(err, &invalid) && invalid.Reason == x509.Expired:
		return as(ServerCertificateExpired, "the certificate of %s is not valid now (%s); check the clock of this host, or renew the %s's certificates",
			name, validity(invalid.Cert), c.end.kind)
	case asValue(err, &host):
		return as(WrongHost, "the certificate of %s is not for that address (%s); use an address that it names%s",
			name, oneLine(host), c.end.addAddress)
	}

	why, to := oneLine(err), "the address is right"
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.As(err, &dns):
		why = fmt.Sprintf("its name %q cannot be resolved (%s)", dns.Name, dns.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		why = "it does not speak TLS"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		why = "it closed the connection"
	case errors.As(err, &netErr) && netErr.Timeout(), strings.HasSuffix(err.Error(), "request canceled"): // by the client's timer
		why = "no answer in time"
	}
	if s.via != "" {
		// Only a failure of the proxy itself is known to be one.
		if errors.As(err, &op) && op.Op == "proxyconnect" {
			why = "its proxy " + s.via + ": " + why
		} else {
			why += " (through its proxy " + s.via + ")"
		}
		to = "the addresses of both are right"
	}
	return as(Unreachable, "cannot reach the %s at %s (%s): %s; check that it runs%s and that %s",
		c.end.noun, s.url, c.from(), why, c.end.howToCheck, to)
}

// leadsNowhere reports whether a request is redirected, or was, to another host that does not serve it either (resp may be
// nil). That one is followed which does is no failure: what comes of it is remembered next.
func leadsNowhere(req *http.Request, resp *http.Response) bool {
	if resp != nil && isRedirect(resp) {
		return true
	}
	if req.Response == nil || req.Response.Request == nil || req.Response.Request.URL.Host == req.URL.Host {
		return false
	}
	return resp == nil || resp.StatusCode >= http.StatusBadRequest || isPage(resp)
}

func isRedirect(resp *http.Response) bool {
	return resp.StatusCode/100 == 3 && resp.Header.Get("Location") != ""
}

func (c *connection) explainRedirect(s server, req *http.Request, resp *http.Response) *Error {
	to := req.URL
	if resp != nil && isRedirect(resp) {
		if at, err := resp.Location(); err == nil {
			to = at
		}
	}
	// What a login page is handed in its query is nobody's business.
	return &Error{Reason: NotKubernetes, text: fmt.Sprintf(
		"%s (%s) sends requests on to %s://%s, which no Kubernetes API server does; check that the address is that of the API server itself",
		c.end.server(s.url), c.from(), to.Scheme, to.Host)}
}

// wantsTLS reports whether an answer is that of a TLS port to a request in plain text. The body stays as it is.
func wantsTLS(resp *http.Response) bool {
	if resp == nil || resp.TLS != nil || resp.StatusCode != http.StatusBadRequest || resp.Request == nil || resp.Request.URL.Scheme != "http" {
		return false
	}
	const enough = 1 << 10
	start, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
	text := string(start)
	// The words of Go's server, and of nginx.
	return err == nil && (strings.Contains(text, "HTTP request to an HTTPS server") || strings.Contains(text, "HTTP request was sent to HTTPS port"))
}

func (c *connection) explainPlain(s server, req *http.Request) *Error {
	return &Error{Reason: NotKubernetes, text: fmt.Sprintf(
		"%s (%s) speaks TLS, and the kubeconfig's address has http:// or nothing in front: use https://%s", c.end.server(s.url), c.from(), req.URL.Host)}
}

// isPage reports whether an answer is one for people, which no API server gives.
func isPage(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "text/html"
}

func (c *connection) explainPage(s server, resp *http.Response) *Error {
	between := ""
	if resp.StatusCode >= http.StatusInternalServerError {
		between = ", as a load balancer or proxy without a server behind it does"
	}
	return &Error{Reason: NotKubernetes, text: fmt.Sprintf(
		"%s (%s) answers %q with a web page, and not as a Kubernetes API server%s; check that the address is right",
		c.end.server(s.url), c.from(), resp.Status, between)}
}

// explainUnauthorized says whose credentials were refused, and the reason if the client can see it for itself.
func (c *connection) explainUnauthorized(s server) *Error {
	cert := s.clientCert()
	if now := time.Now(); cert != nil && (now.Before(cert.NotBefore) || now.After(cert.NotAfter)) {
		return &Error{Reason: ClientCertificateExpired, text: fmt.Sprintf(
			"%s refuses the client certificate of %s: it is not valid now (%s); check the clock of this host, or get a new kubeconfig from the %s's administrator",
			c.end.server(s.url), c.from(), validity(cert), c.end.kind)}
	}
	return &Error{Reason: Unauthorized, text: fmt.Sprintf(
		"%s refuses the credentials of %s (Unauthorized): they have expired, were withdrawn, or are for another server; get a new kubeconfig from the %s's administrator",
		c.end.server(s.url), c.from(), c.end.kind)}
}

func validity(cert *x509.Certificate) string {
	if cert == nil {
		return "expired or not yet valid"
	}
	return fmt.Sprintf("valid from %s to %s", cert.NotBefore.UTC().Format(time.RFC3339), cert.NotAfter.UTC().Format(time.RFC3339))
}

// asValue is errors.As for crypto/x509's errors, which are returned by value;
// the pointer keeps the cases of a switch short.
func asValue[E error](err error, target **E) bool {
	var e E
	if !errors.As(err, &e) {
		return false
	}
	*target = &e
	return true
}
