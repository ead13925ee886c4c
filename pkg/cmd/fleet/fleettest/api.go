package fleettest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// An API is a server of objects in memory.
type API struct {
	types []Type
	// NoTables has it answer with objects where a table is asked for.
	NoTables bool

	mu       sync.Mutex
	extra    func(w http.ResponseWriter, r *http.Request) bool
	objects  []*unstructured.Unstructured
	version  int
	requests []string
	watches  map[*watch]bool
	stopped  chan struct{}
	stop     sync.Once
}

// A watch is one that a client has open.
type watch struct {
	of     Type
	events chan *unstructured.Unstructured
	kinds  chan string
	cut    chan struct{}
}

// NewAPI returns a server that serves those types.
func NewAPI(types ...Type) *API {
	return &API{types: types, watches: make(map[*watch]bool), stopped: make(chan struct{})}
}

// Answer has extra answer before anything else does; what it returns false for is
// answered as before.
func (a *API) Answer(extra func(w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.extra = extra
}

// Add puts objects into it, given as JSON, and tells those who watch.
func (a *API) Add(objects ...string) {
	for _, text := range objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			panic(err) // of a test
		}
		a.put(u)
	}
}

func (a *API) put(u *unstructured.Unstructured) {
	a.mu.Lock()
	a.version++
	u.SetResourceVersion(strconv.Itoa(a.version))
	event := "ADDED"
	at := slices.IndexFunc(a.objects, func(o *unstructured.Unstructured) bool { return same(o, u) })
	if at >= 0 {
		a.objects[at], event = u, "MODIFIED"
	} else {
		a.objects = append(a.objects, u)
	}
	var open []*watch
	for w := range a.watches {
		if w.of.Kind == u.GetKind() {
			open = append(open, w)
		}
	}
	a.mu.Unlock()
	for _, w := range open {
		select {
		case w.kinds <- event:
			w.events <- u
		case <-w.cut:
		case <-a.stopped:
		}
	}
}

func same(x, y *unstructured.Unstructured) bool {
	return x.GroupVersionKind() == y.GroupVersionKind() && x.GetNamespace() == y.GetNamespace() && x.GetName() == y.GetName()
}

// Watches returns how many watches are open.
func (a *API) Watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watches)
}

// Cut ends the watches that are open, as a server does that restarts.
func (a *API) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		close(w.cut)
		delete(a.watches, w)
	}
}

// Stop ends all watches for good.
func (a *API) Stop() { a.stop.Do(func() { close(a.stopped) }) }

// Requests returns the methods and paths that it was asked.
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Objects returns what it has of a kind, as namespace/name.
func (a *API) Objects(kind string) []*unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*unstructured.Unstructured
	for _, o := range a.objects {
		if o.GetKind() == kind {
			found = append(found, o.DeepCopy())
		}
	}
	return found
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	extra := a.extra
	a.mu.Unlock()
	if extra != nil && extra(w, r) {
		return
	}
	switch segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		a.discover(w, r.URL.Path == "/api")
	case segments[0] == "api" && len(segments) >= 2:
		a.serve(w, r, "", segments[1], segments[2:])
	case segments[0] == "apis" && len(segments) >= 3:
		a.serve(w, r, segments[1], segments[2], segments[3:])
	default:
		missing(w)
	}
}

// missing is what an API server says to a path that it does not know.
func missing(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func (a *API) discover(w http.ResponseWriter, core bool) {
	w.Header().Set("Content-Type", "application/json")
	if core {
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, t := range a.types {
		if t.Group == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == t.Group }) {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: t.groupVersion(), Version: t.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: t.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	answer(w, list)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, group, version string, path []string) {
	served := slices.ContainsFunc(a.types, func(t Type) bool { return t.Group == group && t.Version == version })
	if served && len(path) == 0 {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
		for _, t := range a.types {
			if t.Group != group || t.Version != version {
				continue
			}
			list.GroupVersion = t.groupVersion()
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: t.Resource, SingularName: strings.ToLower(t.Kind), Namespaced: t.Namespaced, Kind: t.Kind, ShortNames: t.Short,
				Verbs: metav1.Verbs{"get", "list", "watch", "create", "patch", "update", "delete"},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		answer(w, list)
		return
	}
	namespace := ""
	if len(path) > 2 && path[0] == "namespaces" {
		namespace, path = path[1], path[2:]
	}
	at := slices.IndexFunc(a.types, func(t Type) bool {
		return len(path) > 0 && t.Group == group && t.Version == version && t.Resource == path[0]
	})
	if at < 0 || len(path) > 2 {
		missing(w)
		return
	}
	t, name := a.types[at], ""
	if len(path) == 2 {
		name = path[1]
	}
	switch {
	case r.Method == http.MethodPost:
		a.create(w, r, namespace)
	case r.Method == http.MethodPatch:
		a.patch(w, r, t, namespace, name)
	case name != "":
		a.get(w, r, t, namespace, name)
	case r.URL.Query().Get("watch") == "true":
		a.watch(w, r, t, namespace)
	default:
		a.list(w, r, t, namespace)
	}
}

func (a *API) find(t Type, namespace, name string) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.objects {
		if o.GetKind() == t.Kind && o.GetNamespace() == namespace && o.GetName() == name {
			return o.DeepCopy()
		}
	}
	return nil
}

func (a *API) get(w http.ResponseWriter, r *http.Request, t Type, namespace, name string) {
	o := a.find(t, namespace, name)
	if o == nil {
		notFound(w, t, name)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if a.wantsTable(r) {
		answer(w, table(r, []*unstructured.Unstructured{o}, o.GetResourceVersion(), "", true))
		return
	}
	answer(w, o.Object)
}

func notFound(w http.ResponseWriter, t Type, name string) {
	resource := t.Resource
	if t.Group != "" {
		resource += "." + t.Group
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	answer(w, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": http.StatusNotFound, "reason": "NotFound",
		"message": fmt.Sprintf("%s %q not found", resource, name),
		"details": map[string]any{"name": name, "group": t.Group, "kind": t.Resource},
	})
}

func (a *API) create(w http.ResponseWriter, r *http.Request, namespace string) {
	u := &unstructured.Unstructured{}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = u.UnmarshalJSON(body)
	}
	if err != nil {
		Status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	u.SetNamespace(namespace)
	if r.URL.Query().Get("dryRun") == "" {
		a.put(u)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	answer(w, u.Object)
}

func (a *API) patch(w http.ResponseWriter, r *http.Request, t Type, namespace, name string) {
	o := a.find(t, namespace, name)
	if o == nil {
		notFound(w, t, name)
		return
	}
	old, err := json.Marshal(o.Object)
	if err == nil {
		var body, changed []byte
		if body, err = io.ReadAll(r.Body); err == nil {
			changed, err = jsonpatch.MergePatch(old, body)
		}
		if err == nil {
			err = o.UnmarshalJSON(changed)
		}
	}
	if err != nil {
		Status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	a.put(o)
	w.Header().Set("Content-Type", "application/json")
	answer(w, o.Object)
}

func (a *API) list(w http.ResponseWriter, r *http.Request, t Type, namespace string) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		Status(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	named, _ := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
	a.mu.Lock()
	var items []*unstructured.Unstructured
	for _, o := range a.objects {
		if o.GetKind() == t.Kind && (namespace == "" || o.GetNamespace() == namespace) &&
			selector.Matches(labels.Set(o.GetLabels())) && (named == "" || o.GetName() == named) {
			items = append(items, o)
		}
	}
	version := strconv.Itoa(a.version)
	a.mu.Unlock()

	limit, _ := strconv.Atoi(query.Get("limit"))
	from, _ := strconv.Atoi(query.Get("continue"))
	items, more := items[min(from, len(items)):], ""
	if limit > 0 && len(items) > limit {
		items, more = items[:limit], strconv.Itoa(from+limit)
	}
	w.Header().Set("Content-Type", "application/json")
	if a.wantsTable(r) {
		answer(w, table(r, items, version, more, true))
		return
	}
	list := map[string]any{
		"apiVersion": t.groupVersion(), "kind": t.Kind + "List",
		"metadata": map[string]any{"resourceVersion": version, "continue": more},
	}
	objects := make([]any, 0, len(items))
	for _, o := range items {
		objects = append(objects, o.Object)
	}
	list["items"] = objects
	answer(w, list)
}

func (a *API) watch(w http.ResponseWriter, r *http.Request, t Type, namespace string) {
	mine := &watch{of: t, events: make(chan *unstructured.Unstructured), kinds: make(chan string), cut: make(chan struct{})}
	a.mu.Lock()
	a.watches[mine] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.watches[mine] {
			delete(a.watches, mine)
			close(mine.cut)
		}
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for first := true; ; {
		select {
		case <-r.Context().Done():
			return
		case <-mine.cut:
			return
		case <-a.stopped:
			return
		case kind := <-mine.kinds:
			u := <-mine.events
			if namespace != "" && u.GetNamespace() != namespace {
				continue
			}
			var shown any = u.Object
			if a.wantsTable(r) {
				shown = table(r, []*unstructured.Unstructured{u}, u.GetResourceVersion(), "", first)
			}
			first = false
			answer(w, map[string]any{"type": kind, "object": shown})
			_ = flush.Flush()
		}
	}
}

func (a *API) wantsTable(r *http.Request) bool {
	return !a.NoTables && strings.Contains(r.Header.Get("Accept"), "as=Table")
}

// table is what API servers make of objects for people.
func table(r *http.Request, items []*unstructured.Unstructured, version, more string, columns bool) any {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}
	t.ResourceVersion, t.Continue = version, more
	if columns {
		t.ColumnDefinitions = []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name"}, {Name: "Ready", Type: "string"}, {Name: "Node", Type: "string", Priority: 1},
		}
	}
	for _, o := range items {
		ready, _, _ := unstructured.NestedString(o.Object, "status", "ready")
		if ready == "" {
			ready = "1/1"
		}
		row := metav1.TableRow{Cells: []any{o.GetName(), ready, "node1"}}
		shown := map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.Object["metadata"]}
		if r.URL.Query().Get("includeObject") == "Object" {
			shown = o.Object
		}
		row.Object.Raw, _ = json.Marshal(shown) // cannot fail: it came as JSON
		t.Rows = append(t.Rows, row)
	}
	return t
}
