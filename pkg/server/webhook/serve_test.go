package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/webhook"
)

// writeCertificate puts a new certificate for loopback into dir, and returns it.
func writeCertificate(t *testing.T, dir string) []byte {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certPEM
}

// testHooks are all webhooks, of a control plane that does not answer.
func testHooks(t testing.TB) []webhook.Hook {
	t.Helper()
	gate, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := newHooks(&rest.Config{Host: "https://127.0.0.1:1", QPS: flags.NoLimit}, gate, false)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

// flagsFor are flags of a role that listens on free ports of loopback.
func flagsFor(dir string) *Flags {
	f := NewFlags()
	f.BindAddress, f.CertDir = "127.0.0.1", dir
	f.Endpoints.HealthProbe, f.Endpoints.Metrics = "127.0.0.1:0", "127.0.0.1:0"
	f.Endpoints.EnableProfiling, f.Endpoints.Profiling = true, "127.0.0.1:0"
	return f
}

// start serves until the test ends, and returns the addresses by what is served.
func start(t *testing.T, f *Flags) map[string]string {
	t.Helper()
	servers, err := f.servers(klog.Background(), testHooks(t))
	if err != nil {
		t.Fatal(err)
	}
	servers[0].address = "127.0.0.1:0" // port 0 is no value of the flag
	if err := listen(t.Context(), servers); err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, s := range servers {
		addresses[s.what] = s.listener.Addr().String()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- serve(ctx, servers) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stopping is no error: %v", err)
		}
	})
	return addresses
}

// trusting is a client that knows a certificate, and that connects anew for each request.
func trusting(t *testing.T, certPEM []byte) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certPEM) {
		t.Fatal("no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
}

func get(c *http.Client, url string) (int, string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestServe(t *testing.T) {
	dir := t.TempDir()
	client := trusting(t, writeCertificate(t, dir))
	at := start(t, flagsFor(dir))

	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "request", Operation: admissionv1.Create, Object: runtime.RawExtension{
			Raw: []byte(`{"metadata":{"namespace":"d","name":"b"}}`),
		}},
	}
	data, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Post("https://"+at["webhooks"]+"/mutate-resourcebinding", "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if r := answer.Response; r == nil || !r.Allowed || r.UID != "request" || !strings.Contains(string(r.Patch), `"resourcebinding.karmada.io/permanent-id":`) {
		t.Errorf("answer %+v, want one that gives the binding an identity", answer.Response)
	}

	cases := map[string]struct {
		reason string
		url    string
		code   int
		says   string
	}{
		"Ready":       {"An installer asks the port that matters.", "https://" + at["webhooks"] + "/readyz/", 200, "ok"},
		"ReadyNoEnd":  {"The path without its end leads there.", "https://" + at["webhooks"] + "/readyz", 200, "ok"},
		"Unknown":     {"There is nothing else.", "https://" + at["webhooks"] + "/mutate-pods", 404, ""},
		"Healthz":     {"Probes ask by plain HTTP.", "http://" + at["health probes"] + "/healthz", 200, "ok"},
		"Readyz":      {"So do these.", "http://" + at["health probes"] + "/readyz", 200, "ok"},
		"OneCheck":    {"The one check that there is can be asked for.", "http://" + at["health probes"] + "/readyz/ping", 200, "ok"},
		"Metrics":     {"Requests are counted by path.", "http://" + at["metrics"] + "/metrics", 200, `controller_runtime_webhook_requests_total{code="200",webhook="/mutate-resourcebinding"}`},
		"Profiles":    {"Profiles are there when they were asked for.", "http://" + at["profiles"] + "/debug/pprof/cmdline", 200, ""},
		"NotOnSecure": {"What is for the operator is not where API servers ask.", "https://" + at["webhooks"] + "/metrics", 404, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, body, err := get(client, c.url)
			if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("got %d %q, want %d with %q: %s", code, body, c.code, c.says, c.reason)
			}
		})
	}
}

func TestNothingButWebhooks(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir)
	f := flagsFor(dir)
	f.Endpoints.HealthProbe, f.Endpoints.Metrics, f.Endpoints.EnableProfiling = "0", "", false
	servers, err := f.servers(klog.Background(), testHooks(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != 1 {
		t.Errorf("%d servers, want the webhooks alone: the flags say so", len(servers))
	}
}

func TestMinimumVersion(t *testing.T) {
	dir := t.TempDir()
	certPEM := writeCertificate(t, dir)
	for version, ok := range map[string]bool{"1.2": true, "1.3": false} {
		f := flagsFor(dir)
		f.TLSMinVersion = version
		client := trusting(t, certPEM)
		client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
		if _, _, err := get(client, "https://"+start(t, f)["webhooks"]+"/readyz/"); (err == nil) != ok {
			t.Errorf("a client of TLS 1.2, --tls-min-version=%s: %v", version, err)
		}
	}
}

func TestCertificateIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	first := trusting(t, writeCertificate(t, dir))
	url := "https://" + start(t, flagsFor(dir))["webhooks"] + "/readyz/"
	if _, _, err := get(first, url); err != nil {
		t.Fatal(err)
	}

	// The change has to show in the time of the file, however coarse its clock.
	earlier := time.Now().Add(-time.Hour)
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Chtimes(filepath.Join(dir, name), earlier, earlier); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := get(first, url); err != nil {
		t.Fatal(err)
	}
	second := trusting(t, writeCertificate(t, dir))
	if _, _, err := get(second, url); err != nil {
		t.Errorf("the new certificate is not served: %v", err)
	}
	var unknown x509.UnknownAuthorityError
	if _, _, err := get(first, url); !errors.As(err, &unknown) {
		t.Errorf("the old certificate is still served: %v", err)
	}

	if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(second, url); err != nil {
		t.Errorf("while files are half written the one before is served: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "tls.crt")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(second, url); err != nil {
		t.Errorf("while there is no file the one before is served: %v", err)
	}
}

func TestRunErrors(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	writeCertificate(t, dir)
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: "https://127.0.0.1:1"}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	quiet := []string{"--bind-address=127.0.0.1", "--health-probe-bind-address=0", "--metrics-bind-address=0"}
	cases := map[string]struct {
		reason string
		args   []string
		is     error
		says   string
	}{
		"NoCertificate": {"It says which file, and which flag.", []string{"--kubeconfig=" + kubeconfig, "--cert-dir=" + t.TempDir()}, os.ErrNotExist, "--cert-dir"},
		"Taken":         {"It says which flag would help.", []string{"--kubeconfig=" + kubeconfig, "--cert-dir=" + dir, "--secure-port=" + port}, syscall.EADDRINUSE, "--secure-port"},
		"NoKubeconfig":  {"Some rules need the control plane.", []string{"--cert-dir=" + dir}, nil, "--kubeconfig"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), append(quiet, c.args...))
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "karmada-webhook: ") {
				t.Errorf("got %v, want %v with %q: %s", err, c.is, c.says, c.reason)
			}
		})
	}
}
