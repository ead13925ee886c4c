package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	restclient "k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const prefix = "/apis/cluster.karmada.io/v1alpha1/clusters/"

// control is a control plane as far as this package can tell: Clusters, Secrets,
// and a server of clusters/proxy that knows who asks.
type control struct {
	t      *testing.T
	rest   *REST
	server *httptest.Server
	client *http.Client
	user   user.Info // who asks

	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	secrets  map[string]*corev1.Secret
	reads    map[string]int
	hold     chan struct{} // readings of Secrets wait for it, if there is one
}

func newControl(t *testing.T, change ...func(*Options, *patience)) *control {
	t.Helper()
	c := &control{
		t:        t,
		user:     &user.DefaultInfo{Name: "alice", UID: "7", Groups: []string{"dev", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a"}}},
		clusters: map[string]*clusterv1alpha1.Cluster{}, secrets: map[string]*corev1.Secret{}, reads: map[string]int{},
	}
	o := Options{Clusters: c, Secrets: c.secret, ControlPlane: &restclient.Config{Host: "https://127.0.0.1:1"}}
	p := defaultPatience()
	for _, f := range change {
		f(&o, &p)
	}
	var err error
	if c.rest, err = newREST(o, p); err != nil {
		t.Fatal(err)
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.server.EnableHTTP2 = true // as between API servers
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	c.client = c.server.Client()
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		c.rest.Destroy()
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

func (c *control) Cluster(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cluster, ok := c.clusters[name]; ok {
		return cluster.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}, name)
}

func (c *control) Clusters(context.Context) ([]clusterv1alpha1.Cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []clusterv1alpha1.Cluster
	for _, cluster := range c.clusters {
		all = append(all, *cluster.DeepCopy())
	}
	return all, nil
}

func (c *control) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	c.mu.Lock()
	hold := c.hold
	c.reads[name]++
	secret := c.secrets[name]
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if secret == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return secret.DeepCopy(), nil
}

// put makes or changes a Secret.
func (c *control) put(name string, data map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	c.secrets[name] = secret
}

func (c *control) readsOf(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads[name]
}

// join makes a cluster, with Secrets, of a member.
func (c *control) join(name string, m *httptest.Server, change ...func(*clusterv1alpha1.Cluster)) {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode:              clusterv1alpha1.Push,
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name + "-impersonator"},
		},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}},
	}
	ca := ""
	if m != nil {
		cluster.Spec.APIEndpoint = m.URL
		ca = caOf(m)
	}
	for _, f := range change {
		f(cluster)
	}
	c.put(name, map[string]string{"token": "admin-token", "caBundle": ca})
	c.put(name+"-impersonator", map[string]string{"token": "impersonator-token"})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clusters[name] = cluster
}

func (c *control) change(name string, f func(*clusterv1alpha1.Cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.clusters[name])
}

func caOf(m *httptest.Server) string {
	if m.Certificate() == nil {
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw}))
}

// serve does what is left of an API server when it has found out who asks.
func (c *control) serve(w http.ResponseWriter, r *http.Request) {
	ctx := request.WithUser(r.Context(), c.user)
	ctx = warning.WithWarningRecorder(ctx, recorder{w})
	r = r.WithContext(ctx)
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	out := &responder{w}
	handler, err := c.rest.Connect(ctx, name, nil, out)
	if err != nil {
		out.Error(err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, private") // as filters do
	handler.ServeHTTP(w, r)
}

type recorder struct{ w http.ResponseWriter }

func (r recorder) AddWarning(_, text string) {
	r.w.Header().Add("Warning", fmt.Sprintf("299 - %q", text))
}

type responder struct{ w http.ResponseWriter }

func (r *responder) Object(int, runtime.Object) {}

func (r *responder) Error(err error) {
	status := metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s.Status()
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(r.w).Encode(status)
}

// request makes a request for the path of a cluster.
func (c *control) request(method, cluster, path string, body io.Reader) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+prefix+cluster+"/proxy"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// do sends a request and returns the answer with all of its body.
func (c *control) do(r *http.Request) (*http.Response, string) {
	c.t.Helper()
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return response, string(body)
}

func (c *control) get(cluster, path string) (int, string) {
	c.t.Helper()
	response, body := c.do(c.request(http.MethodGet, cluster, path, nil))
	return response.StatusCode, body
}

// dial opens a connection of its own to the server, as who wants to upgrade does.
func (c *control) dial(request string) (net.Conn, *bufio.Reader, *http.Response) {
	c.t.Helper()
	conn, err := tls.Dial("tcp", c.server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		c.t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn, reader, response
}

// A member is a server that speaks TLS and HTTP/2.
func newMember(t *testing.T, handler http.HandlerFunc, change ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s)
	}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// seen is what a member saw of a request.
type seen struct {
	Method, URI, Host string
	Header            http.Header
	Body              string
}

// echo answers with what it sees.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "member")
	_ = json.NewEncoder(w).Encode(seen{r.Method, r.RequestURI, r.Host, r.Header, string(body)})
}

func sawOf(t *testing.T, body string) seen {
	t.Helper()
	var s seen
	if err := json.NewDecoder(bytes.NewBufferString(body)).Decode(&s); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return s
}

// upgraded echoes lines over a connection that has become something else.
func upgraded(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer impersonator-token" || r.Header.Get("Impersonate-User") != "alice" {
		http.Error(w, "who are you?", http.StatusForbidden)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-Websocket-Protocol: %s\r\nX-Path: %s\r\n\r\n",
		r.Header.Get("Upgrade"), r.Header.Get("Sec-Websocket-Protocol"), r.RequestURI)
	_ = rw.Flush()
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	}
}
