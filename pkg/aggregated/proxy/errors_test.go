package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// stranger returns a server with an authority of its own.
func stranger(t *testing.T, handler http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return newMember(t, handler, func(s *httptest.Server) { s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} }), string(cert)
}

// raw answers every connection with some bytes.
func raw(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64<<10)) // whoever closes unread resets, and the answer is lost
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestErrors(t *testing.T) {
	c := newControl(t)
	good := newMember(t, echo)
	unknown, _ := stranger(t, echo)
	old := newMember(t, echo, func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12} })
	elsewhere := 0
	other := newMember(t, func(http.ResponseWriter, *http.Request) { elsewhere++ })
	redirecting := newMember(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/steal", http.StatusTemporaryRedirect)
	})
	refusing := newMember(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "log in", http.StatusUnauthorized) })

	c.join("nil", good, func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = nil })
	c.join("nosecret", good, func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef.Name = "none" })
	c.join("nokey", good)
	c.put("nokey-impersonator", map[string]string{"password": "x"})
	c.join("noauthority", good)
	c.put("noauthority", map[string]string{"token": "x"})
	c.join("nocredentials", good, func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Name = "none" })
	c.join("noendpoint", good, func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "" })
	at := func(url string) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = url }
	}
	c.join("closed", good, at("https://"+closed(t)))
	c.join("proxied", good, func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://user:hunter2@" + closed(t) })
	c.join("plain", good, at("https://"+raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))
	c.join("garbage", good, at("http://"+raw(t, "garbage\x00\r\n\r\n")))
	c.join("cut", good, at("http://"+raw(t, "")))
	c.join("unknown", good, at(unknown.URL))
	c.join("old", old)
	c.join("redirecting", redirecting)
	c.join("refusing", refusing)

	cases := map[string]struct {
		reason string
		path   string
		code   int
		want   []string
	}{
		"missing":       {reason: "An unknown cluster is not found.", code: 404, want: []string{`clusters.cluster.karmada.io "missing" not found`}},
		"nil":           {reason: "The text is known to users.", code: 503, want: []string{"the impersonatorSecretRef of cluster nil is nil", "join"}},
		"nosecret":      {reason: "The Secret is named.", code: 503, want: []string{"karmada-cluster/none", "cluster nosecret", "does not exist", "join"}},
		"nokey":         {reason: "So is its key.", code: 503, want: []string{"karmada-cluster/nokey-impersonator", "no key token", "join"}},
		"noauthority":   {reason: "An authority that is lost is not that of the system.", code: 503, want: []string{"noauthority", "no key caBundle"}},
		"nocredentials": {reason: "Nor is one whose Secret is.", code: 503, want: []string{"nocredentials", `"none" not found`, "join"}},
		"noendpoint":    {reason: "Pull members may not say where they are.", code: 503, want: []string{"the api endpoint of cluster noendpoint is empty", "spec.apiEndpoint"}},
		"closed":        {reason: "Nothing listens.", code: 503, want: []string{"cluster closed, https://127.0.0.1:", "cannot be reached", "connection refused", "spec.apiEndpoint"}},
		"proxied":       {reason: "The proxy is gone; its password is not shown.", code: 503, want: []string{"cluster proxied", "proxy http://user:xxxxx@127.0.0.1", "connection refused"}},
		"plain":         {reason: "Something answers without TLS.", code: 502, want: []string{"cluster plain", "does not speak TLS"}},
		"garbage":       {reason: "Something that is no API server answers.", code: 502, want: []string{"cluster garbage", "malformed HTTP"}},
		"cut":           {reason: "Something hangs up.", code: 502, want: []string{"cluster cut"}},
		"unknown":       {reason: "The certificate is another's.", code: 502, want: []string{"certificate of cluster unknown", "unknown authority", "join"}},
		"old":           {reason: "TLS 1.2 is too old.", code: 502, want: []string{"cluster old", "TLS 1.3"}},
		"redirecting":   {reason: "Nobody is sent elsewhere.", code: 502, want: []string{"cluster redirecting", "redirects", "not followed"}},
		"refusing":      {reason: "A 401 would tell the requester to log in again.", code: 502, want: []string{"cluster refusing refuses the token", "karmada-cluster/refusing-impersonator", "join"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response, body := c.do(c.request(http.MethodGet, name, "/api/v1/pods", nil))
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatalf("%s\nno Status: %v in %q", tc.reason, err, body)
			}
			if response.StatusCode != tc.code || int(status.Code) != tc.code {
				t.Errorf("%s\ngot %d, want %d: %s", tc.reason, response.StatusCode, tc.code, status.Message)
			}
			for _, want := range tc.want {
				if !strings.Contains(status.Message, want) {
					t.Errorf("%s\n%q is missing in: %s", tc.reason, want, status.Message)
				}
			}
			if strings.Contains(status.Message, "\n") || strings.Contains(status.Message, "hunter2") || strings.Contains(status.Message, "-token") {
				t.Errorf("%s\ntoo much is said: %s", tc.reason, status.Message)
			}
		})
	}
	if elsewhere != 0 {
		t.Error("a redirect was followed")
	}
	// The errors of upgrades are the same.
	for name, code := range map[string]int{"closed": 503, "unknown": 502, "old": 502, "refusing": 502, "missing": 404} {
		_, _, response := c.dial("GET " + prefix + name + "/proxy/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != code || !strings.Contains(string(body), name) {
			t.Errorf("upgrade to %s: got %s %s, %v", name, response.Status, body, err)
		}
	}
}

func TestSilence(t *testing.T) {
	c := newControl(t, func(_ *Options, p *patience) { p.answer = time.Millisecond })
	release := make(chan struct{})
	c.join("hanging", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		echo(w, r)
	}))
	const want = "cluster hanging, "
	code, body := c.get("hanging", "/api/v1/pods")
	if code != http.StatusGatewayTimeout || !strings.Contains(body, want) || !strings.Contains(body, "did not answer within 1ms") {
		t.Errorf("a member that does not answer is not waited for for ever: got %d %s", code, body)
	}
	_, _, response := c.dial("GET " + prefix + "hanging/proxy/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if response.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("upgrade: got %s", response.Status)
	}
	watch := c.request(http.MethodGet, "hanging", "/api/v1/pods?watch=1", nil)
	done := make(chan int, 1)
	go func() {
		response, err := c.client.Do(watch)
		if err != nil {
			done <- 0
			return
		}
		_ = response.Body.Close()
		done <- response.StatusCode
	}()
	// As long again for a plain request; the watch is still there when it has failed.
	if code, _ := c.get("hanging", "/api/v1/pods"); code != http.StatusGatewayTimeout {
		t.Errorf("got %d", code)
	}
	close(release)
	if code := <-done; code != http.StatusOK {
		t.Errorf("a watch begins when the member sees fit: got %d", code)
	}
}

func TestRefusedByAnApplication(t *testing.T) {
	c := newControl(t)
	c.join("m", newMember(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "log in here", http.StatusUnauthorized)
	}))
	response, body := c.do(c.request(http.MethodGet, "m", "/api/v1/namespaces/a/services/b/proxy/", nil))
	if response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") != "Basic" || !strings.Contains(body, "log in here") {
		t.Errorf("an application has users of its own; got %s %q", response.Status, body)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	c := newControl(t)
	valid := "impersonator-token"
	c.join("m", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		echo(w, r)
	}))
	if code, body := c.get("m", "/api"); code != http.StatusOK {
		t.Fatal(body)
	}
	if code, _ := c.get("m", "/api"); code != http.StatusOK || c.readsOf("m-impersonator") != 1 {
		t.Errorf("a Secret is read once, not for each request: %d times", c.readsOf("m-impersonator"))
	}

	// The member has another token before the control plane knows.
	valid = "second-token"
	if code, _ := c.get("m", "/api"); code != http.StatusBadGateway {
		t.Errorf("got %d", code)
	}
	c.put("m-impersonator", map[string]string{"token": valid})
	big := strings.Repeat("x", replayLimit-1)
	_, body := c.do(c.request(http.MethodPost, "m", "/api/v1/pods", strings.NewReader(big)))
	if got := sawOf(t, body); got.Body != big || got.Method != http.MethodPost {
		t.Errorf("the request was not sent again whole: %d of %d bytes", len(got.Body), len(big))
	}
	valid = "third-token"
	c.put("m-impersonator", map[string]string{"token": valid})
	_, _, response := c.dial("GET " + prefix + "m/proxy/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if response.StatusCode != http.StatusOK { // an echo, with the new token
		t.Errorf("upgrade with a new token: got %s", response.Status)
	}
}

func TestAuthorityIsRenewed(t *testing.T) {
	c := newControl(t)
	first := newMember(t, echo)
	c.join("m", first)
	if code, body := c.get("m", "/api"); code != http.StatusOK {
		t.Fatal(body)
	}
	// The member is rebuilt, and joins again.
	second, ca := stranger(t, echo)
	c.change("m", func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = second.URL })
	c.put("m", map[string]string{"token": "x", "caBundle": ca})
	response, body := c.do(c.request(http.MethodPost, "m", "/api", strings.NewReader("body")))
	if response.StatusCode != http.StatusOK || sawOf(t, body).Body != "body" {
		t.Errorf("got %d: %s", response.StatusCode, body)
	}
	if n := len(c.rest.members.conns); n != 1 {
		t.Errorf("%d connections to one cluster", n)
	}
	c.mu.Lock()
	delete(c.clusters, "m")
	c.mu.Unlock()
	if code, _ := c.get("m", "/api"); code != http.StatusNotFound || len(c.rest.members.conns) != 0 {
		t.Errorf("got %d, and %d connections to a cluster that is gone", code, len(c.rest.members.conns))
	}
}

func TestOneDoesNotBlockAnother(t *testing.T) {
	c := newControl(t)
	release, arrived := make(chan struct{}), make(chan struct{})
	c.join("hanging", newMember(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-release }))
	c.join("well", newMember(t, echo))
	done := make(chan error, 1)
	r := c.request(http.MethodGet, "hanging", "/api", nil)
	go func() {
		response, err := c.client.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		done <- err
	}()
	<-arrived
	if code, body := c.get("well", "/api"); code != http.StatusOK {
		t.Errorf("got %d: %s", code, body)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	if _, err := NewREST(Options{}); err == nil {
		t.Error("want an error")
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(errors.New("a\n\tb")); got != "a b" {
		t.Errorf("got %q", got)
	}
	if got := oneLine(fmt.Errorf("dial: %w", context.DeadlineExceeded)); got != "it took too long" {
		t.Errorf("got %q", got)
	}
}
