package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// holding returns a member that has some objects, named like in a path.
func holding(t *testing.T, paths ...string) *httptest.Server {
	return newMember(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer impersonator-token" || r.Header.Get("Impersonate-User") != "alice" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		for _, p := range paths {
			if r.URL.Path == p || strings.HasPrefix(r.URL.Path, p+"/") {
				w.Header().Set("X-Has", p)
				echo(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})
}

// nowhere is where nothing listens.
func nowhere(t *testing.T) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.APIEndpoint, c.Spec.InsecureSkipTLSVerification = "https://"+closed(t), true
	}
}

func message(t *testing.T, body string) string {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return status.Message
}

func TestOneOfAll(t *testing.T) {
	c := newControl(t)
	c.join("m1", holding(t, "/api/v1/namespaces/a/pods/one", "/api/v1/namespaces/a/pods/both", "/apis/apps/v1/namespaces/a/deployments/d"))
	c.join("m2", holding(t, "/api/v1/namespaces/a/pods/two", "/api/v1/namespaces/a/pods/both", "/api/v1/nodes/n"))
	const none = "resource not found or don't have permission to get it"
	cases := map[string]struct {
		reason string
		method string
		path   string
		code   int
		want   string // message of the error, or what the member sees
	}{
		"Get":          {"Found in one, it is got there.", "GET", "/api/v1/namespaces/a/pods/one", 200, "/api/v1/namespaces/a/pods/one"},
		"Other":        {"Also in the other.", "GET", "/api/v1/namespaces/a/pods/two?pretty=1", 200, "/api/v1/namespaces/a/pods/two?pretty=1"},
		"ClusterScope": {"With or without a namespace.", "GET", "/api/v1/nodes/n", 200, "/api/v1/nodes/n"},
		"Sub":          {"A sub-resource is where its object is.", "GET", "/api/v1/namespaces/a/pods/one/log?follow=true", 200, "/api/v1/namespaces/a/pods/one/log?follow=true"},
		"Group":        {"Groups have their own place.", "GET", "/apis/apps/v1/namespaces/a/deployments/d/scale", 200, "/apis/apps/v1/namespaces/a/deployments/d/scale"},
		"Put":          {"What is changed must exist.", "PUT", "/api/v1/namespaces/a/pods/one", 200, "/api/v1/namespaces/a/pods/one"},
		"Delete":       {"So must what is deleted.", "DELETE", "/api/v1/namespaces/a/pods/one?dryRun=All", 200, "/api/v1/namespaces/a/pods/one?dryRun=All"},
		"None":         {"Found in none.", "GET", "/api/v1/namespaces/a/pods/none", 404, none},
		"DeleteNone":   {"Found in none, nothing is deleted.", "DELETE", "/api/v1/namespaces/a/pods/none", 404, none},
		"Both":         {"Nobody guesses which.", "GET", "/api/v1/namespaces/a/pods/both", 409, "conflict resource, exist in more than one cluster: m1,m2"},
		"DeleteBoth":   {"Least of all when deleting.", "DELETE", "/api/v1/namespaces/a/pods/both", 409, "conflict resource, exist in more than one cluster: m1,m2"},
		"Create":       {"Nobody knows where.", "POST", "/api/v1/namespaces/a/pods", 405, "Request verb create is not support"},
		"Watch":        {"Watches are of one cluster.", "GET", "/api/v1/namespaces/a/pods?watch=true", 405, "Request verb watch is not support"},
		"DeleteAll":    {"Deleting many is of one cluster.", "DELETE", "/api/v1/namespaces/a/pods", 405, "Request verb deletecollection is not support"},
		"Options":      {"Methods without a verb go by their names.", "OPTIONS", "/api/v1/namespaces/a/pods", 405, "Request verb options is not support"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response, body := c.do(c.request(tc.method, "*", tc.path, nil))
			if response.StatusCode != tc.code {
				t.Fatalf("%s\ngot %d: %s", tc.reason, response.StatusCode, body)
			}
			got := ""
			if tc.code == http.StatusOK {
				saw := sawOf(t, body)
				if got = saw.URI; saw.Method != tc.method {
					t.Errorf("%s\ngot %s", tc.reason, saw.Method)
				}
			} else {
				got = message(t, body)
			}
			if got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}

	c.join("m3", nil, func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef = nil })
	if code, body := c.get("*", "/api/v1/namespaces/a/pods/none"); code != http.StatusNotFound {
		t.Errorf("a cluster that nobody may be proxied to does not count: got %d: %s", code, body)
	}
	c.join("m0", nil, nowhere(t))
	response, body := c.do(c.request("GET", "*", "/api/v1/namespaces/a/pods/none", nil))
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(message(t, body), none) || !strings.Contains(body, "m0") {
		t.Errorf("that a cluster cannot be asked is not that it has nothing: got %d: %s", response.StatusCode, body)
	}
	response, _ = c.do(c.request("GET", "*", "/api/v1/namespaces/a/pods/one", nil))
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Warning"), "m0") {
		t.Errorf("who is asked about one must know who was not asked: %s, %q", response.Status, response.Header["Warning"])
	}
}

func TestUpgradeToOneOfAll(t *testing.T) {
	c := newControl(t)
	c.join("m1", holding(t))
	c.join("m2", newMember(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			upgraded(w, r)
		}
	}))
	conn, reader, response := c.dial("POST " + prefix + "*/proxy/api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response.Status)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

// listing returns a member that answers lists with a text.
func listing(t *testing.T, code int, text string, check ...func(*http.Request)) *httptest.Server {
	return newMember(t, func(w http.ResponseWriter, r *http.Request) {
		for _, f := range check {
			f(r)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	})
}

func TestListOfAll(t *testing.T) {
	const path = "/api/v1/namespaces/a/pods"
	pods := func(names ...string) string {
		items := ""
		for i, n := range names {
			if i > 0 {
				items += ","
			}
			items += `{"metadata":{"name":"` + n + `","big":12345678901234567890}}`
		}
		return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x"},"items":[` + items + `]}`
	}
	merged := func(names ...string) string {
		return strings.Replace(pods(names...), `{"resourceVersion":"7","continue":"x"}`, `{}`, 1)
	}
	tableOf := func(columns, rows string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[` + columns + `],"rows":[` + rows + `]}`
	}
	col := func(name string) string {
		return `{"name":"` + name + `","type":"string","format":"","description":"","priority":0}`
	}
	const notFound = "resource not found or don't have permission to get it"
	cases := map[string]struct {
		reason  string
		members []*httptest.Server // m1, m2, …; nil does not answer
		code    int
		want    string
		warned  []string
	}{
		"Merge":     {"Items of all, in the order of clusters.", []*httptest.Server{listing(t, 200, pods("b", "a")), listing(t, 200, pods("c"))}, 200, merged("b", "a", "c"), nil},
		"Empty":     {"An empty list is one.", []*httptest.Server{listing(t, 200, pods()), listing(t, 200, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`)}, 200, merged(), nil},
		"Forbidden": {"Who may not see some sees the others.", []*httptest.Server{listing(t, 403, "{}"), listing(t, 200, pods("c")), listing(t, 404, "")}, 200, merged("c"), nil},
		"None":      {"Found nowhere.", []*httptest.Server{listing(t, 404, "{}"), listing(t, 403, "{}")}, 404, notFound, nil},
		"Dead":      {"A dead one holds up nobody, and is not passed over in silence.", []*httptest.Server{listing(t, 200, pods("a")), nil}, 200, merged("a"), []string{"m2", "cannot be reached"}},
		"Broken":    {"Neither are those that are not well.", []*httptest.Server{listing(t, 500, "boom"), listing(t, 200, "garbage"), listing(t, 200, pods("a"))}, 200, merged("a"), []string{"m1 answers 500", "m2 answers with something that is no list"}},
		"AllDead":   {"That none could be asked is not that there is nothing.", []*httptest.Server{nil}, 503, notFound, nil},
		"Tables":    {"What people see is put together as well.", []*httptest.Server{listing(t, 200, tableOf(col("A")+","+col("B"), `{"cells":["a1","b1"],"object":{"x":1}}`)), listing(t, 200, tableOf(col("B")+","+col("C"), `{"cells":["b2","c2"]}`))}, 200, tableOf(col("A")+","+col("B"), `{"cells":["a1","b1"],"object":{"x":1}},{"cells":[null,"b2"]}`), nil},
		"NoHeaders": {"Tables may come without a header.", []*httptest.Server{listing(t, 200, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[{"cells":[1]}]}`), listing(t, 200, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[{"cells":[2]}]}`)}, 200, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[{"cells":[1]},{"cells":[2]}]}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newControl(t)
			for i, m := range tc.members {
				c.join("m"+string(rune('1'+i)), m, func(cluster *clusterv1alpha1.Cluster) {
					if m == nil {
						nowhere(t)(cluster)
					}
				})
			}
			response, body := c.do(c.request(http.MethodGet, "*", path, nil))
			if response.StatusCode != tc.code {
				t.Fatalf("%s\ngot %d: %s", tc.reason, response.StatusCode, body)
			}
			if tc.code != http.StatusOK {
				if !strings.HasPrefix(message(t, body), tc.want) {
					t.Errorf("%s\ngot %s", tc.reason, body)
				}
				return
			}
			var got, want any
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if strings.Contains(body, "e+19") {
				t.Errorf("%s\na number has changed: %s", tc.reason, body)
			}
			warnings := strings.Join(response.Header["Warning"], "\n")
			if (len(tc.warned) == 0) != (warnings == "") {
				t.Errorf("%s\nwarnings: %s", tc.reason, warnings)
			}
			for _, want := range tc.warned {
				if !strings.Contains(warnings, want) {
					t.Errorf("%s\n%q is missing in warnings: %s", tc.reason, want, warnings)
				}
			}
		})
	}
}

func TestListRequest(t *testing.T) {
	const empty = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`
	cases := map[string]struct {
		reason        string
		query, accept string
		code          int
		wantQuery     string
		wantAccept    string
	}{
		"Selectors":  {"Selectors select everywhere.", "?labelSelector=a%3Db&fieldSelector=metadata.name%21%3Dx", "application/json", 200, "fieldSelector=metadata.name%21%3Dx&labelSelector=a%3Db", "application/json"},
		"Page":       {"There is one page.", "?limit=500", "", 200, "", "application/json"},
		"NextPage":   {"There is no other.", "?continue=x&limit=5", "", 400, "", ""},
		"Version":    {"A version is that of one cluster.", "?resourceVersion=7&resourceVersionMatch=Exact", "", 200, "", "application/json"},
		"AnyVersion": {"Any version is good enough everywhere.", "?resourceVersion=0", "", 200, "resourceVersion=0", "application/json"},
		"Table": {"As kubectl asks.", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", 200, "",
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"},
		"Protobuf": {"Only JSON is put together.", "", "application/vnd.kubernetes.protobuf,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200, "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
		"Anything": {"Who takes anything gets JSON.", "", "*/*", 200, "", "application/json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newControl(t)
			var query, accept string
			c.join("m", listing(t, 200, empty, func(r *http.Request) { query, accept = r.URL.RawQuery, r.Header.Get("Accept") }))
			r := c.request(http.MethodGet, "*", "/api/v1/pods"+tc.query, nil)
			r.Header.Set("Accept", tc.accept)
			response, body := c.do(r)
			if response.StatusCode != tc.code || query != tc.wantQuery || accept != tc.wantAccept {
				t.Errorf("%s\ngot %d, query %q, accept %q: %s", tc.reason, response.StatusCode, query, accept, body)
			}
		})
	}
}

func TestDoubtfulClusterIsNotWaitedFor(t *testing.T) {
	c := newControl(t, func(_ *Options, p *patience) { p.doubtful = time.Millisecond })
	release := make(chan struct{})
	hanging := newMember(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	c.join("m1", hanging, func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown })
	c.join("m2", listing(t, 200, `{"kind":"PodList","apiVersion":"v1","items":[]}`))
	response, body := c.do(c.request(http.MethodGet, "*", "/api/v1/pods", nil))
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Warning"), "m1") {
		t.Errorf("got %s, warning %q: %s", response.Status, response.Header.Get("Warning"), body)
	}
}

func TestControlPlane(t *testing.T) {
	own := newMember(t, echo)
	c := newControl(t, func(o *Options, _ *patience) {
		o.ControlPlane = &restclient.Config{
			Host: own.URL + "/base", BearerToken: "server-token", TLSClientConfig: restclient.TLSClientConfig{CAData: []byte(caOf(own))},
		}
	})
	for _, path := range []string{"/api", "/apis/apps/v1", "/openapi/v3?a=b", "/version", "/"} {
		r := c.request(http.MethodGet, "*", path, nil)
		r.Header.Set("Authorization", "Bearer mine")
		r.Header.Set("Impersonate-User", "root")
		r.Header.Set("Impersonate-Group", "system:masters")
		response, body := c.do(r)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %s: %s", path, response.Status, body)
		}
		saw := sawOf(t, body)
		got := http.Header{}
		for key, values := range saw.Header {
			if strings.HasPrefix(key, "Impersonate-") || key == "Authorization" {
				got[key] = values
			}
		}
		want := http.Header{
			"Authorization": {"Bearer server-token"}, "Impersonate-User": {"alice"}, "Impersonate-Uid": {"7"},
			"Impersonate-Group": {"dev"}, "Impersonate-Extra-Scopes": {"a"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: this server's rights are not the requester's: -want, +got:\n%s", path, diff)
		}
		if saw.URI != "/base"+path {
			t.Errorf("%s: the control plane sees %s", path, saw.URI)
		}
	}
	if code, body := c.get("*", "/.."); code != http.StatusBadRequest {
		t.Errorf("got %d: %s", code, body)
	}
	own.Close()
	if code, body := c.get("*", "/api"); code != http.StatusBadGateway || !strings.Contains(body, "control plane") {
		t.Errorf("got %d: %s", code, body)
	}
}
