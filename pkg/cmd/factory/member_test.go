package factory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A pair is a certificate that is its own CA, and its key.
type pair struct{ cert, key []byte }

func newPair(t *testing.T, notAfter time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// serve starts a server that answers everything in that way, and returns its address.
func (p pair) serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	cert, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(answer)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are the point
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func TestExplainSpeaksOfTheMember(t *testing.T) {
	good, other, old := newPair(t, time.Now().Add(time.Hour)), newPair(t, time.Now().Add(time.Hour)), newPair(t, time.Now().Add(-time.Hour))
	status := func(code int, reason metav1.StatusReason) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, reason, reason, code)
		}
	}
	page := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(code)
			fmt.Fprint(w, "<html>")
		}
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	redirectOnce := func(to string, then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == to {
				then(w, r)
				return
			}
			redirect(to)(w, r)
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason  string
		server  string
		ca      []byte
		user    clientcmdapi.AuthInfo
		proxy   string
		timeout time.Duration
		want    Reason
		text    string
	}{
		"Refused": {reason: "Nobody listens.", server: "https://" + nobody, want: Unreachable, text: "cannot reach the member cluster m at https://" + nobody + ` (context "x" of kubeconfig `},
		"Silent":  {reason: "It never answers.", server: good.serve(t, silent), ca: good.cert, timeout: 100 * time.Millisecond, want: Unreachable, text: "no answer in time; check that it runs and that the address is right"},
		"Plain":   {reason: "It has no TLS.", server: "https" + strings.TrimPrefix(plain.URL, "http"), want: Unreachable, text: "it does not speak TLS"},
		"WrongCA": {reason: "It is another cluster.", server: good.serve(t, status(403, "Forbidden")), ca: other.cert, want: WrongCA, text: "get a new kubeconfig of the member cluster"},
		"Expired": {reason: "Its certificate is old.", server: old.serve(t, status(403, "Forbidden")), ca: old.cert, want: ServerCertificateExpired, text: "renew the member cluster's certificates"},
		"OldClient": {
			reason: "The kubeconfig's is.", server: good.serve(t, status(401, "Unauthorized")), ca: good.cert,
			user: clientcmdapi.AuthInfo{ClientCertificateData: old.cert, ClientKeyData: old.key},
			want: ClientCertificateExpired, text: "the member cluster m at https://",
		},
		"Unauthorized": {
			reason: "Its token is no longer good.", server: good.serve(t, status(401, "Unauthorized")), ca: good.cert,
			want: Unauthorized, text: `refuses the credentials of context "x"`,
		},
		"Page":     {reason: "It is a web server.", server: good.serve(t, page(200)), ca: good.cert, want: NotKubernetes, text: `answers "200 OK" with a web page`},
		"NotFound": {reason: "It is one that has no such page.", server: good.serve(t, page(404)), ca: good.cert, want: NotKubernetes, text: `answers "404 Not Found" with a web page`},
		"Gateway":  {reason: "It is what stands in front of one that is down.", server: good.serve(t, page(502)), ca: good.cert, want: NotKubernetes, text: "as a load balancer or proxy without a server behind it does"},
		"Proxy":    {reason: "It is the proxy that nobody reaches.", server: "https://10.0.0.1:6443", proxy: "http://" + nobody, want: Unreachable, text: "its proxy http://" + nobody + ": connection refused"},
		"Plugin": {
			reason: "There is no such program.", server: good.serve(t, status(403, "Forbidden")), ca: good.cert,
			user: clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/nowhere/plugin", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}},
			want: CredentialsUnavailable, text: "/nowhere/plugin",
		},
		"PlainToTLS": {reason: "Its scheme is wrong.", server: "http" + strings.TrimPrefix(good.serve(t, status(403, "Forbidden")), "https"), want: NotKubernetes, text: "speaks TLS, and the kubeconfig's address has http:// or nothing in front: use https://127.0.0.1:"},
		"NoScheme":   {reason: "So is none.", server: strings.TrimPrefix(good.serve(t, status(403, "Forbidden")), "https://"), want: NotKubernetes, text: "use https://127.0.0.1:"},
		"RedirectToLogin": {
			reason: "It is a gateway for people.", server: good.serve(t, redirect("https://"+nobody+"/login?token=s3cret")), ca: good.cert,
			want: NotKubernetes, text: "sends requests on to https://" + nobody + ", which no Kubernetes API server does",
		},
		"RedirectToPage":  {reason: "Its page is there.", server: good.serve(t, redirect(good.serve(t, page(200)))), ca: good.cert, want: NotKubernetes, text: "sends requests on to https://127.0.0.1:"},
		"RedirectForEver": {reason: "It goes round.", server: good.serve(t, redirect("/")), ca: good.cert, want: NotKubernetes, text: "sends requests on to https://127.0.0.1:"},
		"Redirected":      {reason: "What is served there is the answer.", server: good.serve(t, redirectOnce("/there", status(403, "Forbidden"))), ca: good.cert},
		"Forbidden":       {reason: "What the server says for itself is left alone.", server: good.serve(t, status(403, "Forbidden")), ca: good.cert},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			file := filepath.Join(t.TempDir(), "m.config")
			user := tc.user
			if user.Exec == nil && user.ClientKeyData == nil {
				user.Token = "t"
			}
			config := clientcmdapi.NewConfig()
			config.Clusters["c"] = &clientcmdapi.Cluster{Server: tc.server, CertificateAuthorityData: tc.ca, ProxyURL: tc.proxy}
			config.AuthInfos["u"] = &user
			config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
			config.CurrentContext = "x"
			if err := clientcmd.WriteToFile(*config, file); err != nil {
				t.Fatal(err)
			}
			f := New(Options{Program: "karmadactl", ErrOut: io.Discard})
			f.LimitTime(tc.timeout)
			m := f.Member(MemberOptions{Name: "m", Kubeconfig: file, KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context"})
			cfg, err := m.ToRESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var ns *corev1.Namespace
			ns, err = client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
			if err == nil {
				t.Fatalf("got %v", ns)
			}
			got := f.Explain(fmt.Errorf("join cluster: %w", err))
			var known *Error
			if errors.As(got, &known) != (tc.want != "") {
				t.Fatalf("got %v: %s", got, tc.reason)
			}
			if known == nil {
				return
			}
			if known.Reason != tc.want || !strings.Contains(got.Error(), tc.text) || strings.Contains(got.Error(), "control plane") || strings.Contains(got.Error(), "\n") {
				t.Errorf("got %s: %v\nwant %s: %q in it, on one line, and nothing about the control plane: %s", known.Reason, got, tc.want, tc.text, tc.reason)
			}
		})
	}
}

// What is done after a failure does not hide why it happened.
func TestExplainRemembers(t *testing.T) {
	p := newPair(t, time.Now().Add(time.Hour))
	first := true
	server := p.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !first {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		first = false
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close() // that is the failure
	})
	file := filepath.Join(t.TempDir(), "x.config")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(kubeconfig("x"), `"https://x.invalid"`, `"`+server+`", insecure-skip-tls-verify: true`)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := New(Options{Program: "karmadactl", ErrOut: io.Discard})
	m := f.Member(MemberOptions{Name: "m", Kubeconfig: file})
	cfg, err := m.ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("default")
	failed := pods.Delete(t.Context(), "x", metav1.DeleteOptions{})
	if failed == nil {
		t.Fatal("the first request succeeds")
	}
	if err := pods.Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var known *Error
	if got := f.Explain(failed); !errors.As(got, &known) || known.Reason != Unreachable {
		t.Errorf("got %v, want that the member closed the connection", got)
	}
}

func TestMemberKubeconfigs(t *testing.T) {
	whole := kubeconfig("one")
	big := strings.Repeat("# filler\n", 1<<20)
	cases := map[string]struct {
		reason  string
		content string
		context string
		prefer  string
		dir     bool
		mode    os.FileMode
		none    bool
		want    Reason
		text    string
		host    string
	}{
		"Good":          {reason: "The usual case.", content: whole, host: "https://one.invalid"},
		"Preferred":     {reason: "Some commands know which context is meant.", content: strings.ReplaceAll(whole, "current-context: one", "current-context: two"), prefer: "one", host: "https://one.invalid"},
		"PreferredNone": {reason: "If there is none, the current one is.", content: whole, prefer: "two", host: "https://one.invalid"},
		"Empty":         {reason: "It says nothing.", want: KubeconfigInvalid, text: "is empty"},
		"Truncated":     {reason: "Its end is missing.", content: whole[:len(whole)/2], want: KubeconfigInvalid, text: "is damaged or not a kubeconfig"},
		"Binary":        {reason: "It is no text.", content: "\x7fELF\x02\x01\x01\x00\xff\xfe", want: KubeconfigInvalid, text: "is a binary file"},
		"Big":           {reason: "It is not read.", content: big, want: KubeconfigInvalid, text: "it has 9 MiB"},
		"Directory":     {reason: "It is no file.", dir: true, want: KubeconfigInvalid, text: "is a directory"},
		"Missing":       {reason: "It is not there.", none: true, want: KubeconfigUnreadable, text: "no such file; pass one that exists with --cluster-kubeconfig"},
		"NoContext":     {reason: "Nobody knows which is meant.", content: strings.ReplaceAll(whole, "current-context: one", ""), want: ContextMissing, text: "has no current context, it has: one; choose one with --cluster-context"},
		"OtherContext":  {reason: "It is not there.", content: whole, context: "two", want: ContextMissing, text: `context "two" does not exist`},
		"NoUser":        {reason: "The context leads nowhere.", content: strings.ReplaceAll(whole, "user: u,", "user: v,"), want: KubeconfigInvalid, text: "choose another with --cluster-context"},
		"NoCluster":     {reason: "The context leads nowhere.", content: strings.ReplaceAll(whole, "cluster: c,", "cluster: d,"), want: KubeconfigInvalid, text: "choose another with --cluster-context"},
		"NoCA":          {reason: "A file that it names is not there.", content: strings.ReplaceAll(whole, `invalid"}`, `invalid", certificate-authority: nowhere.crt}`), want: KubeconfigInvalid, text: "nowhere.crt"},
		"NoCert":        {reason: "A file that it names is not there.", content: strings.ReplaceAll(whole, "{token: t}", "{client-certificate: nowhere.crt, client-key: nowhere.key}"), want: KubeconfigInvalid, text: "nowhere."},
		"CutOff":        {reason: "Half of it is whole YAML.", content: whole[:strings.Index(whole, "users:")] + "contexts:\n", want: KubeconfigInvalid, text: "looks damaged or cut off: it names clusters, but no context"},
		"CutOffLater":   {reason: "So is more than half.", content: strings.ReplaceAll(whole, "users: [{name: u, user: {token: t}}]\n", ""), want: KubeconfigInvalid, text: `looks damaged or cut off: context "one" is for user "u", and there are no users at all`},
		"OtherKind":     {reason: "It is something else.", content: "apiVersion: v1\nkind: Namespace\n", want: KubeconfigInvalid, text: "it holds an object of another kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "m.config")
			var err error
			switch {
			case tc.dir:
				err = os.Mkdir(file, 0o700)
			case !tc.none:
				err = os.WriteFile(file, []byte(tc.content), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			f := New(Options{Program: "karmadactl", ErrOut: io.Discard})
			cfg, err := f.Member(MemberOptions{
				Name: "m", Kubeconfig: file, Context: tc.context, PreferContext: tc.prefer,
				KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
			}).ToRESTConfig()
			var known *Error
			if errors.As(err, &known) != (tc.want != "") {
				t.Fatalf("got %v: %s", err, tc.reason)
			}
			if known == nil {
				if cfg.Host != tc.host {
					t.Errorf("got %s, want %s: %s", cfg.Host, tc.host, tc.reason)
				}
				return
			}
			if known.Reason != tc.want || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), "--cluster-") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %s: %v\nwant %s: %q in it, one line, and what to do: %s", known.Reason, err, tc.want, tc.text, tc.reason)
			}
		})
	}
}

// A member is never taken from where init wrote the control plane's kubeconfig.
func TestMemberIsNotTheControlPlane(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "init.config")
	if err := os.WriteFile(file, []byte(kubeconfig("init")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	f := New(Options{Program: "karmadactl", ErrOut: io.Discard, DefaultKubeconfig: func() string { return file }})
	f.conn.home = filepath.Join(dir, "none")
	m := f.Member(MemberOptions{KubeconfigFlag: "--kubeconfig", ContextFlag: "--context"})
	cfg, err := m.ToRESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(cfg).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	var known *Error
	if !errors.As(f.Explain(err), &known) || known.Reason != NoKubeconfig || strings.Contains(known.Error(), "init") {
		t.Errorf("got %v, want that there is no kubeconfig of the member", err)
	}
}

func TestPlain(t *testing.T) {
	known := &Error{Reason: Unreachable, text: "explained"}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Request": {"The request's words say nothing more.", fmt.Errorf("list: %w", &url.Error{Op: "Get", URL: "https://x", Err: known}), "explained"},
		"Own":     {"A command's words do.", fmt.Errorf("use it: %w", known), "use it: explained"},
		"Other":   {"What is not explained stays.", errors.New("boom"), "boom"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Plain(tc.err); got.Error() != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}
