package controllermanager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/server/controllermanager"
)

// TestMain stands in for the command: the logger of controller-runtime belongs
// to the process.
func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	m.Run()
}

func TestRun(t *testing.T) {
	server, config := newStub(t)
	health, metrics, profiles := freeAddress(t), freeAddress(t), freeAddress(t)
	ready := make(chan struct{})
	stop, done := start(t, []string{
		"--health-probe-bind-address=" + health,
		"--metrics-bind-address=" + metrics,
		"--enable-pprof", "--profiling-bind-address=" + profiles,
		"--leader-elect-retry-period=100ms",
	}, controllermanager.Process{RESTConfig: config, Ready: func() { close(ready) }})

	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	for url, want := range map[string]string{
		"http://" + health + "/healthz":               "ok",
		"http://" + health + "/readyz":                "ok",
		"http://" + metrics + "/metrics":              "karmada_build_info{",
		"http://" + profiles + "/debug/pprof/cmdline": "",
		"http://" + health + "/readyz/caches":         "ok",
		"http://" + health + "/healthz/ping":          "ok",
	} {
		eventually(t, url+" answers", func(ctx context.Context) error { return get(ctx, url, want) })
	}
	eventually(t, "the lease is held", func(context.Context) error {
		if holder, _ := server.Holder(); holder == "" {
			return errors.New("nobody holds it")
		}
		return nil
	})
	eventually(t, "leadership is a metric", func(ctx context.Context) error {
		return get(ctx, "http://"+metrics+"/metrics", `leader_election_master_status{name="karmada-controller-manager"} 1`)
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("a graceful stop is no error, got: %v", err)
	}
	if holder, exists := server.Holder(); !exists || holder != "" {
		t.Errorf("the lease must be released on the way out, it is held by %q", holder)
	}
	if err := get(t.Context(), "http://"+health+"/healthz", ""); err == nil {
		t.Error("the health probe must be gone with the manager")
	}
}

func TestRunReady(t *testing.T) {
	server, config := newStub(t)
	server.list = make(chan struct{})
	health := freeAddress(t)
	ready := make(chan struct{})
	_, done := startWith(t, controllermanager.WithConfigMapInformer, []string{
		"--health-probe-bind-address=" + health, "--metrics-bind-address=0", "--leader-elect=false",
	}, controllermanager.Process{RESTConfig: config, Ready: func() { close(ready) }})

	eventually(t, "a process whose caches have not synced is alive", func(ctx context.Context) error {
		return get(ctx, "http://"+health+"/healthz", "ok")
	})
	if err := get(t.Context(), "http://"+health+"/readyz", "ok"); err == nil {
		t.Error("a process whose caches have not synced must not be ready")
	}
	select {
	case <-ready:
		t.Error("ready was called before the caches had synced")
	default:
	}

	close(server.list)
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	if !server.HasSeen("karmada-controller-manager") {
		t.Error("the user agent must say who is calling")
	}
	eventually(t, "the process becomes ready", func(ctx context.Context) error {
		return get(ctx, "http://"+health+"/readyz", "ok")
	})
}

// What is shared runs already, and nobody gets it before its own controllers do.
func TestRunShares(t *testing.T) {
	_, config := newStub(t)
	shared := make(chan manager.Manager, 1)
	_, done := start(t, []string{"--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=0"},
		controllermanager.Process{RESTConfig: config, Share: func(mgr manager.Manager) { shared <- mgr }})
	select {
	case mgr := <-shared:
		ran := make(chan struct{})
		if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { close(ran); return nil })); err != nil {
			t.Fatal(err)
		}
		<-ran
	case err := <-done:
		t.Fatalf("ended before it shared its manager: %v", err)
	}
}

func TestRunStandby(t *testing.T) {
	server, config := newStub(t)
	_, _ = start(t, []string{"--health-probe-bind-address=" + freeAddress(t), "--metrics-bind-address=0"},
		controllermanager.Process{RESTConfig: config})
	eventually(t, "the first one leads", func(context.Context) error {
		if holder, _ := server.Holder(); holder == "" {
			return errors.New("nobody holds the lease")
		}
		return nil
	})
	leader, _ := server.Holder()

	health := freeAddress(t)
	ready := make(chan struct{})
	_, done := start(t, []string{"--health-probe-bind-address=" + health, "--metrics-bind-address=0"},
		controllermanager.Process{RESTConfig: config, Ready: func() { close(ready) }})
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("ended before it was ready: %v", err)
	}
	eventually(t, "the one that stands by is ready", func(ctx context.Context) error {
		return get(ctx, "http://"+health+"/readyz", "ok")
	})
	if holder, _ := server.Holder(); holder != leader {
		t.Errorf("the lease has gone from %q to %q without need", leader, holder)
	}
}

func TestRunAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{"--health-probe-bind-address", "--metrics-bind-address"} {
		t.Run(flag, func(t *testing.T) {
			_, config := newStub(t)
			args := []string{"--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=0", flag + "=" + taken.Addr().String()}
			err := controllermanager.WithoutControllers(t.Context(), args, controllermanager.Process{RESTConfig: config})
			if err == nil || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), taken.Addr().String()) {
				t.Errorf("the error must name the address and the flag, got: %v", err)
			}
		})
	}
}

// start runs the role until the test ends, or stop is called.
func start(t *testing.T, args []string, p controllermanager.Process) (stop func(), done <-chan error) {
	t.Helper()
	return startWith(t, controllermanager.WithoutControllers, args, p)
}

func startWith(t *testing.T, run func(context.Context, []string, controllermanager.Process) error, args []string, p controllermanager.Process) (stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, result := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		result <- run(ctx, args, p)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return cancel, result
}

func get(ctx context.Context, url, want string) error {
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
	if !strings.Contains(string(body), want) {
		return fmt.Errorf("answer has no %q", want)
	}
	return nil
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
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
