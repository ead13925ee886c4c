package member_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// An api is an API server that serves ConfigMaps and does what a test tells it.
type api struct {
	*httptest.Server

	mu       sync.Mutex
	token    string // what it accepts; "" for anything
	objects  map[string]int
	version  int
	watchers map[chan string]bool
	requests []string
	// instead, unless nil, answers a request; false leaves it to the server.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{objects: map[string]int{}, version: 1, watchers: map[chan string]bool{}}
	a.Server = httptest.NewTLSServer(a)
	t.Cleanup(func() {
		a.cutWatches()
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *api) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
}

func (a *api) accept(token string) { a.set(func() { a.token = token }) }

func (a *api) answer(f func(http.ResponseWriter, *http.Request) bool) {
	a.set(func() { a.instead = f })
}

func (a *api) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// put makes an object be there, remove makes it go.
func (a *api) put(name string) {
	a.set(func() {
		kind := "MODIFIED"
		if _, ok := a.objects[name]; !ok {
			kind = "ADDED"
		}
		a.version++
		a.objects[name] = a.version
		a.tell(kind, name, a.version)
	})
}

func (a *api) remove(name string) {
	a.set(func() {
		a.version++
		delete(a.objects, name)
		a.tell("DELETED", name, a.version)
	})
}

func (a *api) tell(kind, name string, version int) {
	for w := range a.watchers {
		w <- fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, configMap(name, version))
	}
}

func (a *api) cutWatches() {
	a.set(func() {
		for w := range a.watchers {
			close(w)
		}
		a.watchers = map[chan string]bool{}
	})
}

func (a *api) isWatched() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watchers) > 0
}

func (a *api) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

func configMap(name string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q,"resourceVersion":"%d",`+
		`"labels":{"karmada.io/managed":"true"},"managedFields":[{"manager":"x"}]}}`, name, version)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	token, instead := a.token, a.instead
	a.mu.Unlock()
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		status(w, http.StatusUnauthorized)
		return
	}
	if instead != nil && instead(w, r) {
		return
	}
	switch {
	case r.URL.Path == "/api":
		reply(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		reply(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case r.URL.Path == "/api/v1":
		reply(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "configmaps", SingularName: "configmap", Namespaced: true, Kind: "ConfigMap", Verbs: []string{"list", "watch"}}},
		})
	case r.URL.Path == "/api/v1/configmaps" && r.URL.Query().Get("labelSelector") != "karmada.io/managed=true":
		status(w, http.StatusTeapot)
	case r.URL.Path == "/api/v1/configmaps" && r.URL.Query().Get("watch") == "true":
		a.watch(w, r)
	case r.URL.Path == "/api/v1/configmaps":
		a.list(w)
	case r.URL.Path == "/echo":
		_ = r.Write(w)
	default:
		status(w, http.StatusNotFound)
	}
}

func (a *api) list(w http.ResponseWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []json.RawMessage{}
	for name, version := range a.objects {
		items = append(items, json.RawMessage(configMap(name, version)))
	}
	reply(w, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMapList", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)},
	})
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		status(w, http.StatusBadRequest) // an older server: lists, then
		return
	}
	events := make(chan string, 1000)
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		status(w, http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	if from != a.version { // too old for this server, which remembers nothing
		a.mu.Unlock()
		status(w, http.StatusGone)
		return
	}
	a.watchers[events] = true
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if _, err := w.Write([]byte(e)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			a.set(func() { delete(a.watchers, events) })
			return
		}
	}
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func status(w http.ResponseWriter, code int) {
	s := apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, false).Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(s)
}

// A vault holds the Secret of one cluster.
type vault struct {
	mu    sync.Mutex
	data  map[string]string
	err   error
	reads int
}

func (v *vault) set(key, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data[key] = value
}

func (v *vault) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reads
}

func (v *vault) read(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	if v.err != nil {
		return nil, v.err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range v.data {
		s.Data[key] = []byte(value)
	}
	return s, nil
}

func vaultOf(a *api, token string) *vault {
	return &vault{data: map[string]string{"token": token, "caBundle": string(a.ca())}}
}

func clusterAt(name, endpoint string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)},
		Spec: clusterv1alpha1.ClusterSpec{
			APIEndpoint: endpoint,
			SecretRef:   &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name},
		},
	}
}

func eventually(t *testing.T, reason string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so within 30 s: %s", reason)
		case <-tick.C:
		}
	}
}
