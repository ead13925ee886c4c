package factory

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A failure is how the last request of a connection went wrong; the zero value
// is one that did not.
type failure struct {
	raw       error // what the transport said
	explained *Error
}

// server is what an error says about the other end.
type server struct {
	url        string
	clientCert func() *x509.Certificate
}

func describe(cfg *rest.Config) server {
	data, file := cfg.CertData, cfg.CertFile
	return server{url: cfg.Host, clientCert: func() *x509.Certificate {
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

// watchFailures remembers how the last request went. The errors themselves are
// passed on as they are: client-go decides by them what to try again.
func (c *connection) watchFailures(s server) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			var last failure
			switch {
			case errors.Is(err, context.Canceled):
				// The command gave up by itself.
			case err != nil:
				last = failure{raw: asClient(err), explained: c.explain(s, err)}
			case resp.StatusCode == http.StatusUnauthorized:
				if e := c.explainUnauthorized(s); e != nil {
					last = failure{explained: e}
				}
			}
			c.mu.Lock()
			c.last = last
			c.mu.Unlock()
			return resp, err
		})
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
	return roundTripper(func(req *http.Request) (*http.Response, error) {
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
	})
}

func (c *connection) lastFailure() failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
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
	)
	switch {
	case asValue(err, &unknownCA):
		return as(WrongCA, "the certificate of %s is not signed by the CA that %s trusts; it belongs to another control plane, or is older than this one: use the kubeconfig that init of this control plane wrote",
			s.url, c.from())
	case asValue(err, &invalid) && invalid.Reason == x509.Expired:
		return as(ServerCertificateExpired, "the certificate of %s is not valid now (%s); check the clock of this host, or renew the control plane's certificates",
			s.url, validity(invalid.Cert))
	case asValue(err, &host):
		return as(WrongHost, "the certificate of %s is not for that address (%s); use an address that it names, or add this one with init's --cert-external-ip or --cert-external-dns",
			s.url, oneLine(host))
	}

	why := oneLine(err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.As(err, &dns):
		why = fmt.Sprintf("its name %q cannot be resolved (%s)", dns.Name, dns.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		why = "it does not speak TLS"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		why = "it closed the connection"
	case errors.As(err, &netErr) && netErr.Timeout():
		why = "no answer in time"
	}
	return as(Unreachable, "cannot reach the control plane at %s (%s): %s; check that it runs (on its own host: %q) and that the address is right",
		s.url, c.from(), why, c.opts.Program+" status")
}

// explainUnauthorized finds the reason that the client can see for itself.
func (c *connection) explainUnauthorized(s server) *Error {
	cert := s.clientCert()
	if cert == nil {
		return nil
	}
	if now := time.Now(); !now.Before(cert.NotBefore) && !now.After(cert.NotAfter) {
		return nil
	}
	return &Error{Reason: ClientCertificateExpired, text: fmt.Sprintf(
		"%s refuses the client certificate of %s: it is not valid now (%s); check the clock of this host, or get a new kubeconfig from the control plane's administrator",
		s.url, c.from(), validity(cert))}
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
