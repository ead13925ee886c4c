package factory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A fakeFleet is a control plane that knows pods, and a member that knows gadgets, too.
type fakeFleet struct {
	mu    sync.Mutex
	asked []string
	// answer, if set, is the member's.
	answer http.HandlerFunc
}

func (f *fakeFleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.Path)
	f.mu.Unlock()
	path, member := strings.CutPrefix(r.URL.Path, "/apis/cluster.karmada.io/v1alpha1/clusters/m/proxy")
	if member && f.answer != nil {
		f.answer(w, r)
		return
	}
	resources := `{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}`
	if member {
		resources += `,{"name":"gadgets","singularName":"gadget","namespaced":true,"kind":"Gadget","verbs":["get"]}`
	}
	w.Header().Set("Content-Type", "application/json")
	switch path {
	case "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[%s]}`, resources)
	default:
		http.NotFound(w, r)
	}
}

func (f *fakeFleet) askedMember() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.asked, func(path string) bool { return strings.Contains(path, "/proxy/") })
}

// factory returns one for the control plane.
func (f *fakeFleet) factory(t *testing.T) *Factory {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECACHEDIR", t.TempDir())
	result := New(Options{Program: "karmadactl", ErrOut: io.Discard})
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	result.AddKubeconfigFlag(fs)
	if err := fs.Set("kubeconfig", file); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestThroughAsksWhoKnows(t *testing.T) {
	cases := map[string]struct {
		reason     string
		planeTypes bool
		resource   string
		member     bool
		unknown    bool
	}{
		"PlaneKnows":  {reason: "The member need not be asked.", planeTypes: true, resource: "pods"},
		"MemberKnows": {reason: "The member is asked about the rest.", planeTypes: true, resource: "gadgets", member: true},
		"NobodyKnows": {reason: "Then it is unknown.", planeTypes: true, resource: "frobs", member: true, unknown: true},
		"MemberAlone": {reason: "Who wants the member's own word gets it.", resource: "pods", member: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fleet := &fakeFleet{}
			member := fleet.factory(t).Through(t.Context(), ThroughOptions{Cluster: "m", PlaneTypes: tc.planeTypes})
			mapper, err := member.ToRESTMapper()
			if err != nil {
				t.Fatal(err)
			}
			_, err = mapper.KindFor(schema.GroupVersionResource{Resource: tc.resource})
			if (err != nil) != tc.unknown {
				t.Errorf("got error %v: %s", err, tc.reason)
			}
			if got := fleet.askedMember(); got != tc.member {
				t.Errorf("the member was asked: %t, want %t: %s", got, tc.member, tc.reason)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	begun := make(chan struct{}, 10)
	cases := map[string]struct {
		reason  string
		path    string
		limit   time.Duration
		answer  http.HandlerFunc
		cancel  bool
		silence bool
		body    string
	}{
		"Silent": {
			reason: "Who does not begin to answer is given up.", path: "/api", limit: 100 * time.Millisecond, silence: true,
			answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		},
		"Stuck": {
			reason: "So is who does not end.", path: "/api", limit: 100 * time.Millisecond, silence: true,
			answer: func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "half")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			},
		},
		"Log": {
			reason: "A log may come as slowly as it is written.", path: "/api/v1/namespaces/n/pods/p/log", limit: time.Millisecond * 100, body: "line",
			answer: func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				late := time.NewTimer(300 * time.Millisecond)
				defer late.Stop()
				select {
				case <-late.C:
				case <-r.Context().Done():
				}
				fmt.Fprint(w, "line")
			},
		},
		"Interrupted": {
			reason: "A command that is over waits for nobody.", path: "/api", cancel: true,
			answer: func(_ http.ResponseWriter, r *http.Request) { begun <- struct{}{}; <-r.Context().Done() },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fleet := &fakeFleet{answer: tc.answer}
			member := fleet.factory(t).Through(ctx, ThroughOptions{Cluster: "m", Patience: tc.limit})
			client, err := member.KubernetesClientSet()
			if err != nil {
				t.Fatal(err)
			}
			if tc.cancel {
				go func() { <-begun; cancel() }()
			}
			body, err := client.CoreV1().RESTClient().Get().AbsPath(tc.path).DoRaw(context.Background())
			var silence *Silence
			switch {
			case tc.silence && !errors.As(err, &silence):
				t.Errorf("got %v, want a silence: %s", err, tc.reason)
			case tc.silence && silence.Error() != "cluster m did not answer within 100ms":
				t.Errorf("got %q", silence)
			case tc.cancel && !errors.Is(err, context.Canceled):
				t.Errorf("got %v, want that it was canceled: %s", err, tc.reason)
			case !tc.silence && !tc.cancel && (err != nil || string(body) != tc.body):
				t.Errorf("got %q, %v: %s", body, err, tc.reason)
			}
		})
	}
}

// What a member answers is never taken for the control plane's.
func TestMembersPageIsTheMembers(t *testing.T) {
	fleet := &fakeFleet{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html>")
	}}
	f := fleet.factory(t)
	client, err := f.Through(t.Context(), ThroughOptions{Cluster: "m"}).KubernetesClientSet()
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().RESTClient().Get().AbsPath("/api").DoRaw(t.Context())
	var known *Error
	if err == nil || errors.As(f.Explain(err), &known) {
		t.Errorf("got %v: the control plane is well", f.Explain(err))
	}
}
