package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

// probeTimeout bounds one question after a component's health.
const probeTimeout = 3 * time.Second

// A probe asks one component for its health.
type probe struct {
	check  plane.HealthCheck
	client *http.Client
}

func newProbe(h plane.HealthCheck) (*probe, error) {
	transport := &http.Transport{Proxy: nil, MaxIdleConns: 1, IdleConnTimeout: probeTimeout}
	if h.CAFile != "" {
		pem, err := os.ReadFile(h.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA for its health check: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the CA for its health check: no certificate in %s", h.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if h.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(h.CertFile, h.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate for its health check: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &probe{check: h, client: &http.Client{Transport: transport, Timeout: probeTimeout}}, nil
}

// ask returns nil when the component says that it is ready, else what it said or why it could not be asked.
func (p *probe) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.check.URL, nil)
	if err != nil {
		return fmt.Errorf("make the health request: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for its health: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	if err != nil {
		return fmt.Errorf("read its health: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return errors.New(summarize(resp.Status, string(body)))
}

// summarize picks the checks that failed out of the list that /readyz prints.
func summarize(status, body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			name, _, _ = strings.Cut(name, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		return "not ready: " + strings.Join(failed, ", ")
	}
	return "not ready: HTTP status " + status
}

func (p *probe) close() { p.client.CloseIdleConnections() }

// AskHealth asks a component once.
func AskHealth(ctx context.Context, h plane.HealthCheck) error {
	p, err := newProbe(h)
	if err != nil {
		return err
	}
	defer p.close()
	return p.ask(ctx)
}
