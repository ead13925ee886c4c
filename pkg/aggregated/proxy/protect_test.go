package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const protectedText = "This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected"

// A store is a member that has objects: labels by path, and what it was asked for.
type store struct {
	labels map[string]string // as a set, by path
	answer func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	asked []string // method and path of each request
	last  seen
}

func (s *store) member(t *testing.T, change ...func(*httptest.Server)) *httptest.Server {
	return newMember(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.RequestURI)
		s.last = seen{r.Method, r.RequestURI, r.Host, r.Header, string(body)}
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer impersonator-token" || r.Header.Get("Impersonate-User") != "alice" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if s.answer != nil && s.answer(w, r) {
			return
		}
		s.get(t, w, r)
	}, change...)
}

func (s *store) get(t *testing.T, w http.ResponseWriter, r *http.Request) {
	type object map[string]any
	meta := func(path string) object {
		set, err := labels.ConvertSelectorToLabelsMap(s.labels[path])
		if err != nil {
			t.Error(err)
		}
		return object{"metadata": object{"name": path[strings.LastIndex(path, "/")+1:], "labels": set}}
	}
	if _, ok := s.labels[r.URL.Path]; ok {
		_ = json.NewEncoder(w).Encode(meta(r.URL.Path))
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, `{"message":"bad selector","reason":"BadRequest"}`, http.StatusBadRequest)
		return
	}
	found, items := false, []object{}
	for path, set := range s.labels {
		if strings.HasPrefix(path, r.URL.Path+"/") {
			found = true
			if have, _ := labels.ConvertSelectorToLabelsMap(set); selector.Matches(have) {
				items = append(items, meta(path))
			}
		}
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(object{"items": items})
}

func TestProtected(t *testing.T) {
	const (
		always = "resourcetemplate.karmada.io/deletion-protected=Always"
		pods   = "/api/v1/namespaces/a/pods"
		web    = "/apis/apps/v1/namespaces/a/deployments/web"
	)
	objects := map[string]string{
		web:                             always + ",app=web",
		pods + "/free":                  "app=web",
		pods + "/kept":                  always + ",app=db",
		pods + "/sometimes":             "resourcetemplate.karmada.io/deletion-protected=Sometimes,app=cache",
		"/api/v1/namespaces/kept":       always,
		"/api/v1/namespaces/free":       "",
		"/apis/x.io/v1/gadgets/g":       always,
		"/api/v1/namespaces/b/pods/one": "",
	}
	cases := map[string]struct {
		reason string
		method string
		path   string
		body   string
		asked  []string // of the member
		want   string   // in the refusal; "" is passed on
	}{
		"Delete":      {"What is not protected goes, after a look.", "DELETE", pods + "/free", "", []string{"GET " + pods + "/free", "DELETE " + pods + "/free"}, ""},
		"Protected":   {"What is protected stays.", "DELETE", web, "", []string{"GET " + web}, `deployments.apps "web" is forbidden: ` + protectedText},
		"OtherValue":  {"One value protects, and no other.", "DELETE", pods + "/sometimes", "", []string{"GET " + pods + "/sometimes", "DELETE " + pods + "/sometimes"}, ""},
		"Cluster":     {"Objects in no namespace are protected, too.", "DELETE", "/apis/x.io/v1/gadgets/g", "", []string{"GET /apis/x.io/v1/gadgets/g"}, `gadgets.x.io "g" is forbidden`},
		"Namespace":   {"So are namespaces.", "DELETE", "/api/v1/namespaces/kept", "", []string{"GET /api/v1/namespaces/kept"}, `namespaces "kept" is forbidden`},
		"Other":       {"Others go.", "DELETE", "/api/v1/namespaces/free", "", []string{"GET /api/v1/namespaces/free", "DELETE /api/v1/namespaces/free"}, ""},
		"DryRun":      {"A trial tells what would be.", "DELETE", web + "?dryRun=All", "", []string{"GET " + web}, protectedText},
		"Encoded":     {"However it is written.", "DELETE", "/apis/apps/v1/namespaces/a/deploy%6Dents/w%65b", "", []string{"GET " + web}, protectedText},
		"Slashes":     {"Or how many slashes there are at its ends.", "DELETE", "//apis/apps/v1/namespaces/a/deployments/web/", "", []string{"GET " + web}, protectedText},
		"Body":        {"Options and query reach the member as they are.", "DELETE", pods + "/free?gracePeriodSeconds=5&x=%2F", `{"propagationPolicy":"Orphan"}`, []string{"GET " + pods + "/free", "DELETE " + pods + "/free?gracePeriodSeconds=5&x=%2F"}, ""},
		"None":        {"The member says that there is none.", "DELETE", pods + "/none", "", []string{"GET " + pods + "/none", "DELETE " + pods + "/none"}, ""},
		"All":         {"A collection with one that is protected stays as a whole.", "DELETE", pods, "", []string{"GET " + pods + "?labelSelector=resourcetemplate.karmada.io%2Fdeletion-protected%3DAlways"}, `pods "kept" is forbidden: ` + protectedText},
		"Some":        {"What is not selected does not matter.", "DELETE", pods + "?labelSelector=app%3Dweb", "", []string{"GET " + pods + "?labelSelector=app%3Dweb%2Cresourcetemplate.karmada.io%2Fdeletion-protected%3DAlways", "DELETE " + pods + "?labelSelector=app%3Dweb"}, ""},
		"SomeKept":    {"What is selected does.", "DELETE", pods + "?labelSelector=app+in+(db,web)", "", []string{"GET " + pods + "?labelSelector=app+in+%28db%2Cweb%29%2Cresourcetemplate.karmada.io%2Fdeletion-protected%3DAlways"}, protectedText},
		"Fields":      {"Fields select, too; nothing else of the query is for the look.", "DELETE", "/api/v1/namespaces/b/pods?fieldSelector=metadata.name%3Done&limit=1&continue=x&watch=1&resourceVersion=3", "", []string{"GET /api/v1/namespaces/b/pods?fieldSelector=metadata.name%3Done&labelSelector=resourcetemplate.karmada.io%2Fdeletion-protected%3DAlways", "DELETE /api/v1/namespaces/b/pods?fieldSelector=metadata.name%3Done&limit=1&continue=x&watch=1&resourceVersion=3"}, ""},
		"BadSelector": {"The member says what is wrong with it.", "DELETE", pods + "?labelSelector=)(", "", []string{"GET " + pods + "?labelSelector=%29%28%2Cresourcetemplate.karmada.io%2Fdeletion-protected%3DAlways"}, "bad selector"},
		"Evict":       {"An eviction deletes a pod.", "POST", pods + "/kept/eviction", `{}`, []string{"GET " + pods + "/kept"}, `pods "kept" is forbidden: ` + protectedText},
		"EvictFree":   {"Others are evicted.", "POST", pods + "/free/eviction", `{"kind":"Eviction"}`, []string{"GET " + pods + "/free", "POST " + pods + "/free/eviction"}, ""},
		"Sub":         {"What is below an object is not the object.", "DELETE", pods + "/kept/proxy/cache", "", []string{"DELETE " + pods + "/kept/proxy/cache"}, ""},
		"NoResource":  {"What is no resource has no label.", "DELETE", "/healthz", "", []string{"DELETE /healthz"}, ""},
		"Read":        {"Reading costs nothing more.", "GET", web, "", []string{"GET " + web}, ""},
		"List":        {"Nor do lists.", "GET", pods, "", []string{"GET " + pods}, ""},
		"Update":      {"What is protected can be changed.", "PUT", web, `{}`, []string{"PUT " + web}, ""},
		"Patch":       {"So the label can be removed.", "PATCH", web, `{}`, []string{"PATCH " + web}, ""},
		"Create":      {"Creating deletes nothing.", "POST", pods, `{}`, []string{"POST " + pods}, ""},
	}
	for name, tc := range cases {
		for _, cluster := range []string{"m", "prefixed"} {
			t.Run(name+"/"+cluster, func(t *testing.T) {
				c := newControl(t)
				s := &store{labels: objects}
				at := ""
				if cluster == "prefixed" {
					at = "/k8s/c-1"
				}
				m := s.member(t, func(server *httptest.Server) {
					server.Config.Handler = http.StripPrefix(at, server.Config.Handler)
				})
				c.join(cluster, m, func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint += at })
				response, body := c.do(c.request(tc.method, cluster, tc.path, strings.NewReader(tc.body)))
				var want []string
				for _, a := range tc.asked {
					method, path, _ := strings.Cut(a, " ")
					want = append(want, method+" "+at+path)
				}
				if diff := cmp.Diff(want, s.asked); diff != "" {
					t.Errorf("%s\nasked of the member (-want +got):\n%s", tc.reason, diff)
				}
				if tc.want == "" {
					if response.StatusCode >= 300 || s.last.Body != tc.body {
						t.Errorf("%s\ngot %d: %s, the member gets %q", tc.reason, response.StatusCode, body, s.last.Body)
					}
					return
				}
				if got := message(t, body); response.StatusCode < 400 || !strings.Contains(got, tc.want) {
					t.Errorf("%s\ngot %d: %s, want %s", tc.reason, response.StatusCode, got, tc.want)
				}
				if strings.Contains(tc.want, protectedText) && response.StatusCode != http.StatusForbidden {
					t.Errorf("a refusal is a 403: %d", response.StatusCode)
				}
			})
		}
	}
}

func TestProtectedAmongAll(t *testing.T) {
	c := newControl(t)
	s := &store{labels: map[string]string{"/api/v1/nodes/n": "resourcetemplate.karmada.io/deletion-protected=Always", "/api/v1/nodes/free": ""}}
	c.join("m", s.member(t))
	c.join("other", (&store{}).member(t))
	response, body := c.do(c.request("DELETE", "*", "/api/v1/nodes/n", nil))
	if response.StatusCode != http.StatusForbidden || !strings.Contains(message(t, body), protectedText) {
		t.Errorf("an object that is looked for in all clusters is protected as well: %d %s", response.StatusCode, body)
	}
	if response, body = c.do(c.request("DELETE", "*", "/api/v1/nodes/free", nil)); response.StatusCode != http.StatusAccepted {
		t.Errorf("others go: %d %s", response.StatusCode, body)
	}
}

// The look is the user's, in the least form that there is.
func TestProtectedIsLookedForAsUser(t *testing.T) {
	c := newControl(t)
	s := &store{labels: map[string]string{"/api/v1/nodes/n": "resourcetemplate.karmada.io/deletion-protected=Always"}}
	c.join("m", s.member(t))
	r := c.request("DELETE", "m", "/api/v1/nodes/n", nil)
	r.Header.Set("Authorization", "Bearer of-the-user")
	r.Header.Set("Impersonate-Extra-Scopes", "all")
	c.do(r)
	got := http.Header{}
	for _, key := range []string{"Accept", "Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Extra-Scopes"} {
		if v := s.last.Header.Values(key); len(v) > 0 {
			got[key] = v
		}
	}
	want := http.Header{
		"Accept":        {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"},
		"Authorization": {"Bearer impersonator-token"}, "Impersonate-User": {"alice"}, "Impersonate-Group": {"dev"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Not to know whether something is protected is not to know that it is not.
func TestProtectionUnknown(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	cases := map[string]struct {
		reason string
		answer func(http.ResponseWriter, *http.Request) bool
		code   int    // 202: passed on
		want   string // in the message
	}{
		"Forbidden": {
			"The user learns which right is missing.", status(403, `{"reason":"Forbidden","message":"nodes \"n\" is forbidden: alice cannot get"}`),
			403, `cannot find out whether nodes/n of cluster m is protected from being deleted: nodes "n" is forbidden: alice cannot get: who deletes through the control plane has to be allowed to read it in the cluster`,
		},
		"Busy":       {"It can be tried again.", status(429, `{"message":"too many"}`), 429, "too many"},
		"Broken":     {"The member's own trouble is said to be that.", status(500, "oops"), 502, "the cluster answers 500: Internal Server Error: try again"},
		"Garbage":    {"Whatever answers there is no API server.", status(200, "<html>"), 502, "something else"},
		"NoStatus":   {"An answer without words.", status(409, ""), 409, "Conflict"},
		"Gone":       {"What is not there can be deleted, as far as we are concerned.", status(404, ""), 202, ""},
		"WriteOnly":  {"What nobody can read has no label that anybody could see.", status(405, ""), 202, ""},
		"Odd":        {"An object is looked at for its labels alone.", status(200, `{"items":"none","metadata":{"labels":{"a":"b"}}}`), 202, ""},
		"NoMetadata": {"What has no metadata has no label.", status(200, `{"kind":"Odd"}`), 202, ""},
		"Redirect": {"It leads past the user's rights.", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return true
		}, 502, "redirects"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newControl(t)
			s := &store{answer: tc.answer}
			c.join("m", s.member(t))
			response, body := c.do(c.request("DELETE", "m", "/api/v1/nodes/n", nil))
			if response.StatusCode != tc.code || tc.want != "" && !strings.Contains(message(t, body), tc.want) {
				t.Errorf("%s\ngot %d %s, want %d %s", tc.reason, response.StatusCode, body, tc.code, tc.want)
			}
			if passed := len(s.asked) == 2; passed != (tc.code == 202) {
				t.Errorf("%s\nasked of the member: %v", tc.reason, s.asked)
			}
		})
	}

	t.Run("Silence", func(t *testing.T) {
		c := newControl(t, func(_ *Options, p *patience) { p.answer = time.Millisecond })
		s := &store{answer: func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }}
		c.join("m", s.member(t))
		if response, body := c.do(c.request("DELETE", "m", "/api/v1/nodes/n", nil)); response.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("a member that does not answer is not waited for for ever: %d %s", response.StatusCode, body)
		}
	})
	t.Run("Unreachable", func(t *testing.T) {
		c := newControl(t)
		c.join("m", nil, nowhere(t))
		if response, body := c.do(c.request("DELETE", "m", "/api/v1/nodes/n", nil)); response.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("it is said what is the matter, as for any request: %d %s", response.StatusCode, body)
		}
	})
}
