package kwok

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// An authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.crt")}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue returns a leaf for a name and the files it is in.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (pair tls.Certificate, certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePEM(a.t, certFile, "CERTIFICATE", der)
	writePEM(a.t, keyFile, "EC PRIVATE KEY", keyDER)
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		a.t.Fatal(err)
	}
	return pair, certFile, keyFile
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEndpointAccess(t *testing.T) {
	ca, frontCA, otherCA := newAuthority(t), newAuthority(t), newAuthority(t)
	_, certFile, keyFile := ca.issue("kubelet", x509.ExtKeyUsageServerAuth)
	kubeletClient, _, _ := ca.issue("apiserver", x509.ExtKeyUsageClientAuth)
	otherName, _, _ := ca.issue("somebody", x509.ExtKeyUsageClientAuth)
	serverLeaf, _, _ := ca.issue("apiserver", x509.ExtKeyUsageServerAuth)
	front, _, _ := frontCA.issue("front", x509.ExtKeyUsageClientAuth)
	stranger, _, _ := otherCA.issue("apiserver", x509.ExtKeyUsageClientAuth)

	model, err := newUsageModel()
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(runningPod())
	o := valid()
	o.CertFile, o.KeyFile = certFile, keyFile
	o.ClientCAFile, o.ClientNames = ca.file, []string{"apiserver"}
	o.RequestHeaderCAFile = frontCA.file
	e := &endpoint{options: o, pod: newPodGetter(client.CoreV1()), metrics: &metricsServer{client: client.CoreV1(), model: model}}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: e.handler(), TLSConfig: serverTLS(certFile, keyFile)}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	defer server.Close()

	const logs = "/containerLogs/default/web-1/app"
	const exec = "/exec/default/web-1/app?command=echo&output=1"
	none := tls.Certificate{}
	cases := map[string]struct {
		reason string
		path   string
		client tls.Certificate
		status int
		body   string // a part of it
	}{
		"HealthForAll":        {reason: "Health needs no certificate.", path: "/healthz", client: none, status: 200, body: "ok"},
		"LogsAnonymous":       {reason: "Logs do.", path: logs, client: none, status: 401, body: "certificate is required"},
		"Logs":                {reason: "The API server gets them.", path: logs, client: kubeletClient, status: 200, body: "simulated container app"},
		"LogsOtherName":       {reason: "Users have certificates of the same authority.", path: logs, client: otherName, status: 401, body: `"somebody" is not accepted`},
		"LogsWrongUsage":      {reason: "A server's certificate is not a client's.", path: logs, client: serverLeaf, status: 401},
		"LogsStranger":        {reason: "A name alone proves nothing.", path: logs, client: stranger, status: 401},
		"ExecAnonymous":       {reason: "Exec least of all.", path: exec, client: none, status: 401},
		"ExecNoUpgrade":       {reason: "It needs a stream.", path: exec, client: kubeletClient, status: 400},
		"NoPod":               {reason: "As a kubelet says it.", path: "/containerLogs/default/nope/app", client: kubeletClient, status: 404},
		"OtherUID":            {reason: "A new pod of the same name is another.", path: "/attach/default/web-1/other/app", client: kubeletClient, status: 404},
		"MetricsFront":        {reason: "The aggregation layer gets usage.", path: metricsVersionPath + "/pods", client: front, status: 200, body: `"cpu":"250m"`},
		"MetricsKubelet":      {reason: "With its own certificate only.", path: metricsVersionPath + "/pods", client: kubeletClient, status: 401},
		"LogsFront":           {reason: "Which opens nothing else.", path: logs, client: front, status: 401},
		"ResourceMetrics":     {reason: "A scraper comes as a kubelet's client.", path: resourceMetricsPath("n"), client: kubeletClient, status: 200, body: "node_memory_working_set_bytes"},
		"DiscoveryGroup":      {reason: "Discovery finds the version.", path: metricsGroupPath, client: front, status: 200, body: `"metrics.k8s.io/v1beta1"`},
		"DiscoveryResources":  {reason: "And the resources.", path: metricsVersionPath, client: front, status: 200, body: `"PodMetrics"`},
		"NothingElse":         {reason: "There is nothing else to find, no profiles either.", path: "/debug/pprof/", client: kubeletClient, status: 404},
		"MetricsPodNotFound":  {reason: "An error is a Status.", path: metricsVersionPath + "/namespaces/default/pods/nope", client: front, status: 404, body: `"kind":"Status"`},
		"MetricsPodFound":     {reason: "One pod by its name.", path: metricsVersionPath + "/namespaces/default/pods/web-1", client: front, status: 200, body: `"kind":"PodMetrics"`},
		"MetricsNodesNothing": {reason: "No node is an empty list, not null.", path: metricsVersionPath + "/nodes", client: front, status: 200, body: `"items":[]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: x509.NewCertPool()}
			config.RootCAs.AddCert(ca.cert)
			if tc.client.Certificate != nil {
				config.Certificates = []tls.Certificate{tc.client}
			}
			c := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
			r, err := c.Get("https://" + listener.Addr().String() + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != tc.status || !strings.Contains(string(body), tc.body) {
				t.Errorf("%s\ngot %d %s\nwant %d %s", tc.reason, r.StatusCode, body, tc.status, tc.body)
			}
		})
	}
}

func TestPortForward(t *testing.T) {
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- streamer{pod: runningPod()}.PortForward(context.Background(), "", "", 8080, far) }()

	answers := bufio.NewReader(near)
	for _, path := range []string{"/a", "/b"} {
		r, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = r.Write(near) }()
		resp, err := http.ReadResponse(answers, r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		want := "simulated pod default/web-1 on node n, port 8080: GET " + path + "\n"
		if string(body) != want {
			t.Errorf("A connection may carry several requests; got %q, want %q", body, want)
		}
	}
	near.Close()
	if err := <-done; err != nil {
		t.Errorf("A client that hangs up is no error: %v", err)
	}
}

func TestStreamsOfWaitingContainer(t *testing.T) {
	s := streamer{pod: runningPod()}
	if err := s.ExecInContainer(context.Background(), "", "", "bad", []string{"true"}, nil, nil, nil, false, nil, 0); err == nil || !strings.Contains(err.Error(), "ImagePullBackOff") {
		t.Errorf("Nothing runs in a container whose image cannot be pulled: %v", err)
	}
}
