package registration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// newCA returns a certificate in PEM form and its pin, computed from the key rather than from the certificate.
func newCA(t *testing.T) (data []byte, hash string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(spki)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "sha256:" + hex.EncodeToString(sum[:])
}

func TestEndpointOf(t *testing.T) {
	cases := map[string]struct{ reason, server, want, err string }{
		"Usual":       {"The contract's form.", "https://10.0.0.1:5443", "10.0.0.1:5443", ""},
		"Slash":       {"It is no path.", "https://10.0.0.1:5443/", "10.0.0.1:5443", ""},
		"NoPort":      {"HTTPS has one.", "https://karmada.example", "karmada.example:443", ""},
		"IPv6":        {"Brackets stay.", "https://[::1]:5443", "[::1]:5443", ""},
		"IPv6NoPort":  {"Brackets stay.", "https://[fd00::1]", "[fd00::1]:443", ""},
		"Path":        {"A server behind a proxy is below a path.", "https://proxy.example:8443/k8s/one", "proxy.example:8443/k8s/one", ""},
		"Plain":       {"It cannot be recognised.", "http://10.0.0.1:8080", "", "https://"},
		"NoScheme":    {"It is not said whether there is TLS.", "10.0.0.1:5443", "", "the server's address is not a URL"},
		"NoHost":      {"It says nothing.", "https://:5443", "", "no host"},
		"Empty":       {"It says nothing.", "", "", "https://"},
		"Credentials": {"They would be handed on.", "https://admin:s3cret@10.0.0.1:5443", "", "credentials in it"},
		"Broken":      {"It is no URL, and may have a password in it.", "https://admin:s3cret@10.0.0.1:54x43", "", "not a URL"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := EndpointOf(c.server)
			check(t, c.reason, err, c.err)
			if got != c.want {
				t.Errorf("got %q, want %q: %s", got, c.want, c.reason)
			}
			if err != nil && bytes.Contains([]byte(err.Error()), []byte("s3cret")) {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestNewDiscovery(t *testing.T) {
	one, hashOne := newCA(t)
	two, hashTwo := newCA(t)
	bundle := bytes.Join([][]byte{one, two, one}, nil)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, two, 0o600); err != nil {
		t.Fatal(err)
	}
	const server = "https://10.0.0.1:5443"
	cases := map[string]struct {
		reason string
		config rest.Config
		want   []string
		err    string
		is     error
	}{
		"Embedded": {reason: "As init writes it.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: one}}, want: []string{hashOne}},
		"File":     {reason: "A kubeconfig may name one.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAFile: file}}, want: []string{hashTwo}},
		"Both":     {reason: "client-go takes what is embedded.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: one, CAFile: file}}, want: []string{hashOne}},
		"Several":  {reason: "Each CA counts, once.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: bundle}}, want: []string{hashOne, hashTwo}},
		"None":     {reason: "There is nothing to recognise the server by.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, err: "no certificate authority", is: ErrNoCA},
		"NoFile":   {reason: "The file is named.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAFile: file + "x"}}, err: "ca.crtx", is: os.ErrNotExist},
		"Rubbish":  {reason: "It is no certificate.", config: rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}}, err: "read the certificate authority of 10.0.0.1:5443"},
		"Server":   {reason: "Its address must be right.", config: rest.Config{Host: "http://x", TLSClientConfig: rest.TLSClientConfig{CAData: one}}, err: "https://"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NewDiscovery(&c.config)
			check(t, c.reason, err, c.err)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %v: %s", err, c.is, c.reason)
			}
			if diff := cmp.Diff(c.want, got.CAHashes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if err == nil && got.Endpoint != "10.0.0.1:5443" {
				t.Errorf("endpoint %q", got.Endpoint)
			}
		})
	}
}

func TestRegisterCommand(t *testing.T) {
	d := Discovery{Endpoint: "10.0.0.1:5443", CAHashes: []string{"sha256:aa", "sha256:bb"}}
	cases := map[string]struct {
		reason, program string
		cluster, want   string
	}{
		"Classic": {"The contract's line, and the agent that there is.", "karmadactl", "", "karmadactl register 10.0.0.1:5443 --token " + someToken + " --discovery-token-ca-cert-hash sha256:aa,sha256:bb --agent=process"},
		"Plugin":  {"In the words of a kubectl user.", "kubectl karmada", "", "kubectl karmada register 10.0.0.1:5443 --token " + someToken + " --discovery-token-ca-cert-hash sha256:aa,sha256:bb --agent=process"},
		"Named":   {"No other name would do.", "karmadactl", "member3", "karmadactl register 10.0.0.1:5443 --token " + someToken + " --discovery-token-ca-cert-hash sha256:aa,sha256:bb --cluster-name member3 --agent=process"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := d.RegisterCommand(c.program, Token{ID: someID, Secret: someSecret, Cluster: c.cluster}); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.reason, got, c.want)
			}
		})
	}
}
