package member_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

func TestConfig(t *testing.T) {
	a := newAPI(t)
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason  string
		cluster func(*clusterv1alpha1.Cluster)
		secret  func(*vault)
		wantErr string
	}{
		"Complete": {reason: "Address, authority and token are all there is to it."},
		"NoSecretRef": {
			reason:  "Without credentials nobody gets in; the words are contract.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = nil },
			wantErr: "cluster m1 does not have a secret",
		},
		"NoEndpoint": {
			reason:  "There is no default address.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "" },
			wantErr: "the api endpoint of cluster m1 is empty",
		},
		"EndpointIsNoURL": {
			reason:  "A host alone would be taken for a path.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "10.0.0.1" },
			wantErr: "is no http(s) URL",
		},
		"PasswordInEndpoint": {
			reason:  "Everybody who reads Clusters would read it; the message must not repeat it.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://u:pass@10.0.0.1" },
			wantErr: "the api endpoint of cluster m1 has credentials in it: they belong into its secret",
		},
		"SecretUnreadable": {
			reason:  "Not to know is an error, with its cause.",
			secret:  func(v *vault) { v.err = errBoom },
			wantErr: "read the credentials of cluster m1: boom",
		},
		"NoAuthority": {
			reason:  "The system's authorities never stand in for the cluster's own.",
			secret:  func(v *vault) { delete(v.data, "caBundle") },
			wantErr: "has no key caBundle",
		},
		"NoAuthorityInsecure": {
			reason:  "Who skips verification needs no authority.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true },
			secret:  func(v *vault) { delete(v.data, "caBundle") },
		},
		"AuthorityIsGarbage": {
			reason:  "It is told here, not by each handshake.",
			secret:  func(v *vault) { v.data["caBundle"] = "garbage" },
			wantErr: "holds no PEM certificate",
		},
		"NoToken": {
			reason:  "An anonymous request would be refused later, and less clearly.",
			secret:  func(v *vault) { v.data["token"] = " \n" },
			wantErr: "has no key token",
		},
		"ProxySchemeUnknown": {
			reason:  "It would be ignored otherwise, and the member reached past it.",
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "ftp://proxy" },
			wantErr: `the scheme "ftp"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, v := clusterAt("m1", a.URL), vaultOf(a, "secret")
			if tc.cluster != nil {
				tc.cluster(c)
			}
			if tc.secret != nil {
				tc.secret(v)
			}
			config, err := member.Config(t.Context(), c, v.read, member.Limits{})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), "pass@") {
					t.Fatalf("%s\nwant an error with %q, got %v", tc.reason, tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			a.accept("secret")
			if code, _ := get(t, config, "/echo"); code != http.StatusOK {
				t.Errorf("%s\nthe member answers %d", tc.reason, code)
			}
		})
	}
}

// get sends a request by a config.
func get(t *testing.T, config *rest.Config, path string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, client, http.MethodGet, config.Host+path, "")
}

func send(t *testing.T, client *http.Client, method, url, body string) (int, string) {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func TestTokenRotation(t *testing.T) {
	a := newAPI(t)
	a.accept("old")
	v := vaultOf(a, "old")
	config, err := member.Config(t.Context(), clusterAt("m1", a.URL), v.read, member.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if code, _ := send(t, client, http.MethodGet, a.URL+"/echo", ""); code != http.StatusOK {
			t.Fatalf("the token is right, and the answer %d", code)
		}
	}
	if got := v.count(); got != 1 {
		t.Errorf("a token that is accepted is read once, but was read %d times", got)
	}

	a.accept("new")
	if code, _ := send(t, client, http.MethodGet, a.URL+"/echo", ""); code != http.StatusUnauthorized {
		t.Errorf("nobody has the new token yet, but the answer is %d", code)
	}
	v.set("token", "new")
	code, answer := send(t, client, http.MethodPost, a.URL+"/echo", "the body")
	if code != http.StatusOK || !strings.HasSuffix(answer, "the body") {
		t.Errorf("the request is sent again, whole, by the new token; got %d %q", code, answer)
	}
	before := len(a.asked())
	if code, _ := send(t, client, http.MethodGet, a.URL+"/echo", ""); code != http.StatusOK || len(a.asked()) != before+1 {
		t.Errorf("the new token is used from now on, at first try; got %d", code)
	}
}

// A tunnel is a proxy that opens tunnels and notes what it was asked.
type tunnel struct {
	*httptest.Server
	mu     sync.Mutex
	header []http.Header
	hosts  []string
}

func newTunnel(t *testing.T) *tunnel {
	t.Helper()
	p := &tunnel{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.header, p.hosts = append(p.header, r.Header.Clone()), append(p.hosts, r.Method+" "+r.Host)
		p.mu.Unlock()
		if r.Header.Get("X-Deny") != "" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = to.Close()
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *tunnel) asked() ([]string, []http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts, p.header
}

func TestProxy(t *testing.T) {
	a := newAPI(t)
	withProxy := func(p *tunnel, header map[string]string) *clusterv1alpha1.Cluster {
		c := clusterAt("m1", a.URL)
		c.Spec.ProxyURL = strings.Replace(p.URL, "http://", "http://user:pass@", 1)
		c.Spec.ProxyHeader = header
		return c
	}
	reach := map[string]func(*testing.T, *clusterv1alpha1.Cluster) (int, error){
		"Config": func(t *testing.T, c *clusterv1alpha1.Cluster) (int, error) {
			config, err := member.Config(t.Context(), c, vaultOf(a, "x").read, member.Limits{})
			if err != nil {
				return 0, err
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				return 0, err
			}
			return try(client, a.URL+"/echo")
		},
		"Endpoint": func(t *testing.T, c *clusterv1alpha1.Cluster) (int, error) {
			transport := transportOf(t, a, c)
			return try(&http.Client{Transport: transport}, a.URL+"/echo")
		},
		"EndpointDialer": func(t *testing.T, c *clusterv1alpha1.Cluster) (int, error) {
			transport := transportOf(t, a, c)
			conn, err := transport.DialContext(t.Context(), "tcp", a.Listener.Addr().String())
			if err != nil {
				return 0, err
			}
			defer func() { _ = conn.Close() }()
			settings := transport.TLSClientConfig.Clone()
			settings.ServerName, settings.NextProtos = "127.0.0.1", []string{"http/1.1"}
			secure := tls.Client(conn, settings)
			if _, err := io.WriteString(secure, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				return 0, err
			}
			response, err := http.ReadResponse(bufio.NewReader(secure), nil)
			if err != nil {
				return 0, err
			}
			return response.StatusCode, response.Body.Close()
		},
	}
	for name, reach := range reach {
		t.Run(name, func(t *testing.T) {
			p := newTunnel(t)
			code, err := reach(t, withProxy(p, map[string]string{"X-Team": "a, b", "x-one": "1"}))
			if err != nil || code != http.StatusOK {
				t.Fatalf("the member is reached through its proxy: %d, %v", code, err)
			}
			hosts, headers := p.asked()
			if diff := cmp.Diff([]string{"CONNECT " + a.Listener.Addr().String()}, hosts); diff != "" {
				t.Fatalf("one tunnel is asked for (-want +got):\n%s", diff)
			}
			want := map[string][]string{"X-Team": {"a", "b"}, "X-One": {"1"}, "Proxy-Authorization": {"Basic dXNlcjpwYXNz"}}
			for key, values := range want {
				if diff := cmp.Diff(values, headers[0].Values(key)); diff != "" {
					t.Errorf("header %s of the CONNECT request: values that commas separate are several (-want +got):\n%s", key, diff)
				}
			}
			if got := headers[0].Get("Authorization"); got != "" {
				t.Errorf("the proxy must not see the member's token, but got %q", got)
			}

			code, err = reach(t, withProxy(newTunnel(t), map[string]string{"X-Deny": "1"}))
			if err == nil {
				t.Fatalf("the proxy refuses, nothing goes past it; got %d", code)
			}
			if strings.Contains(err.Error(), "user:pass") {
				t.Errorf("an error must not tell the password: %v", err)
			}
		})
	}
}

func transportOf(t *testing.T, a *api, c *clusterv1alpha1.Cluster) *http.Transport {
	t.Helper()
	e, err := member.NewEndpoint(t.Context(), c, vaultOf(a, "x").read)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := e.Transport(tls.VersionTLS13)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func try(client *http.Client, url string) (int, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestEndpoint(t *testing.T) {
	a := newAPI(t)
	c := clusterAt("m1", a.URL)
	transport := transportOf(t, a, c)
	if transport.TLSClientConfig.MinVersion != tls.VersionTLS13 {
		t.Error("the version that was asked for is the least")
	}
	if code, err := try(&http.Client{Transport: transport}, a.URL+"/echo"); err != nil || code != http.StatusOK {
		t.Errorf("the authority of the Secret is trusted: %d, %v", code, err)
	}
	c.Spec.SecretRef = nil
	if code, err := try(&http.Client{Transport: transportOf(t, a, c)}, a.URL+"/echo"); err == nil {
		t.Errorf("without a Secret the authorities of the system are trusted, and this is none of them; got %d", code)
	}
	c.Spec.InsecureSkipTLSVerification = true
	if code, err := try(&http.Client{Transport: transportOf(t, a, c)}, a.URL+"/echo"); err != nil || code != http.StatusOK {
		t.Errorf("verification is skipped where it was asked for: %d, %v", code, err)
	}
}
