package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmadactl/karmadactl/pkg/apis"
	"github.com/karmadactl/karmadactl/pkg/server/scheduler"
)

// TestMain stands in for the command: the logger of controller-runtime belongs
// to the process.
func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	m.Run()
}

// A stub is as much of an API server as a scheduler with nothing to schedule
// needs. It counts the lists of each resource.
type stub struct {
	mu    sync.Mutex
	lists map[string]int
}

func newStub(t *testing.T) (*stub, *rest.Config) {
	t.Helper()
	s := &stub{lists: map[string]int{}}
	server := httptest.NewServer(s) // on loopback
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL}
}

func (s *stub) listedOnce(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range []string{"clusters", "resourcebindings", "clusterresourcebindings"} {
		if s.lists[resource] != 1 {
			return fmt.Errorf("lists: %v", s.lists)
		}
	}
	return nil
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type resources = []metav1.APIResource
	verbs := metav1.Verbs{"list", "watch"}
	served := map[string]resources{
		"cluster.karmada.io/v1alpha1": {{Name: "clusters", Kind: "Cluster", Verbs: verbs}},
		"work.karmada.io/v1alpha2": {
			{Name: "resourcebindings", Kind: "ResourceBinding", Namespaced: true, Verbs: verbs},
			{Name: "clusterresourcebindings", Kind: "ClusterResourceBinding", Verbs: verbs},
		},
	}
	switch r.URL.Path {
	case "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for gv := range served {
			group, version, _ := strings.Cut(gv, "/")
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		reply(w, http.StatusOK, groups)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	if list, ok := served[path]; ok {
		reply(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: path, APIResources: list})
		return
	}
	for gv, list := range served {
		for _, resource := range list {
			if path == gv+"/"+resource.Name {
				s.list(w, r, gv, resource)
				return
			}
		}
	}
	reply(w, http.StatusNotFound, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
}

func (s *stub) list(w http.ResponseWriter, r *http.Request, gv string, resource metav1.APIResource) {
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "":
		// An older server, which makes clients list first.
		reply(w, http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid})
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		s.mu.Lock()
		s.lists[resource.Name]++
		s.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{
			"kind": resource.Kind + "List", "apiVersion": gv, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{},
		})
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// One server answers for probes and metrics, since they have one address.
func TestRun(t *testing.T) {
	server, config := newStub(t)
	address, ready := freeAddress(t), make(chan struct{})
	stop, done := start(t, func(ctx context.Context) error {
		return scheduler.Run(ctx, []string{
			"--leader-elect=false", "--health-probe-bind-address=" + address, "--metrics-bind-address=" + address,
		}, scheduler.Process{RESTConfig: config, Registerer: prometheus.NewRegistry(), Ready: func() { close(ready) }})
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		eventually(t, path+" answers", func(ctx context.Context) error { return get(ctx, "http://"+address+path) })
	}
	eventually(t, "all that it needs is read, once", server.listedOnce)
	stop()
	if err := <-done; err != nil {
		t.Errorf("a graceful stop is no error, got: %v", err)
	}
}

// With the manager of another role the scheduler is alive before that is there,
// ready when its cache is, and reads nothing twice.
func TestRunShared(t *testing.T) {
	server, config := newStub(t)
	mgr := newManager(t, config)
	stopManager, managerDone := start(t, mgr.Start)

	health, ready, there := freeAddress(t), make(chan struct{}), make(chan manager.Manager, 1)
	stop, done := start(t, func(ctx context.Context) error {
		return scheduler.RunShared(ctx, []string{"--health-probe-bind-address=" + health},
			scheduler.Process{RESTConfig: config, Registerer: prometheus.NewRegistry(), Ready: func() { close(ready) }},
			func(ctx context.Context) (manager.Manager, error) {
				select {
				case mgr := <-there:
					return mgr, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
	})
	eventually(t, "it is alive without a manager", func(ctx context.Context) error { return get(ctx, "http://"+health+"/healthz") })
	if err := get(t.Context(), "http://"+health+"/readyz"); err == nil {
		t.Error("without a manager it must not be ready")
	}

	there <- mgr
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	eventually(t, "it is ready", func(ctx context.Context) error { return get(ctx, "http://"+health+"/readyz") })
	eventually(t, "the cache of the manager is used", server.listedOnce)
	stop()
	if err := <-done; err != nil {
		t.Errorf("a graceful stop is no error, got: %v", err)
	}
	if err := get(t.Context(), "http://"+health+"/healthz"); err == nil {
		t.Error("the health probe must be gone with the role")
	}
	stopManager()
	if err := <-managerDone; err != nil {
		t.Errorf("the manager: %v", err)
	}
}

func TestRunSharedFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason string
		args   []string
		shared error
		stop   bool
		want   error
		says   string
	}{
		"NoManager": {reason: "Without a manager nothing would ever be scheduled.", shared: errBoom, want: errBoom},
		"Stopped":   {reason: "A role that is told to stop before it has a manager has not failed.", stop: true},
		"Address": {
			reason: "An address that others have is told, with the flag that changes it.",
			args:   []string{"--health-probe-bind-address=" + taken.Addr().String()}, says: "--health-probe-bind-address",
		},
		"Flags": {reason: "Flags are checked as those of the command.", args: []string{"--plugins=Nope"}, says: "--plugins"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			args := append([]string{"--health-probe-bind-address=0"}, tc.args...)
			err := scheduler.RunShared(ctx, args, nowhere(), func(ctx context.Context) (manager.Manager, error) {
				if tc.stop {
					cancel()
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, tc.shared
			})
			switch {
			case tc.want == nil && tc.says == "":
				if err != nil {
					t.Errorf("got %v\n%s", err, tc.reason)
				}
			case err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says):
				t.Errorf("got %v, want %v with %q\n%s", err, tc.want, tc.says, tc.reason)
			}
		})
	}
}

func newManager(t *testing.T, config *rest.Config) manager.Manager {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Names are those of a process, which has several schedulers here.
		Controller: crconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// start runs something until the test ends, or stop is called.
func start(t *testing.T, run func(context.Context) error) (stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, result := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		result <- run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return cancel, result
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited for: %s; at last: %v", what, last)
	}
}

// freeAddress returns a loopback address that nothing listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
