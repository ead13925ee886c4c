package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var errBoom = errors.New("boom")

func TestSecrets(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reads := map[string]int{}
	var fail error
	s := newSecrets(func(_ context.Context, _, name string) (*corev1.Secret, error) {
		reads[name]++
		return &corev1.Secret{}, fail
	}, func() time.Time { return now })
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	get := func(key types.NamespacedName, refused *corev1.Secret) *corev1.Secret {
		t.Helper()
		secret, err := s.get(t.Context(), key, refused)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}

	first := get(a, nil)
	if get(a, nil) != first || reads["a"] != 1 {
		t.Error("a Secret is kept for a while")
	}
	second := get(a, first)
	if second == first || reads["a"] != 2 {
		t.Error("one that is refused is read again")
	}
	if get(a, first) != second || reads["a"] != 2 {
		t.Error("one that somebody else has read again already is not")
	}
	get(b, nil)
	now = now.Add(secretLifetime)
	get(a, nil)
	if reads["a"] != 3 {
		t.Error("a Secret is read again after a while")
	}
	get(types.NamespacedName{Name: "c"}, nil)
	if _, ok := s.kept[b]; ok {
		t.Error("what nobody asks for is given up")
	}
	fail = errBoom
	now = now.Add(secretLifetime)
	if _, err := s.get(t.Context(), a, nil); !errors.Is(err, errBoom) {
		t.Errorf("an error is told: %v", err)
	}
	if _, ok := s.kept[a]; ok {
		t.Error("and not kept")
	}
}

func TestSecretsDoNotWaitForOthers(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	s := newSecrets(func(_ context.Context, _, name string) (*corev1.Secret, error) {
		if name == "slow" {
			close(held)
			<-hold
		}
		return &corev1.Secret{}, nil
	}, time.Now)
	slow := types.NamespacedName{Name: "slow"}
	done := make(chan error, 1)
	go func() {
		_, err := s.get(t.Context(), slow, nil)
		done <- err
	}()
	<-held
	if _, err := s.get(t.Context(), types.NamespacedName{Name: "quick"}, nil); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.get(gone, slow, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone does not wait for their turn: %v", err)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReplay(t *testing.T) {
	readAll := func(r io.Reader) string {
		t.Helper()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	request := func(body io.Reader) *http.Request {
		return httptest.NewRequest(http.MethodPost, "/", body)
	}

	none := replayOf(request(nil))
	if body, ok := none.body(); !ok || body != http.NoBody {
		t.Error("no body is no body")
	}

	const text = "0123456789"
	r := replayOf(request(strings.NewReader(text)))
	first, _ := r.body()
	if _, err := io.ReadFull(first, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	second, ok := r.body()
	if !ok || readAll(second) != text {
		t.Error("a second body is whole, however much of the first was read")
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, errGivenUp) {
		t.Errorf("the first is given up: %v", err)
	}
	third, ok := r.body()
	if !ok || readAll(third) != text {
		t.Error("so is a third")
	}
	_ = third.Close()
	if _, err := third.Read(make([]byte, 1)); !errors.Is(err, errGivenUp) {
		t.Errorf("closed is closed: %v", err)
	}

	big := strings.Repeat("x", replayLimit+1)
	r = replayOf(request(strings.NewReader(big)))
	first, _ = r.body()
	if readAll(first) != big {
		t.Error("a large body is sent")
	}
	if _, ok := r.body(); ok {
		t.Error("it cannot be sent twice")
	}
}

// TestReplayWhileReading gives a sending up while it waits for the sender: what
// comes is for the next one.
func TestReplayWhileReading(t *testing.T) {
	from, to := io.Pipe()
	r := replayOf(httptest.NewRequest(http.MethodPost, "/", from))
	first, _ := r.body()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = first.Read(make([]byte, 4))
	}()
	if _, err := io.WriteString(to, "ab"); err != nil { // taken by the first
		t.Fatal(err)
	}
	<-done
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		_, _ = first.Read(make([]byte, 4))
	}()
	if err := first.Close(); err != nil { // does not wait for what it reads
		t.Fatal(err)
	}
	second, ok := r.body()
	if !ok {
		t.Fatal("want a body")
	}
	go func() {
		_, _ = io.WriteString(to, "cd")
		_ = to.Close()
	}()
	got, err := io.ReadAll(second)
	if err != nil || string(got) != "abcd" {
		t.Errorf("got %q, %v", got, err)
	}
	<-reading
}

func TestLongRunning(t *testing.T) {
	check := LongRunning()
	cases := map[string]struct {
		reason string
		info   request.RequestInfo
		want   bool
	}{
		"Proxy":  {"The member cuts its requests itself.", request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "clusters", Subresource: "proxy"}, true},
		"Create": {"Whatever the method.", request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "clusters", Subresource: "proxy"}, true},
		"Watch":  {"A watch of Clusters lasts.", request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "clusters"}, true},
		"Get":    {"A Cluster is read at once.", request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "clusters"}, false},
		"Status": {"A status is written at once.", request.RequestInfo{IsResourceRequest: true, Verb: "update", Resource: "clusters", Subresource: "status"}, false},
	}
	for name, tc := range cases {
		if got := check(nil, &tc.info); got != tc.want {
			t.Errorf("%s: %s\ngot %t", name, tc.reason, got)
		}
	}
}

func TestLasting(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods"
	cases := map[string]struct {
		method, path string
		upgrade      bool
		want         bool
	}{
		"List":        {"GET", pods, false, false},
		"Watch":       {"GET", pods + "?watch=1", false, true},
		"WatchPath":   {"GET", "/api/v1/watch/pods", false, true},
		"Get":         {"GET", pods + "/b", false, false},
		"Log":         {"GET", pods + "/b/log?follow=true", false, true},
		"Exec":        {"POST", pods + "/b/exec", false, true},
		"PortForward": {"POST", pods + "/b/portforward", false, true},
		"Proxy":       {"GET", "/api/v1/namespaces/a/services/b/proxy/x", false, true},
		"Upgrade":     {"GET", "/anything", true, true},
		"Version":     {"GET", "/version", false, false},
		"Odd":         {"GET", "/api/v1/watch", false, false},
	}
	for name, tc := range cases {
		r := httptest.NewRequest(tc.method, prefix+"m/proxy"+tc.path, nil)
		if tc.upgrade {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}
		got, err := targetOf(r)
		if err != nil || got.lasting != tc.want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestWithQuery(t *testing.T) {
	cases := map[string]struct {
		reason  string
		info    request.RequestInfo
		visible string
	}{
		"Proxy":    {"This server would refuse a dry run.", request.RequestInfo{IsResourceRequest: true, Resource: "clusters", Subresource: "proxy"}, ""},
		"Clusters": {"Other requests are this server's own.", request.RequestInfo{IsResourceRequest: true, Resource: "clusters"}, "dryRun=All"},
	}
	for name, tc := range cases {
		called := false
		handler := WithQuery(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			if r.URL.RawQuery != tc.visible || originalQuery(r) != "dryRun=All" {
				t.Errorf("%s: %s\nvisible %q, original %q", name, tc.reason, r.URL.RawQuery, originalQuery(r))
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/x?dryRun=All", nil)
		handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(request.WithRequestInfo(r.Context(), &tc.info)))
		if !called {
			t.Errorf("%s: not called", name)
		}
	}
}
