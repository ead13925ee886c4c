package clusterstatus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// A group is one of an aggregated document: fresh unless it is stale.
func group(name, version string, stale bool, resources ...string) apidiscoveryv2.APIGroupDiscovery {
	v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	if stale {
		v.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
	}
	for _, r := range resources {
		plural, kind, _ := strings.Cut(r, ":")
		v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: plural, ResponseKind: &metav1.GroupVersionKind{Kind: kind},
			Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Kind: kind}}},
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{v}}
}

// A discoverer serves discovery documents, and counts what it sends.
type discoverer struct {
	core, groups apidiscoveryv2.APIGroupDiscoveryList
	broken       map[string]int // status by path
	garbage      bool
	legacy       bool
	bodies       int // documents sent in full
	requests     int
}

func (d *discoverer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests++
	if code := d.broken[r.URL.Path]; code != 0 {
		http.Error(w, "broken", code)
		return
	}
	if d.legacy {
		d.serveLegacy(w, r)
		return
	}
	document := map[string]*apidiscoveryv2.APIGroupDiscoveryList{"/api": &d.core, "/apis": &d.groups}[r.URL.Path]
	if document == nil {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(len(body)))
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", discovery.AcceptV2)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	d.bodies++
	if d.garbage {
		body = []byte("<html>")
	}
	_, _ = w.Write(body)
}

func (d *discoverer) serveLegacy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(map[string]string{
		"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":         `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`,
		"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod"},{"name":"pods/log","kind":"Pod"}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment"}]}`,
	}[r.URL.Path]))
}

func newDiscoverer() *discoverer {
	return &discoverer{
		core: apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{group("", "v1", false, "pods:Pod", "nodes:Node")}},
		groups: apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{
			group("apps", "v1", false, "deployments:Deployment"), group("metrics.k8s.io", "v1beta1", false, "nodes:NodeMetrics"),
		}},
	}
}

func TestCatalogue(t *testing.T) {
	all := []string{"apps/v1=deployments:Deployment", "metrics.k8s.io/v1beta1=nodes:NodeMetrics", "v1=nodes:Node,pods:Pod"}
	cases := map[string]struct {
		reason string
		change func(*discoverer) // after a first reading of everything
		later  time.Duration     // until the second reading
		want   []string
		failed []string // parts that are not known
		bodies int      // of the second reading
	}{
		"Unchanged": {"Nothing is sent again when nothing has changed.", func(*discoverer) {}, 0, all, nil, 0},
		"New":       {"Only the document that has changed is sent.", func(d *discoverer) { d.groups.Items = append(d.groups.Items, group("batch", "v1", false, "jobs:Job")) }, 0, append(slices.Clone(all[:1]), "batch/v1=jobs:Job", all[1], all[2]), nil, 1},
		"Stale":     {"A group whose server does not answer is named, not left out in silence.", func(d *discoverer) { d.groups.Items[1] = group("metrics.k8s.io", "v1beta1", true) }, 0, append(slices.Clone(all[:1]), all[2]), []string{"metrics.k8s.io/v1beta1"}, 1},
		"NoGroups":  {"One document that fails says nothing about the other.", func(d *discoverer) { d.broken = map[string]int{"/apis": 503} }, 0, all[2:], []string{"apis"}, 0},
		"NoAnswer":  {"Nor about itself.", func(d *discoverer) { d.broken = map[string]int{"/apis": 503, "/api": 503} }, 0, nil, []string{"api", "apis"}, 0},
		"Garbage":   {"What is no document is an error.", func(d *discoverer) { d.garbage, d.core, d.groups = true, d.groups, d.core }, 0, nil, []string{"api", "apis"}, 2},
		"Gone":      {"A root that is not there has nothing.", func(d *discoverer) { d.broken = map[string]int{"/apis": 404} }, 0, all[2:], nil, 0},
		"Legacy":    {"An old server is asked group by group.", func(d *discoverer) { d.legacy = true }, 0, []string{"apps/v1=deployments:Deployment", "v1=pods:Pod"}, nil, 0},
		"LegacyPart": {"A group of it that fails is named.", func(d *discoverer) {
			d.legacy, d.broken = true, map[string]int{"/apis/apps/v1": 503}
		}, 0, []string{"v1=pods:Pod"}, []string{"apps/v1"}, 0},
		"NotAcceptable": {"A server may say that it knows no such document.", func(d *discoverer) { d.broken = map[string]int{"/api": 406, "/apis": 406} }, 0, nil, []string{"api", "apis"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDiscoverer()
			server := httptest.NewServer(d)
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			var c catalogue
			first := c.read(t.Context(), remoteOf(t, server), client, epoch)
			if diff := cmp.Diff(all, describe(enablements(first, nil))); diff != "" || first.err() != nil {
				t.Fatalf("first reading (-want +got):\n%s\n%v", diff, first.err())
			}
			tc.change(d)
			d.bodies = 0
			got := c.read(t.Context(), remoteOf(t, server), client, epoch.Add(time.Second))
			if diff := cmp.Diff(tc.want, describe(enablements(got, nil))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			var failed []string
			for v := range got.failed {
				failed = append(failed, v.String())
			}
			for r := range got.unknown {
				failed = append(failed, string(r))
			}
			slices.Sort(failed)
			if diff := cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("not known: %s\n(-want +got):\n%s", tc.reason, diff)
			}
			if (got.err() != nil) != (len(failed) > 0) {
				t.Errorf("error %v", got.err())
			}
			if d.bodies != tc.bodies {
				t.Errorf("%d documents were sent, want %d\n%s", d.bodies, tc.bodies, tc.reason)
			}
		})
	}
}

// TestCatalogueLegacy has an old server, which is asked for each group only now
// and then.
func TestCatalogueLegacy(t *testing.T) {
	d := newDiscoverer()
	d.legacy = true
	server := httptest.NewServer(d)
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var c catalogue
	read := func(after time.Duration) int {
		d.requests = 0
		s := c.read(t.Context(), remoteOf(t, server), client, epoch.Add(after))
		if len(s.resources) != 2 {
			t.Errorf("after %s: %v", after, s.err())
		}
		return d.requests
	}
	if n := read(0); n == 0 {
		t.Error("it was not asked")
	}
	if n := read(legacyPeriod - 1); n != 0 {
		t.Errorf("asked %d times too early", n)
	}
	if n := read(legacyPeriod); n == 0 {
		t.Error("it was not asked again")
	}
}
