package controllermanager_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// A stub is as much of an API server as a manager without controllers needs:
// discovery of ConfigMaps, which there are none of, leases, and events, which
// are thrown away.
type stub struct {
	// list, unless it is nil, holds back lists of ConfigMaps until it is closed.
	list chan struct{}

	mu     sync.Mutex
	lease  *coordinationv1.Lease
	agents map[string]bool
}

func newStub(t *testing.T) (*stub, *rest.Config) {
	t.Helper()
	s := &stub{agents: map[string]bool{}}
	server := httptest.NewServer(s) // on loopback
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL}
}

// Holder returns who holds the lease: nobody, when it is empty.
func (s *stub) Holder() (holder string, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return "", false
	}
	if s.lease.Spec.HolderIdentity != nil {
		holder = *s.lease.Spec.HolderIdentity
	}
	return holder, true
}

// HasSeen says whether a request came from a user agent of a name.
func (s *stub) HasSeen(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for agent := range s.agents {
		if strings.HasPrefix(agent, name+"/") {
			return true
		}
	}
	return false
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.agents[r.UserAgent()] = true
	s.mu.Unlock()

	const leases = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
	switch path := r.URL.Path; {
	case path == "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		reply(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case path == "/api/v1":
		reply(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", SingularName: "configmap", Namespaced: true, Kind: "ConfigMap", Verbs: metav1.Verbs{"list", "watch"}},
				{Name: "secrets", SingularName: "secret", Namespaced: true, Kind: "Secret", Verbs: metav1.Verbs{"list", "watch"}},
			},
		})
	case path == "/api/v1/configmaps":
		s.configMaps(w, r)
	case strings.HasPrefix(path, leases):
		s.leases(w, r)
	case strings.HasSuffix(path, "/events"):
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func (s *stub) configMaps(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		// An older server, which makes clients list first.
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		if s.list != nil {
			select {
			case <-s.list:
			case <-r.Context().Done():
				return
			}
		}
		reply(w, http.StatusOK, map[string]any{
			"kind": "ConfigMapList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{},
		})
	}
}

func (s *stub) leases(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		if s.lease == nil {
			fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		reply(w, http.StatusOK, s.lease)
	case http.MethodPost, http.MethodPut:
		lease, err := readLease(r.Body)
		if err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		s.lease = lease
		reply(w, http.StatusOK, lease)
	default:
		fail(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	}
}

// readLease reads a lease in JSON or protobuf, as clients choose.
func readLease(r io.Reader) (*coordinationv1.Lease, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, lease)
	return lease, err
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason,
	})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
