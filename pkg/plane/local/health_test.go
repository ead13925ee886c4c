package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestSummarize(t *testing.T) {
	cases := map[string]struct{ reason, status, body, want string }{
		"Failed": {
			"Of the many checks that /readyz lists, those that failed are what matters.", "500 Internal Server Error",
			"[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n",
			"not ready: etcd, poststarthook/rbac/bootstrap-roles",
		},
		"NoList":   {"Without a list the status has to do.", "503 Service Unavailable", "try later", "not ready: HTTP status 503 Service Unavailable"},
		"Empty":    {"An empty answer, too.", "404 Not Found", "", "not ready: HTTP status 404 Not Found"},
		"BareName": {"A name may stand alone.", "500 Internal Server Error", "  [-]etcd", "not ready: etcd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := summarize(c.status, c.body); got != c.want {
				t.Errorf("got %q, want %q\nreason: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestAskHealth(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	plain := httptest.NewServer(ok)
	t.Cleanup(plain.Close)
	sick := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(sick.Close)
	gone := httptest.NewServer(ok)
	gone.Close()

	pki := certs.Dir{Path: t.TempDir()}
	specs := []certs.Spec{
		{Name: "ca", CommonName: "test"},
		{Name: "client", CA: "ca", CommonName: "client", Usages: certs.ClientAuth},
	}
	if _, err := pki.Ensure(t.Context(), specs, certs.Options{}); err != nil {
		t.Fatal(err)
	}
	secure, serverCA := tlsServer(t, ok, nil)
	clients := x509.NewCertPool()
	ca, err := certs.LoadAuthority(pki.CertFile("ca"), pki.KeyFile("ca"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	clients.AddCert(ca.Certificate())
	strict, strictCA := tlsServer(t, ok, clients)
	noCertificate := filepath.Join(t.TempDir(), "empty.crt")
	write(t, noCertificate, "nothing")

	cases := map[string]struct {
		reason string
		check  plane.HealthCheck
		says   string // "" is healthy
	}{
		"Plain":          {"Some components answer in the clear, on loopback.", plane.HealthCheck{URL: plain.URL}, ""},
		"Sick":           {"What it answers is passed on.", plane.HealthCheck{URL: sick.URL}, "404"},
		"Gone":           {"Nobody there.", plane.HealthCheck{URL: gone.URL}, "connection refused"},
		"TLS":            {"The CA is the plane's own.", plane.HealthCheck{URL: secure, CAFile: serverCA}, ""},
		"WrongCA":        {"Another server on that port is not ours.", plane.HealthCheck{URL: secure, CAFile: pki.CertFile("ca")}, "certificate"},
		"NoCA":           {"A CA that is missing is named.", plane.HealthCheck{URL: secure, CAFile: "/nowhere/ca.crt"}, "/nowhere/ca.crt"},
		"EmptyCA":        {"So is one that is none.", plane.HealthCheck{URL: secure, CAFile: noCertificate}, noCertificate},
		"ClientRequired": {"Etcd answers nobody without a certificate.", plane.HealthCheck{URL: strict, CAFile: strictCA}, "certificate required"},
		"Client":         {"With one it does.", plane.HealthCheck{URL: strict, CAFile: strictCA, CertFile: pki.CertFile("client"), KeyFile: pki.KeyFile("client")}, ""},
		"NoClientKey":    {"A key that is missing is named.", plane.HealthCheck{URL: strict, CAFile: strictCA, CertFile: pki.CertFile("client"), KeyFile: "/nowhere/client.key"}, "/nowhere/client.key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := AskHealth(t.Context(), c.check)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := AskHealth(ctx, plane.HealthCheck{URL: plain.URL}); err == nil {
		t.Error("asked although nobody wants to know any more")
	}
}

// tlsServer returns the URL of a server, and the file of the certificate to trust. With clients it wants one of theirs.
func tlsServer(t *testing.T, h http.Handler, clients *x509.CertPool) (url, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if clients != nil {
		s.TLS = &tls.Config{ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "server.crt")
	write(t, caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	return s.URL, caFile
}
