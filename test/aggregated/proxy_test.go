package aggregated

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	streaming "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// makeObject creates an object for the time of a test.
func makeObject(t *testing.T, o client.Object) {
	t.Helper()
	if err := shared.client.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.client.Delete(context.Background(), o)); err != nil {
			t.Errorf("delete %T %s: %v", o, o.GetName(), err)
		}
	})
}

func secret(t *testing.T, name string, data map[string]string) *clusterv1alpha1.LocalSecretReference {
	t.Helper()
	makeObject(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterNamespace, Name: name}, StringData: data})
	return &clusterv1alpha1.LocalSecretReference{Namespace: names.ClusterNamespace, Name: name}
}

// joinItself makes a member of the control plane's own API server, which has
// everything that a member has: users are impersonated by a service account that
// may do nothing else.
func joinItself(t *testing.T, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterNamespace, Name: name + "-impersonator"}}
	makeObject(t, account)
	grant(t, name+"-impersonator", rbacv1.Subject{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}})
	token := &authenticationv1.TokenRequest{}
	if err := shared.client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	join(t, name, shared.config.Host, string(shared.config.CAData), token.Status.Token)
}

// join makes a Cluster with its Secrets.
func join(t *testing.T, name, endpoint, ca, token string) {
	t.Helper()
	credentials := secret(t, name, map[string]string{"caBundle": ca, "token": "none"})
	impersonator := secret(t, name+"-impersonator", map[string]string{"token": token})
	create(t, newCluster(name, func(c *clusterv1alpha1.Cluster) {
		c.Spec.APIEndpoint = endpoint
		c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = credentials, impersonator
	}))
}

func grant(t *testing.T, name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	makeObject(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	if to.Kind != "ServiceAccount" {
		to.APIGroup = rbacv1.GroupName
	}
	makeObject(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{to},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	})
}

// throughProxy returns how a user reaches a member.
func throughProxy(cluster, user string, groups ...string) *rest.Config {
	c := rest.CopyConfig(shared.config)
	c.Host = strings.TrimSuffix(shared.config.Host, "/") + api + "/" + cluster + "/proxy"
	if user != "" {
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	return c
}

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProxyAccess(t *testing.T) {
	joinItself(t, "access")
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	proxies := func(cluster string, verbs ...string) rbacv1.PolicyRule {
		rule := rbacv1.PolicyRule{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, Verbs: verbs}
		if cluster != "" {
			rule.ResourceNames = []string{cluster}
		}
		return rule
	}
	maps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	grant(t, "proxy-all", user("all"), proxies("", "*"), maps)
	grant(t, "proxy-reader", user("reader"), proxies("", "get"), maps)
	grant(t, "proxy-named", user("named"), proxies("access", "*"), maps)
	grant(t, "proxy-other", user("other"), proxies("another", "*"), maps)
	grant(t, "proxy-only", user("only"), proxies("", "*"))
	grant(t, "proxy-none", user("none"), maps)
	grant(t, "proxy-group", rbacv1.Subject{Kind: "Group", Name: "team"}, proxies("", "*"), maps)

	const path = "/api/v1/namespaces/default/configmaps"
	const body = `{"metadata":{"name":"proxy-access"}}`
	const here = "clusters.cluster.karmada.io" // who forbids: the control plane, by RBAC of clusters/proxy
	const there = "configmaps"                 // or the member
	cases := map[string]struct {
		reason       string
		user, groups string
		method       string
		code         int
		by           string
	}{
		"Get":          {"Rights here and there.", "all", "", http.MethodGet, 200, ""},
		"Head":         {"HEAD needs get; the member does not offer it.", "reader", "", http.MethodHead, 405, ""},
		"NoHead":       {"HEAD needs get.", "none", "", http.MethodHead, 403, ""},
		"Post":         {"Rights here and there.", "all", "", http.MethodPost, 201, ""},
		"ReaderGets":   {"GET needs get.", "reader", "", http.MethodGet, 200, ""},
		"ReaderPosts":  {"POST needs create.", "reader", "", http.MethodPost, 403, here},
		"ReaderPuts":   {"PUT needs update.", "reader", "", http.MethodPut, 403, here},
		"ReaderPatch":  {"PATCH needs patch.", "reader", "", http.MethodPatch, 403, here},
		"ReaderDelete": {"DELETE needs delete.", "reader", "", http.MethodDelete, 403, here},
		"Named":        {"Rights may be for one cluster.", "named", "", http.MethodGet, 200, ""},
		"Other":        {"And not for another.", "other", "", http.MethodGet, 403, here},
		"NoProxy":      {"Rights there are none here.", "none", "", http.MethodGet, 403, here},
		"NoRights":     {"Rights here are none there.", "only", "", http.MethodGet, 403, there},
		"Group":        {"Groups go along.", "somebody", "team", http.MethodGet, 200, ""},
		"Anonymous":    {"Nobody has no rights.", "system:anonymous", "", http.MethodGet, 403, here},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var groups []string
			if tc.groups != "" {
				groups = []string{tc.groups}
			}
			config := throughProxy("access", tc.user, groups...)
			response := send(t, config, tc.method, path+"?dryRun=All", body)
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != tc.code {
				t.Fatalf("%s\ngot %d, want %d: %s", tc.reason, response.StatusCode, tc.code, text)
			}
			if !strings.Contains(string(text), tc.by) {
				t.Errorf("%s\nnot forbidden by %s: %s", tc.reason, tc.by, text)
			}
		})
	}
	err := shared.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "proxy-access"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a dry run creates nothing, got %v", err)
	}
}

func send(t *testing.T, config *rest.Config, method, path, body string) *http.Response {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestProxySmuggling(t *testing.T) {
	joinItself(t, "smuggling")
	grant(t, "proxy-smuggler", rbacv1.Subject{Kind: "User", Name: "smuggler"},
		rbacv1.PolicyRule{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, Verbs: []string{"*"}})
	token := func(config *rest.Config) { // as a request that says who it is twice
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.Header.Set("X-Remote-User", "system:admin")
				r.Header.Set("X-Remote-Group", "system:masters")
				return next.RoundTrip(r)
			})
		})
	}
	for _, cluster := range []string{"smuggling", "*"} {
		config := throughProxy(cluster, "smuggler")
		token(config)
		_, err := clientOf(t, config).CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v", cluster, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestProxyWatch(t *testing.T) {
	joinItself(t, "watching")
	maps := clientOf(t, throughProxy("watching", "")).CoreV1().ConfigMaps("default")
	list, err := maps.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "proxied=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	o, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "proxy-watch", Labels: map[string]string{"proxied": "yes"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), o.Name, types.StrategicMergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), o.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		select {
		case event := <-w.ResultChan():
			if event.Type != want {
				t.Fatalf("got %s, want %s: %+v", event.Type, want, event.Object)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no event %s", want)
		}
	}
}

// shell echoes what comes in.
type shell struct{}

func (shell) ExecInContainer(_ context.Context, _, _, _ string, cmd []string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan streaming.TerminalSize, _ time.Duration) error {
	_, err := fmt.Fprintf(out, "%s: ", cmd[0])
	if err == nil && in != nil {
		_, err = io.Copy(out, in)
	}
	return errors.Join(err, out.Close())
}

// TestProxyExec has everything between a client and a member's shell but the
// member's API server: SPDY and WebSocket have to get through two servers.
func TestProxyExec(t *testing.T) {
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streaming.ServeExec(w, r, shell{}, "pod", "uid", "container", r.URL.Query()["command"],
			&streaming.Options{Stdin: true, Stdout: true}, time.Minute, time.Minute, streaming.SupportedStreamingProtocols)
	}))
	defer kubelet.Close()
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Impersonate-User") == "" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		// What an API server does, which speaks a newer WebSocket protocol than nodes.
		there, err := url.Parse(kubelet.URL + r.URL.String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if wsstream.IsWebSocketRequest(r) {
			proxy.NewStreamTranslatorHandler(there, &http.Transport{}, 0, proxy.Options{Stdin: true, Stdout: true}).ServeHTTP(w, r)
			return
		}
		kubelet.Config.Handler.ServeHTTP(w, r)
	}))
	defer member.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: member.Certificate().Raw}))
	join(t, "exec", member.URL, ca, "secret")

	config := throughProxy("exec", "")
	u, err := url.Parse(config.Host + "/api/v1/namespaces/a/pods/b/exec?command=greet&stdin=true&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	executors := map[string]func() (remotecommand.Executor, error){
		"SPDY": func() (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
		},
		"WebSocket": func() (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
		},
	}
	for name, executor := range executors {
		t.Run(name, func(t *testing.T) {
			e, err := executor()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			text := strings.Repeat("hello ", 20_000)
			if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(text), Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if out.String() != "greet: "+text {
				t.Errorf("got %d bytes, %.30q", out.Len(), out.String())
			}
		})
	}
}

func TestProxyAll(t *testing.T) {
	joinItself(t, "all-one")
	all := clientOf(t, throughProxy("*", ""))
	version, err := all.Discovery().ServerVersion()
	if err != nil || version.Major == "" {
		t.Errorf("what is no resource is the control plane's to answer: %v, %v", version, err)
	}
	makeObject(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "proxy-all"}, Data: map[string]string{"a": "b"}})
	maps := all.CoreV1().ConfigMaps("default")
	o, err := maps.Get(t.Context(), "proxy-all", metav1.GetOptions{})
	if err != nil || o.Data["a"] != "b" {
		t.Errorf("found in one: %v, %v", o, err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=proxy-all", Limit: 500})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("listed: %v, %v", list, err)
	}

	joinItself(t, "all-two")
	if _, err := maps.Get(t.Context(), "proxy-all", metav1.GetOptions{}); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), "conflict resource, exist in more than one cluster: all-one,all-two") {
		t.Errorf("found in two: %v", err)
	}
	list, err = maps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=proxy-all"})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("listed: %v, %v", list, err)
	}
	if _, err := maps.Get(t.Context(), "proxy-none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("found in none: %v", err)
	}
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("nobody knows where to create: %v", err)
	}

	// Warnings get through.
	join(t, "all-dead", "https://127.0.0.1:1", string(shared.config.CAData), "x")
	response := send(t, throughProxy("*", ""), http.MethodGet, "/api/v1/namespaces/default/configmaps?limit=1", "")
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Warning"), "all-dead") {
		t.Errorf("got %s, warning %q", response.Status, response.Header.Get("Warning"))
	}
}

// TestProxyAllRights makes sure that nobody gains this server's own rights.
func TestProxyAllRights(t *testing.T) {
	grant(t, "proxy-plain", rbacv1.Subject{Kind: "User", Name: "plain"},
		rbacv1.PolicyRule{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"}, Verbs: []string{"*"}})
	for path, code := range map[string]int{"/version": 200, "/metrics": 403, "/logs": 403} {
		if response := send(t, throughProxy("*", "plain"), http.MethodGet, path, ""); response.StatusCode != code {
			t.Errorf("%s: got %s, want %d", path, response.Status, code)
		}
		if response := send(t, throughProxy("*", "", ""), http.MethodGet, "/metrics", ""); response.StatusCode != 200 {
			t.Errorf("the administrator may: got %s", response.Status)
		}
	}
}

func TestProxyErrors(t *testing.T) {
	clusters := clientOf(t, throughProxy("nowhere", ""))
	_, err := clusters.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `clusters.cluster.karmada.io "nowhere" not found`) {
		t.Errorf("got %v", err)
	}
	create(t, newCluster("no-impersonator"))
	_, err = clientOf(t, throughProxy("no-impersonator", "")).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "the impersonatorSecretRef of cluster no-impersonator is nil") {
		t.Errorf("got %v", err)
	}
	join(t, "dead", "https://127.0.0.1:1", string(shared.config.CAData), "x")
	_, err = clientOf(t, throughProxy("dead", "")).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "cluster dead, https://127.0.0.1:1, cannot be reached") {
		t.Errorf("got %v", err)
	}
}
