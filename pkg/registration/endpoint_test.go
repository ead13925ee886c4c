package registration

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestNewEndpoint(t *testing.T) {
	proxy := func(to string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return url.Parse(to) }
	}
	cases := map[string]struct {
		reason string
		config rest.Config
		want   Endpoint
		err    string
	}{
		"Usual":      {reason: "As kubeconfigs are.", config: rest.Config{Host: "https://10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}, want: Endpoint{URL: "https://10.0.0.1:6443", CA: []byte("ca")}},
		"Path":       {reason: "Some are behind something.", config: rest.Config{Host: "https://r.example/k8s/clusters/c-1/"}, want: Endpoint{URL: "https://r.example/k8s/clusters/c-1/"}},
		"NoScheme":   {reason: "A Cluster needs a whole URL.", config: rest.Config{Host: "10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, want: Endpoint{URL: "https://10.0.0.1:6443", Insecure: true}},
		"Proxy":      {reason: "It is kept.", config: rest.Config{Host: "https://m", Proxy: proxy("http://p:3128")}, want: Endpoint{URL: "https://m", ProxyURL: "http://p:3128"}},
		"ServerName": {reason: "It cannot be kept, but is remembered.", config: rest.Config{Host: "https://m", TLSClientConfig: rest.TLSClientConfig{ServerName: "other"}}, want: Endpoint{URL: "https://m", ServerName: "other"}},
		"SameName":   {reason: "It says nothing.", config: rest.Config{Host: "https://m", TLSClientConfig: rest.TLSClientConfig{ServerName: "m"}}, want: Endpoint{URL: "https://m"}},
		"Credentials": {
			reason: "Everybody would see them.", config: rest.Config{Host: "https://admin:s3cret@m"}, err: "has credentials in it",
		},
		"Query":   {reason: "A Cluster has none.", config: rest.Config{Host: "https://m/?token=s3cret"}, err: "more than a host and a path"},
		"Scheme":  {reason: "Nothing else is spoken.", config: rest.Config{Host: "ftp://m"}, err: "begins with ftp://"},
		"Broken":  {reason: "It may have a password in it.", config: rest.Config{Host: "https://admin:s3cret@m:x"}, err: "is not a URL"},
		"NoHost":  {reason: "It leads nowhere.", config: rest.Config{Host: "https://:6443"}, err: "names no host"},
		"NoFile":  {reason: "The CA is needed.", config: rest.Config{Host: "https://m", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere/ca.crt"}}, err: "read the certificate authority"},
		"NoProxy": {reason: "A proxy that cannot be told is none.", config: rest.Config{Host: "https://m", Proxy: func(*http.Request) (*url.URL, error) { return nil, errBoom }}, err: "find the proxy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NewEndpoint(&tc.config)
			check(t, tc.reason, err, tc.err)
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells the password: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCABundle(t *testing.T) {
	cases := map[string]struct{ reason, config, own, want string }{
		"Own":   {"The usual case: it is the same.", "A\n", "A\n", "A\n"},
		"None":  {"The kubeconfig trusts what the system does.", "", "A\n", "A\n"},
		"Both":  {"There may be something in front of the API server.", "B\n", "A\n", "A\nB\n"},
		"Other": {"A member may not tell its own.", "B", "", "B\n"},
		"Part":  {"It is among several.", "A", "A\nC\n", "A\nC\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := string(Endpoint{CA: []byte(tc.config)}.caBundle([]byte(tc.own))); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	var answer int
	var asked string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.Header.Get("Authorization")
		w.WriteHeader(answer)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are the point
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	other, _ := newCA(t)

	cases := map[string]struct {
		reason   string
		endpoint Endpoint
		ca       []byte
		answer   int
		err      func(error) bool
	}{
		"Welcome":      {reason: "It knows the token.", ca: ca, answer: 200},
		"Forbidden":    {reason: "It knows whose token it is, and that is all.", ca: ca, answer: 403},
		"Sick":         {reason: "Health is looked at by others.", ca: ca, answer: 500},
		"Unauthorized": {reason: "It does not.", ca: ca, answer: 401, err: func(err error) bool { return errors.Is(err, ErrUnauthorized) }},
		"WrongCA": {reason: "Nobody would be told the token.", ca: other, answer: 200, err: func(err error) bool {
			var u x509.UnknownAuthorityError
			return errors.As(err, &u)
		}},
		"Insecure": {reason: "Who says so, gets it.", endpoint: Endpoint{Insecure: true}, answer: 200},
		"Proxy":    {reason: "The proxy is used.", endpoint: Endpoint{ProxyURL: "http://127.0.0.1:1"}, ca: ca, answer: 200, err: func(err error) bool { return strings.Contains(err.Error(), "proxyconnect") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer, asked = tc.answer, ""
			e := tc.endpoint
			e.URL = s.URL + "/below/"
			err := probe(t.Context(), e, tc.ca, []byte("t"))
			if (err != nil) != (tc.err != nil) || (err != nil && !tc.err(err)) {
				t.Errorf("got %v: %s", err, tc.reason)
			}
			if err == nil && asked != "/below/version Bearer t" {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	host := fmt.Errorf("get: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "m"})
	authority := fmt.Errorf("get: %w", x509.UnknownAuthorityError{})
	cases := map[string]struct {
		reason   string
		endpoint Endpoint
		err      error
		want     string
	}{
		"ServerName": {"It is the kubeconfig's secret why it works there.", Endpoint{ServerName: "other"}, host, "tls-server-name other"},
		"Host":       {"Without one there is nothing to add.", Endpoint{}, host, ""},
		"System":     {"So is this.", Endpoint{URL: "https://m"}, authority, "put the CA of https://m into the kubeconfig"},
		"CA":         {"With one there is nothing to add.", Endpoint{CA: []byte("ca")}, authority, ""},
		"Else":       {"Nor to anything else.", Endpoint{ServerName: "other"}, errBoom, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.endpoint.explain(tc.err)
			if !errors.Is(got, tc.err) || !strings.Contains(got.Error(), tc.want) || (tc.want == "" && got.Error() != tc.err.Error()) {
				t.Errorf("got %v, want %q in it: %s", got, tc.want, tc.reason)
			}
		})
	}
}
