package template

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	widgets    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	roles      = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	definition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// paths are where the API server has the objects of a kind, served or not.
var paths = map[schema.GroupVersionKind]string{
	configMaps: "/api/v1/configmaps",
	widgets:    "/apis/example.com/v1/widgets",
	roles:      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	definition: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}

// An api is an API server of a few kinds that does what a test tells it.
type api struct {
	*httptest.Server

	mu       sync.Mutex
	served   map[schema.GroupVersionKind]bool
	version  int
	objects  map[schema.GroupVersionKind]map[string]*unstructured.Unstructured
	events   map[schema.GroupVersionKind][]event
	changed  chan struct{}
	requests []string
	// instead, unless nil, answers a request; false leaves it to the server.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

type event struct {
	version int
	kind    string
	object  *unstructured.Unstructured
}

func newAPI(t *testing.T, served ...schema.GroupVersionKind) *api {
	t.Helper()
	a := &api{
		served: map[schema.GroupVersionKind]bool{definition: true}, version: 1, changed: make(chan struct{}),
		objects: map[schema.GroupVersionKind]map[string]*unstructured.Unstructured{}, events: map[schema.GroupVersionKind][]event{},
	}
	for _, gvk := range served {
		a.served[gvk] = true
	}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *api) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

// serve makes a kind be served, with its definition, or not any more.
func (a *api) serve(gvk schema.GroupVersionKind, served bool) {
	a.set(func() { a.served[gvk] = served })
	if served {
		a.put(object(definition, "", strings.ToLower(gvk.Kind)))
	} else {
		a.remove(definition, "", strings.ToLower(gvk.Kind))
	}
}

// put makes an object be there, or be another, and remove makes it go.
func (a *api) put(u *unstructured.Unstructured) {
	a.set(func() {
		gvk, u := u.GroupVersionKind(), u.DeepCopy()
		a.version++
		u.SetResourceVersion(strconv.Itoa(a.version))
		kind := "ADDED"
		if a.objects[gvk] == nil {
			a.objects[gvk] = map[string]*unstructured.Unstructured{}
		}
		key := u.GetNamespace() + "/" + u.GetName()
		if a.objects[gvk][key] != nil {
			kind = "MODIFIED"
		}
		a.objects[gvk][key] = u
		a.events[gvk] = append(a.events[gvk], event{a.version, kind, u})
	})
}

func (a *api) remove(gvk schema.GroupVersionKind, namespace, name string) {
	a.set(func() {
		key := namespace + "/" + name
		u := a.objects[gvk][key]
		if u == nil {
			return
		}
		a.version++
		u = u.DeepCopy()
		u.SetResourceVersion(strconv.Itoa(a.version))
		delete(a.objects[gvk], key)
		a.events[gvk] = append(a.events[gvk], event{a.version, "DELETED", u})
	})
}

func (a *api) answer(f func(http.ResponseWriter, *http.Request) bool) {
	a.set(func() { a.instead = f })
}

// asked counts the requests so far that begin with prefix.
func (a *api) asked(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody"}})
	return u
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	instead := a.instead
	a.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	for gvk, path := range paths {
		a.mu.Lock()
		served := a.served[gvk]
		a.mu.Unlock()
		namespace, name, ok := partsOf(r.URL.Path, path)
		switch {
		case !ok || !served:
		case name != "":
			a.get(w, gvk, namespace, name)
			return
		case r.URL.Query().Get("watch") == "true":
			a.watch(w, r, gvk)
			return
		default:
			a.list(w, r, gvk, namespace)
			return
		}
	}
	a.discover(w, r)
}

// partsOf takes the path of an object, or of a list, apart.
func partsOf(path, list string) (namespace, name string, ok bool) {
	at := strings.LastIndex(list, "/")
	base, resource := list[:at], list[at:]
	rest, ok := strings.CutPrefix(path, base)
	if !ok {
		return "", "", false
	}
	if after, found := strings.CutPrefix(rest, "/namespaces/"); found {
		namespace, rest, _ = strings.Cut(after, "/")
		rest = "/" + rest
	}
	rest, ok = strings.CutPrefix(rest, resource)
	return namespace, strings.TrimPrefix(rest, "/"), ok
}

func (a *api) discover(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for gvk, served := range a.served {
		path := paths[gvk]
		if at := strings.LastIndex(path, "/"); served && path[:at] == r.URL.Path {
			list.GroupVersion = gvk.GroupVersion().String()
			verbs := metav1.Verbs{"get", "list", "watch", "delete", "patch"}
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: path[at+1:] + "/status", Kind: gvk.Kind, Verbs: metav1.Verbs{"get", "patch"}},
				metav1.APIResource{Name: path[at+1:], Kind: gvk.Kind, Namespaced: gvk == configMaps || gvk == widgets, Verbs: verbs},
				metav1.APIResource{Name: "views", Kind: "View", Verbs: metav1.Verbs{"get", "list"}},
			)
		}
	}
	if list.APIResources == nil {
		http.Error(w, "404 page not found", http.StatusNotFound) // as for any path that is not served
		return
	}
	reply(w, http.StatusOK, list)
}

func (a *api) get(w http.ResponseWriter, gvk schema.GroupVersionKind, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.objects[gvk][namespace+"/"+name]; u != nil {
		reply(w, http.StatusOK, u.Object)
		return
	}
	s := apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name).Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	reply(w, http.StatusNotFound, s)
}

func (a *api) list(w http.ResponseWriter, r *http.Request, gvk schema.GroupVersionKind, namespace string) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(a.objects[gvk])) {
		u := a.objects[gvk][key]
		if (namespace == "" || u.GetNamespace() == namespace) && selector.Matches(labels.Set(u.GetLabels())) {
			items = append(items, u.Object)
		}
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	reply(w, http.StatusOK, map[string]any{
		"apiVersion": apiVersion, "kind": kind + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)},
	})
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, gvk schema.GroupVersionKind) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		http.Error(w, "lists first", http.StatusBadRequest) // an older server
		return
	}
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	metadataOnly := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	for {
		a.mu.Lock()
		served, changed := a.served[gvk], a.changed
		var news []event
		for _, e := range a.events[gvk] {
			if e.version > from {
				news, from = append(news, e), e.version
			}
		}
		a.mu.Unlock()
		for _, e := range news {
			u := e.object.DeepCopy()
			if metadataOnly {
				u.SetAPIVersion("meta.k8s.io/v1")
				u.SetKind("PartialObjectMetadata")
			}
			if err := json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": u.Object}); err != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		if !served {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// newTestStore makes a Store of an API server, which is not started.
func newTestStore(t *testing.T, a *api) *Store {
	t.Helper()
	config := &rest.Config{Host: a.URL}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStore(Options{
		Dynamic: d, Discovery: disco, Metadata: m,
		Exempt: func(gvk schema.GroupVersionKind) bool { return gvk.Group == "policy.karmada.io" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a Store for the length of a test.
func start(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the store ended with %v", err)
		}
	})
}

func eventually(t *testing.T, reason string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so within 30 s: %s", reason)
		case <-tick.C:
		}
	}
}

// A log is what a subscriber was told.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) handle(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what, u := "changed", e.New
	switch {
	case e.New == nil:
		what, u = "gone", e.Old
	case e.Old == nil:
		what = "added"
	}
	if e.Initial {
		what = "initial"
	}
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s", what, e.GVK.Kind, u.GetName()))
}

func (l *log) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.lines, line)
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
