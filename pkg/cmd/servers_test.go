package cmd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// A ca signs certificates for the servers and clients of a test.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newCA(t *testing.T, name string) *ca {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("make CA %s: %v", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("parse CA %s: %v", name, err)
	}
	return &ca{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make key: %v", err)
	}
	return key
}

// leaf returns a certificate for host and its key, valid until notAfter.
func (c *ca) leaf(t *testing.T, host string, notAfter time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		t.Fatalf("make certificate for %s: %v", host, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("encode key of %s: %v", host, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// serve starts a server with that certificate, and returns its URL.
func serve(t *testing.T, certPEM, keyPEM []byte, answer http.HandlerFunc) string {
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatalf("load server certificate: %v", err)
	}
	server := httptest.NewUnstartedServer(answer)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are the point
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// aControlPlane answers as one without clusters does.
func aControlPlane(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch clusters := "/apis/cluster.karmada.io/v1alpha1/clusters"; {
	case r.URL.Path == "/apis":
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"policy.karmada.io"},{"name":"work.karmada.io"},{"name":"cluster.karmada.io"}]}`))
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"plane"}}`))
	case r.URL.Path == clusters:
		_, _ = w.Write([]byte(`{"kind":"ClusterList","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{},"items":[]}`))
	case strings.HasPrefix(r.URL.Path, clusters+"/"):
		name := strings.TrimPrefix(r.URL.Path, clusters+"/")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"clusters.cluster.karmada.io \"%[1]s\" not found","reason":"NotFound","details":{"name":%[1]q,"group":"cluster.karmada.io","kind":"clusters"},"code":404}`, name)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/karmada-cluster/secrets/"):
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"secrets not found","reason":"NotFound","details":{"kind":"secrets"},"code":404}`))
	default:
		plainKubernetes(w, r)
	}
}

// plainKubernetes answers discovery as a server without karmada's API does,
// and refuses expired client certificates as an API server does.
func plainKubernetes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body := ""
	switch r.URL.Path {
	case "/api":
		body = `{"kind":"APIVersions","versions":["v1"]}`
	case "/apis":
		body = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
	case "/api/v1":
		body = `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","shortNames":["ns"],"verbs":["get","list"]}]}`
	case "/api/v1/namespaces":
		body = `{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":[
			{"metadata":{"name":"default"}},{"metadata":{"name":"karmada-cluster"}},{"metadata":{"name":"karmada-system"}}]}`
	}
	for _, cert := range r.TLS.PeerCertificates {
		if time.Now().After(cert.NotAfter) {
			w.WriteHeader(http.StatusUnauthorized)
			body = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
		}
	}
	if body == "" {
		w.WriteHeader(http.StatusNotFound)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`
	}
	_, _ = w.Write([]byte(body)) // a client that went away is no matter here
}

// writeKubeconfigs makes the kubeconfigs that the scripts use, in dir.
func writeKubeconfigs(t *testing.T, dir string) {
	t.Helper()
	hour := time.Now().Add(time.Hour)
	past := time.Now().Add(-time.Hour)
	right, wrong := newCA(t, "right"), newCA(t, "wrong")
	cert, key := right.leaf(t, "127.0.0.1", hour)
	good := serve(t, cert, key, plainKubernetes)
	plane := serve(t, cert, key, aControlPlane)
	cert, key = right.leaf(t, "127.0.0.1", past)
	expired := serve(t, cert, key, plainKubernetes)
	cert, key = right.leaf(t, "elsewhere.example", hour)
	elsewhere := serve(t, cert, key, plainKubernetes)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}

	clientCert, clientKey := right.leaf(t, "admin", hour)
	oldCert, oldKey := right.leaf(t, "admin", past)
	write := func(name, server string, authority, cert, key []byte) {
		config := clientcmdapi.NewConfig()
		config.Clusters["one"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
		config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		config.Contexts["karmada-apiserver"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "admin"}
		config.Contexts["second"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "admin", Namespace: "production"}
		config.CurrentContext = "karmada-apiserver"
		if err := clientcmd.WriteToFile(*config, filepath.Join(dir, name)); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
	}
	write("good.config", good, right.pem, clientCert, clientKey)
	write("plane.config", plane, right.pem, clientCert, clientKey)
	write("wrongca.config", good, wrong.pem, clientCert, clientKey)
	write("oldclient.config", good, right.pem, oldCert, oldKey)
	write("oldserver.config", expired, right.pem, clientCert, clientKey)
	write("elsewhere.config", elsewhere, right.pem, clientCert, clientKey)
	write("refused.config", refused, right.pem, clientCert, clientKey)
	write("plainhttp.config", "https"+plain.URL[len("http"):], right.pem, clientCert, clientKey)
	writeFleet(t, filepath.Join(dir, "fleet.config"))
}

// writeFleet starts a control plane with members of all kinds, and makes a kubeconfig for it.
func writeFleet(t *testing.T, file string) {
	t.Helper()
	p := fleettest.New(t)
	p.Add(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`, fleettest.Deployment("default", "web"))
	one := p.Join("member1",
		fleettest.Deployment("default", "web", "karmada.io/managed", "true"),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web-0"},"spec":{"containers":[{"name":"app","image":"i"}]},"status":{"phase":"Running"}}`)
	one.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods/web-0/log") {
			return false
		}
		_, _ = io.WriteString(w, "one line\n") // a client that went away is no matter here
		return true
	})
	p.Join("member2", fleettest.Deployment("default", "own"))
	p.JoinAs("silent", fleettest.Silent())
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err == nil {
		err = clientcmd.WriteToFile(*config, file)
	}
	if err != nil {
		t.Fatalf("write %s: %v", file, err)
	}
}
