// Package fleettest has a control plane with member clusters for tests: API
// servers that keep objects in memory and can list, page, select, make tables
// and watch, the members behind the control plane's proxy.
package fleettest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// ProxyPath is where a member is found behind the control plane.
func ProxyPath(member string) string {
	return "/apis/cluster.karmada.io/v1alpha1/clusters/" + member + "/proxy"
}

// A Plane is a control plane, and the way to its members.
type Plane struct {
	*API
	// Kubeconfig is a file that leads to it.
	Kubeconfig string

	mu      sync.Mutex
	members map[string]http.Handler
}

// NewPlane returns a control plane without members that nobody serves yet.
func NewPlane() *Plane {
	return &Plane{API: NewAPI(PlaneTypes()...), members: make(map[string]http.Handler)}
}

// New starts a control plane without members. Caches of its clients go into a
// directory of the test.
func New(t testing.TB) *Plane {
	t.Helper()
	p := NewPlane()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	// Streams that nobody ends would keep the server from closing.
	t.Cleanup(p.Stop)
	p.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(p.Kubeconfig, server.URL); err != nil {
		t.Fatal(err)
	}
	return p
}

// WriteKubeconfig makes a kubeconfig for a control plane at that address.
func WriteKubeconfig(file, url string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["plane"] = &clientcmdapi.Cluster{Server: url}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "admin"}
	config.Contexts["karmada-apiserver"] = &clientcmdapi.Context{Cluster: "plane", AuthInfo: "admin"}
	config.CurrentContext = "karmada-apiserver"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Factory returns a factory for the control plane.
func (p *Plane) Factory(t testing.TB, s genericiooptions.IOStreams) *factory.Factory {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	f := factory.New(factory.Options{Program: "karmadactl", ErrOut: s.ErrOut})
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddKubeconfigFlag(fs)
	if err := fs.Set("kubeconfig", p.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

// Join adds a member that is an API server with these objects.
func (p *Plane) Join(name string, objects ...string) *API {
	m := NewAPI(MemberTypes()...)
	m.Add(objects...)
	p.JoinAs(name, m)
	return m
}

// JoinAs adds a member that answers in its own way.
func (p *Plane) JoinAs(name string, member http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members[name] = member
	p.Add(fmt.Sprintf(`{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":%q}}`, name))
}

// Stop ends all watches, of the members too.
func (p *Plane) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.API.Stop()
	for _, m := range p.members {
		if api, ok := m.(*API); ok {
			api.Stop()
		}
	}
}

// ServeHTTP is the control plane, and the proxy to its members.
func (p *Plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const clusters = "/apis/cluster.karmada.io/v1alpha1/clusters/"
	name, path, proxied := strings.Cut(strings.TrimPrefix(r.URL.Path, clusters), "/proxy")
	if !strings.HasPrefix(r.URL.Path, clusters) || !proxied {
		p.API.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	member := p.members[name]
	p.mu.Unlock()
	if member == nil {
		Status(w, http.StatusNotFound, "NotFound", fmt.Sprintf("clusters.cluster.karmada.io %q not found", name))
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path = path
	member.ServeHTTP(w, r)
}

// Silent is a member that takes requests and does not answer.
func Silent() http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// Broken is a member that cannot be reached, in the words of the proxy.
func Broken() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "cluster broken, https://192.0.2.1:6443, cannot be reached: connection refused")
	})
}

// Liar is a member that promises more than it sends.
func Liar() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write([]byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[`))
	})
}

// Status answers as an API server does that says no.
func Status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	answer(w, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": map[string]any{},
	})
}

func answer(w http.ResponseWriter, what any) {
	_ = json.NewEncoder(w).Encode(what) // a client that went away is no matter here
}

// A Type is one that an API serves.
type Type struct {
	Group, Version, Kind, Resource string
	Namespaced                     bool
	Short                          []string
}

func (t Type) groupVersion() string { return strings.TrimPrefix(t.Group+"/"+t.Version, "/") }

// MemberTypes are those of a Kubernetes cluster, and one that only members have.
func MemberTypes() []Type {
	return append(common(), Type{Group: "example.io", Version: "v1", Kind: "Gadget", Resource: "gadgets", Namespaced: true})
}

// PlaneTypes are those of a control plane.
func PlaneTypes() []Type {
	return append(common(),
		Type{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster", Resource: "clusters"},
		Type{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy", Resource: "propagationpolicies", Namespaced: true, Short: []string{"pp"}},
		Type{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterPropagationPolicy", Resource: "clusterpropagationpolicies", Short: []string{"cpp"}},
	)
}

func common() []Type {
	return []Type{
		{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true, Short: []string{"po"}},
		{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Short: []string{"cm"}},
		{Version: "v1", Kind: "Namespace", Resource: "namespaces", Short: []string{"ns"}},
		{Version: "v1", Kind: "Node", Resource: "nodes", Short: []string{"no"}},
		{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true, Short: []string{"deploy"}},
	}
}

// Pod returns a pod, for Join.
func Pod(namespace, name string, labels ...string) string {
	return object("v1", "Pod", namespace, name, labels)
}

// Deployment returns a deployment, for Join.
func Deployment(namespace, name string, labels ...string) string {
	return object("apps/v1", "Deployment", namespace, name, labels)
}

// object returns one whose labels are pairs of key and value.
func object(apiVersion, kind, namespace, name string, labels []string) string {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	set := make(map[string]string)
	for pair := range slices.Chunk(labels, 2) {
		set[pair[0]] = pair[1]
	}
	if len(set) > 0 {
		u.SetLabels(set)
	}
	text, err := u.MarshalJSON()
	if err != nil {
		panic(err) // of a test
	}
	return string(text)
}
