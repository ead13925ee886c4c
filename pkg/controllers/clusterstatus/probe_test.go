package clusterstatus

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// remoteOf returns a remote for a test server below a path of its own, as a
// proxy has it.
func remoteOf(t *testing.T, server *httptest.Server) remote {
	t.Helper()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return remote{client: server.Client(), base: base}
}

// answers serves fixed answers by path: a status and a body.
type answers map[string]struct {
	code int
	body string
}

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known, ok := a[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(known.code)
	_, _ = w.Write([]byte(known.body))
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		reason  string
		answers answers
		want    metav1.Condition
		err     string
	}{
		"Ready":        {"200 is ready.", answers{"/readyz": {200, "ok"}}, clusterReady(), ""},
		"NotReady":     {"Anything else is reachable, and not ready; /healthz is not asked for a second opinion.", answers{"/readyz": {500, "etcd failed"}, "/healthz": {200, "ok"}}, clusterNotReady(), `/readyz answers 500: "etcd failed"`},
		"Old":          {"A server that has no /readyz has /healthz.", answers{"/healthz": {200, "ok"}}, clusterReady(), ""},
		"OldNotReady":  {"The same, not ready.", answers{"/healthz": {500, ""}}, clusterNotReady(), "/healthz answers 500"},
		"Neither":      {"Whatever this is, it answers.", answers{}, clusterNotReady(), "/healthz answers 404"},
		"Unauthorized": {"A member that refuses our credentials is reachable, not gone.", answers{"/readyz": {401, "no"}}, clusterNotReady(), "/readyz answers 401"},
		"Redirected":   {"A login page elsewhere is no answer of the member.", answers{"/readyz": {302, ""}, "/login": {200, "welcome"}}, clusterNotReady(), "/readyz answers 302"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/login")
				tc.answers.ServeHTTP(w, r)
			}))
			defer server.Close()
			r := remoteOf(t, server)
			r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			got, err := r.probe(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("the reason is %v, want %q\n%s", err, tc.err, tc.reason)
			}
		})
	}
}

func TestProbeWithoutAnswer(t *testing.T) {
	never := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	defer server.Close()
	defer close(never)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := remoteOf(t, server).probe(ctx); err == nil || cmp.Diff(clusterNotReachable(), got) != "" {
		t.Errorf("a member that never answers is not reachable: %v, %v", got, err)
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if got, err := remoteOf(t, gone).probe(t.Context()); err == nil || cmp.Diff(clusterNotReachable(), got) != "" {
		t.Errorf("neither is one that is not there: %v, %v", got, err)
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		code   int
		body   string
		want   string
		err    string
	}{
		"Known":   {"The version as the member writes it.", 200, `{"gitVersion":"v1.37.2+k3s1"}`, "v1.37.2+k3s1", ""},
		"Garbage": {"What is no version is an error, not an empty version.", 200, "<html>", "", "read the answer to /version"},
		"Denied":  {"So is an error status.", 403, "no", "", "/version answers 403"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answers{"/version": {tc.code, tc.body}})
			defer server.Close()
			got, err := remoteOf(t, server).version(t.Context())
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v\n%s", got, err, tc.reason)
			}
		})
	}
}
