package localagent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/karmadactl/karmadactl/pkg/registration"
)

const (
	token  = "abcdef.0123456789abcdef"
	secret = "0123456789abcdef"
)

// A controlPlane answers what an agent that registers asks. It approves at once.
type controlPlane struct {
	t        *testing.T
	ca       *x509.Certificate
	key      *ecdsa.PrivateKey
	pem      []byte
	endpoint string

	// What it does otherwise.
	deny      string // the approver's message
	forgetful bool   // knows no certificate any more
	rightless bool   // the agent's rights are gone

	stops   bool // ends the command that asks for a certificate
	stop    context.CancelFunc
	failing bool // cannot keep requests

	requests []string // names of those made
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	c := &controlPlane{t: t, ca: ca, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}

	server := httptest.NewUnstartedServer(c)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{c.sign(key.Public(), pkix.Name{CommonName: "server"})}, PrivateKey: key}}, ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c.endpoint = strings.TrimPrefix(server.URL, "https://")
	return c
}

func (c *controlPlane) sign(public any, subject pkix.Name) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, public, c.key)
	if err != nil {
		c.t.Error(err)
	}
	return der
}

func (c *controlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		c.reply(w, int(err.ErrStatus.Code), &err.ErrStatus)
	}
	resource := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	agent := len(r.TLS.PeerCertificates) > 0
	switch {
	case r.URL.Path == "/api/v1/namespaces/kube-public/configmaps/cluster-info":
		c.reply(w, http.StatusOK, c.info())
	case agent && c.forgetful, !agent && r.Header.Get("Authorization") != "Bearer "+token:
		fail(apierrors.NewUnauthorized("unknown"))
	case r.URL.Path == "/apis/cluster.karmada.io/v1alpha1":
		c.reply(w, http.StatusOK, &metav1.APIResourceList{GroupVersion: "cluster.karmada.io/v1alpha1"})
	case strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io/v1alpha1/clusters/"):
		if c.rightless {
			fail(apierrors.NewForbidden(resource, "m", errors.New("no rights")))
			return
		}
		fail(apierrors.NewNotFound(resource, "m"))
	case r.Method == http.MethodPost && r.URL.Path == "/apis/certificates.k8s.io/v1/certificatesigningrequests":
		c.request(w, r)
	case c.stops && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/certificates.k8s.io/v1/certificatesigningrequests/"):
		c.reply(w, http.StatusOK, &certificatesv1.CertificateSigningRequest{TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}})
	default:
		c.t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		fail(apierrors.NewBadRequest("unexpected"))
	}
}

func (c *controlPlane) request(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	scheme := runtime.NewScheme()
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		c.t.Error(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if _, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(body, nil, csr); err != nil {
		c.t.Errorf("decode %q: %v", body, err)
	}
	csr.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
	c.requests = append(c.requests, csr.Name)
	if c.failing {
		http.Error(w, "no", http.StatusTeapot)
		return
	}
	if c.stops {
		c.stop()
		c.reply(w, http.StatusCreated, csr)
		return
	}
	if c.deny != "" {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Message: c.deny}}
		c.reply(w, http.StatusCreated, csr)
		return
	}
	block, _ := pem.Decode(csr.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		c.t.Error(err)
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.sign(asked.PublicKey, asked.Subject)})
	c.reply(w, http.StatusCreated, csr)
}

func (c *controlPlane) info() *corev1.ConfigMap {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://elsewhere.example", CertificateAuthorityData: c.pem}
	text, err := clientcmd.Write(*config)
	if err != nil {
		c.t.Error(err)
	}
	signature, err := jws.ComputeDetachedSignature(string(text), "abcdef", secret)
	if err != nil {
		c.t.Error(err)
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"},
		Data: map[string]string{"kubeconfig": string(text), "jws-kubeconfig-abcdef": signature},
	}
}

func (c *controlPlane) reply(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		c.t.Error(err)
	}
}

// wanted is a request for the agent of cluster m.
func (c *controlPlane) wanted(dir string) Request {
	member := clientcmdapi.NewConfig()
	member.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", ProxyURL: "http://proxy.example:3128"}
	member.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "get-token", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	member.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	member.CurrentContext = "x"
	return Request{
		Layout: Layout{Dir: dir},
		Config: Config{Cluster: "m", ClusterID: "uid-m", Namespace: "karmada-cluster", APIEndpoint: "https://127.0.0.1:1", CertRotation: true, Zones: []string{"x", "y"}, Labels: map[string]string{"b": "2", "a": "1"}},
		Member: *member,
		Enrolment: registration.Enrolment{
			Bootstrap: registration.Bootstrap{Endpoint: c.endpoint, Token: token, CAHashes: []string{registration.CAHash(c.ca)}, Program: "karmadactl"},
			Cluster:   "m", Validity: time.Hour, Timeout: time.Minute,
		},
		Say: func(string) {},
	}
}

// files lists everything below a directory with its mode.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		got[rel] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEnrol(t *testing.T) {
	c := newControlPlane(t)
	r := c.wanted(filepath.Join(t.TempDir(), "agents", "m"))
	res, err := Enrol(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Enrolled || res.Config.Server != "https://"+c.endpoint || res.Config.HealthPort == 0 || res.Config.HealthPort == res.Config.MetricsPort {
		t.Errorf("got %+v", res)
	}
	want := map[string]string{
		".": "drwx------", "pki": "drwx------", "log": "drwx------", "run": "drwx------",
		"agent.yaml": "-rw-------", "karmada-agent.conf": "-rw-------", "member.conf": "-rw-------",
		"pki/ca.crt": "-rw-------", "pki/agent.pem": "-rw-------", "run/command.pid": "-rw-------",
	}
	if diff := cmp.Diff(want, files(t, r.Layout.Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	cfg, err := clientcmd.BuildConfigFromFlags("", r.Layout.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.CertFile != r.Layout.Credential() || cfg.KeyFile != cfg.CertFile || cfg.CAFile != r.Layout.CA() || cfg.Host != res.Config.Server || len(cfg.CertData)+len(cfg.KeyData) > 0 {
		t.Errorf("the kubeconfig names files, so that renewed certificates are taken up: %+v", cfg)
	}
	member, err := clientcmd.LoadFromFile(r.Layout.MemberKubeconfig())
	if err != nil || member.AuthInfos["u"].Exec.Command != "get-token" || member.Clusters["c"].ProxyURL == "" {
		t.Errorf("programs for credentials and proxies are kept: %+v, %v", member, err)
	}
	pair, err := readPair(r.Layout.Credential(), "m")
	if err != nil || pair == nil {
		t.Errorf("the certificate is the agent's: %v", err)
	}

	t.Run("Repeated", func(t *testing.T) {
		again, err := Enrol(t.Context(), r)
		if err != nil || again.Changed || again.Enrolled || len(c.requests) != 1 {
			t.Errorf("what is right stays: %+v, %v, requests %v", again, err, c.requests)
		}
	})
	t.Run("TokenGone", func(t *testing.T) {
		r := r
		r.Enrolment.Token = "ghijkl.0123456789abcdef"
		if again, err := Enrol(t.Context(), r); err != nil || again.Enrolled {
			t.Errorf("an agent that has its certificate needs no token: %+v, %v", again, err)
		}
	})
	t.Run("Changed", func(t *testing.T) {
		r := r
		r.Config.Region = "north"
		again, err := Enrol(t.Context(), r)
		if err != nil || !again.Changed || again.Enrolled || again.Config.HealthPort != res.Config.HealthPort {
			t.Errorf("a running agent has to hear of it: %+v, %v", again, err)
		}
	})
	t.Run("Removed", func(t *testing.T) {
		if err := os.Remove(r.Layout.MemberKubeconfig()); err != nil {
			t.Fatal(err)
		}
		again, err := Enrol(t.Context(), r)
		if err != nil || !again.Changed || again.Enrolled {
			t.Errorf("what is missing is made: %+v, %v", again, err)
		}
	})
	for reason, otherwise := range map[string]*bool{"The control plane does not know the certificate.": &c.forgetful, "The agent's rights went with its Cluster.": &c.rightless} {
		*otherwise = true
		again, err := Enrol(t.Context(), r)
		if err != nil || !again.Enrolled {
			t.Errorf("%s: a new one is asked for: %+v, %v", reason, again, err)
		}
		*otherwise = false
	}

	other := newControlPlane(t)
	elsewhere := other.wanted(r.Layout.Dir)
	_, err = Enrol(t.Context(), elsewhere)
	if err == nil || !strings.Contains(err.Error(), "belongs to another control plane, that at https://"+c.endpoint) {
		t.Errorf("the agent of one control plane is not another's: %v", err)
	}
	if len(other.requests) > 0 {
		t.Errorf("nothing was asked for: %v", other.requests)
	}

	if err := Remove(r.Layout); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.Layout.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is left: %v", files(t, r.Layout.Dir))
	}
	if err := Remove(r.Layout); err != nil {
		t.Errorf("what is gone is gone: %v", err)
	}
}

func TestEnrolFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(c *controlPlane, r *Request)
		err    string
	}{
		"WrongHash": {
			reason: "Nothing was asked for: nothing is left.", err: "none of those that --discovery-token-ca-cert-hash allows",
			change: func(_ *controlPlane, r *Request) {
				r.Enrolment.CAHashes = []string{"sha256:" + strings.Repeat("0", 64)}
			},
		},
		"UnknownToken": {
			reason: "Nothing was asked for: nothing is left.", err: "another secret for token abcdef",
			change: func(_ *controlPlane, r *Request) { r.Enrolment.Token = "abcdef.aaaaaaaaaaaaaaaa" },
		},
		"Denied": {
			reason: "The answer is final: nothing is left, and the directory is free for whoever was meant.", err: "this token is for another cluster",
			change: func(c *controlPlane, _ *Request) { c.deny = "this token is for another cluster" },
		},
		"Failing": {
			reason: "No key is left of an agent that there is none of.", err: "create certificate request",
			change: func(c *controlPlane, _ *Request) { c.failing = true },
		},
		"Interrupted": {
			reason: "Who ends the command wants nothing of it.", err: "",
			change: func(c *controlPlane, r *Request) { c.stops = true },
		},
		"Killed": {
			reason: "What an earlier try left that was killed goes, too.", err: "this token is for another cluster",
			change: func(c *controlPlane, r *Request) {
				c.deny = "this token is for another cluster"
				leave(c.t, r.Layout, r.Config)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newControlPlane(t)
			r := c.wanted(filepath.Join(t.TempDir(), "m"))
			tc.change(c, &r)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c.stop = stop
			_, err := Enrol(ctx, r)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if _, err := os.Stat(r.Layout.Dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s\nleft %v", tc.reason, files(t, r.Layout.Dir))
			}
		})
	}
}

// leave makes what a try leaves that is killed before it has a certificate.
func leave(t *testing.T, l Layout, c Config) {
	t.Helper()
	if err := makeDirs(l); err != nil {
		t.Fatal(err)
	}
	if _, err := c.write(l); err != nil {
		t.Fatal(err)
	}
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := keyFile(l.PendingKey()).Save(key); err != nil {
		t.Fatal(err)
	}
}

func TestEnrolMendsModes(t *testing.T) {
	c := newControlPlane(t)
	r := c.wanted(filepath.Join(t.TempDir(), "m"))
	var said []string
	r.Say = func(line string) { said = append(said, line) }
	if _, err := Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{r.Layout.Credential(), r.Layout.ConfigFile()} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	said = nil
	if _, err := Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for name, mode := range files(t, r.Layout.Dir) {
		if mode != "-rw-------" && mode != "drwx------" {
			t.Errorf("%s is %s", name, mode)
		}
	}
	for _, path := range []string{r.Layout.Credential(), r.Layout.ConfigFile()} {
		if want := "The mode of " + path + " was 0644, and is 0600 again."; !slices.Contains(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	}
}

// A request that somebody may approve yet is taken up by the next try.
func TestEnrolPending(t *testing.T) {
	c := newControlPlane(t)
	c.stops, c.stop = true, func() {} // it does not sign, that is all
	r := c.wanted(filepath.Join(t.TempDir(), "m"))
	r.Enrolment.Timeout = 500 * time.Millisecond
	var pending *registration.PullError
	if _, err := Enrol(t.Context(), r); !errors.As(err, &pending) || pending.Reason != registration.RequestPending {
		t.Fatalf("got %v", err)
	}
	if key, err := keyFile(r.Layout.PendingKey()).Load(); err != nil || key == nil {
		t.Errorf("the key is gone: %v", err)
	}
}

// A try that was killed at any point is taken up by the next.
func TestEnrolAfterKill(t *testing.T) {
	c := newControlPlane(t)
	whole := c.wanted(filepath.Join(t.TempDir(), "m"))
	if _, err := Enrol(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	all := []string{whole.Layout.ConfigFile(), whole.Layout.PendingKey(), whole.Layout.CA(), whole.Layout.Credential(), whole.Layout.MemberKubeconfig(), whole.Layout.Kubeconfig()}
	key, err := registration.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for n := range all {
		r := c.wanted(filepath.Join(t.TempDir(), "m"))
		if err := makeDirs(r.Layout); err != nil {
			t.Fatal(err)
		}
		for _, file := range all[:n] { // in the order in which they are made
			data := key
			if file != whole.Layout.PendingKey() {
				if data, err = os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			rel, err := filepath.Rel(whole.Layout.Dir, file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.Layout.Dir, rel), data, fileMode); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Enrol(t.Context(), r); err != nil {
			t.Errorf("after %d files: %v", n, err)
		}
		for _, file := range []string{r.Layout.Credential(), r.Layout.CA(), r.Layout.Kubeconfig(), r.Layout.MemberKubeconfig()} {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("after %d files: %v", n, err)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		err    string
		found  bool
	}{
		"None":        {reason: "There is no directory."},
		"Empty":       {reason: "An empty one is for whoever comes.", files: map[string]string{}},
		"Interrupted": {reason: "What a first try leaves before it marks the directory is ours.", files: map[string]string{"pki/": "", ".agent.yaml.tmp-1": "x"}},
		"Ours":        {reason: "The same cluster.", files: map[string]string{"agent.yaml": "kind: KarmadaAgent\ncluster: m\nclusterID: uid-m\n"}, found: true},
		"Other":       {reason: "Another name.", files: map[string]string{"pki/": "", "agent.yaml": "kind: KarmadaAgent\ncluster: other\nclusterID: uid-m\n", "pki/agent.pem": "x"}, err: "the agent of another cluster, other"},
		"Rebuilt":     {reason: "Another cluster of that name.", files: map[string]string{"pki/": "", "agent.yaml": "kind: KarmadaAgent\ncluster: m\nclusterID: uid-x\n", "pki/agent.pem": "x"}, err: "was it rebuilt? Unregister m first"},
		"OtherTry":    {reason: "Another's try that never got a certificate is in nobody's way.", files: map[string]string{"agent.yaml": "kind: KarmadaAgent\ncluster: other\nclusterID: uid-m\n", "pki/": ""}},
		"Foreign":     {reason: "Somebody's directory.", files: map[string]string{"photo.jpg": "x"}, err: "holds something else (photo.jpg)"},
		"Plane":       {reason: "A control plane's directory.", files: map[string]string{"plane.yaml": "x", "pki/": ""}, err: "holds something else (plane.yaml)"},
		"Damaged":     {reason: "It cannot be told.", files: map[string]string{"agent.yaml": "kind: ["}, err: "read the agent's settings in"},
		"OtherKind":   {reason: "Something else by that name.", files: map[string]string{"agent.yaml": "kind: KarmadaAgent\n"}, err: "no KarmadaAgent"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			if tc.files != nil {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(tc.files)) { // a directory comes before what is in it
				content := tc.files[name]
				var err error
				if strings.HasSuffix(name, "/") {
					err = os.MkdirAll(filepath.Join(dir, name), 0o700)
				} else {
					err = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			got, err := Check(Layout{Dir: dir}, Config{Cluster: "m", ClusterID: "uid-m"})
			switch {
			case tc.err == "" && err != nil, tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			case (got != nil) != tc.found:
				t.Errorf("%s\ngot %+v", tc.reason, got)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	c := Config{Cluster: "m", Namespace: "karmada-cluster", APIEndpoint: "https://m", HealthPort: 1, MetricsPort: 2, CertRotation: true, ProxyURL: "http://p", Labels: map[string]string{"b": "2", "a": "1"}, Zones: []string{"x", "y"}}
	want := []string{
		"karmada-agent", "--karmada-kubeconfig=/d/karmada-agent.conf", "--kubeconfig=/d/member.conf", "--cluster-name=m", "--cluster-namespace=karmada-cluster",
		"--cluster-api-endpoint=https://m", "--controllers=*,certRotation", "--health-probe-bind-address=127.0.0.1:1", "--metrics-bind-address=127.0.0.1:2",
		"--leader-elect=false",
		"--proxy-server-address=http://p", "--cluster-zones=x,y", "--cluster-labels=a=1,b=2",
	}
	if diff := cmp.Diff(want, c.Args(Layout{Dir: "/d"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemoveKeepsWhatIsNotOurs(t *testing.T) {
	c := newControlPlane(t)
	r := c.wanted(filepath.Join(t.TempDir(), "m"))
	if _, err := Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(r.Layout.Dir, "pki", "mine.key")
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(r.Layout); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{".": "drwx------", "pki": "drwx------", "pki/mine.key": "-rw-------"}, files(t, r.Layout.Dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := Remove(r.Layout); !errors.Is(err, ErrNoAgent) {
		t.Errorf("then it is nobody's we know: %v", err)
	}
}

func TestProcess(t *testing.T) {
	c := newControlPlane(t)
	r := c.wanted(filepath.Join(t.TempDir(), "m"))
	if _, err := Enrol(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	// The test binary is the supervisor, and what it supervises.
	command := []string{os.Args[0], r.Layout.Dir}
	t.Setenv(modeEnv, "supervisor")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pid, err := Start(ctx, r.Layout, command, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Stop(context.Background(), r.Layout) })
	if again, err := Start(ctx, r.Layout, command, false); err != nil || again != pid {
		t.Errorf("there is one: %d and %d, %v", pid, again, err)
	}
	if err := Remove(r.Layout); err == nil || !strings.Contains(err.Error(), "runs") {
		t.Errorf("files of an agent that runs are not removed: %v", err)
	}
	anew, err := Start(ctx, r.Layout, command, true)
	if err != nil || anew == pid {
		t.Errorf("it was to be started anew: %d and %d, %v", pid, anew, err)
	}
	if err := Stop(ctx, r.Layout); err != nil {
		t.Fatal(err)
	}
	if pid, err := Running(r.Layout); err != nil || pid != 0 {
		t.Errorf("it was stopped: %d, %v", pid, err)
	}
	if err := Stop(ctx, r.Layout); err != nil {
		t.Errorf("it is stopped already: %v", err)
	}
}

// modeEnv makes the test binary another program.
const modeEnv = "LOCALAGENT_TEST_MODE"

func TestMain(m *testing.M) {
	if os.Getenv(modeEnv) != "" {
		os.Exit(behave())
	}
	os.Exit(m.Run())
}
