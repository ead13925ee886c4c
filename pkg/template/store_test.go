package template

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

func ref(gvk schema.GroupVersionKind, namespace, name, version string) workv1alpha2.ObjectReference {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, ResourceVersion: version}
}

func nameList(all []*unstructured.Unstructured) []string {
	found := []string{}
	for _, u := range all {
		found = append(found, u.GetName())
	}
	slices.Sort(found)
	return found
}

func TestIncompleteOptions(t *testing.T) {
	if _, err := NewStore(Options{}); err == nil {
		t.Error("what is missing is told at once, not by a crash")
	}
}

func TestFollow(t *testing.T) {
	a := newAPI(t, configMaps, roles)
	a.put(object(configMaps, "default", "early"))
	a.put(object(roles, "", "role"))
	s := newTestStore(t, a)
	var heard log
	s.Subscribe(heard.handle)
	s.Follow(configMaps) // before it runs
	start(t, s)
	s.Follow(roles)
	s.Follow(roles)
	s.Follow(schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"})
	eventually(t, "what is there is told of", func() bool { return heard.has("initial ConfigMap early") && heard.has("initial ClusterRole role") })
	eventually(t, "everything is known", func() bool { return s.Synced(configMaps) && s.Synced(roles) })

	a.put(object(configMaps, "default", "late"))
	eventually(t, "what comes is told of", func() bool { return heard.has("added ConfigMap late") })
	late := object(configMaps, "default", "late")
	late.SetLabels(map[string]string{"a": "b"})
	a.put(late)
	eventually(t, "what changes is told of", func() bool { return heard.has("changed ConfigMap late") })
	a.remove(configMaps, "default", "late")
	eventually(t, "what goes is told of", func() bool { return heard.has("gone ConfigMap late") })

	var second log
	unsubscribe := s.Subscribe(second.handle)
	eventually(t, "who comes later hears of all there is", func() bool { return second.has("initial ConfigMap early") && second.has("initial ClusterRole role") })
	unsubscribe()
	a.put(object(configMaps, "default", "last"))
	eventually(t, "others go on", func() bool { return heard.has("added ConfigMap last") })
	if second.has("added ConfigMap last") {
		t.Error("who has left was told")
	}
	if n := a.asked("GET /apis/policy.karmada.io"); n > 0 {
		t.Error("an exempt kind is not even looked for")
	}
}

func TestLateKind(t *testing.T) {
	a := newAPI(t, configMaps)
	s := newTestStore(t, a)
	s.shortest, s.longest = time.Hour, time.Hour // only news can help
	var heard log
	s.Subscribe(heard.handle)
	start(t, s)
	s.Follow(widgets)
	s.Follow(configMaps)
	eventually(t, "a kind that is not served delays no other", func() bool { return s.Synced(configMaps) })
	if s.Synced(widgets) {
		t.Error("it is not served")
	}
	if _, _, err := s.Resource(widgets); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served: %v", err)
	}
	eventually(t, "it was looked for", func() bool { return a.asked("GET /apis/example.com/v1") > 1 })
	a.put(object(widgets, "default", "w"))
	a.serve(widgets, true)
	eventually(t, "it is followed as soon as its definition is there", func() bool { return heard.has("initial Widget w") })
	if _, namespaced, err := s.Resource(widgets); err != nil || !namespaced {
		t.Errorf("namespaced %t, %v", namespaced, err)
	}
}

// Who mistypes a kind selects nothing. What an API server says to such a question
// must not keep a policy from going.
func TestMistypedKind(t *testing.T) {
	a := newAPI(t, configMaps)
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		known := strings.HasPrefix(r.URL.Path, "/api/v1")
		if !known {
			http.Error(w, "no such list", http.StatusInternalServerError)
		}
		return !known
	})
	s := newTestStore(t, a)
	start(t, s)
	for text, kind := range map[string]string{"apps": "Deployment", "a/b/c": "Deployment", "": "Deployment", "zz/": "Thing", "v1": "", "v2": "ConfigMap"} {
		gvk := schema.FromAPIVersionAndKind(text, kind)
		if _, err := s.ListClaimed(t.Context(), gvk, "", "label", "id"); !meta.IsNoMatchError(err) {
			t.Errorf("apiVersion %q, kind %q: %v", text, kind, err)
		}
	}
}

func TestDiscoveryFails(t *testing.T) {
	a := newAPI(t, configMaps, widgets)
	s := newTestStore(t, a)
	s.shortest, s.longest = time.Millisecond, 10*time.Millisecond
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/apis/example.com") {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	start(t, s)
	s.Follow(widgets)
	s.Follow(configMaps)
	eventually(t, "a group that does not answer delays no other", func() bool { return s.Synced(configMaps) })
	_, _, err := s.Resource(widgets)
	if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		t.Errorf("that nobody could tell is not that there is none: %v", err)
	}
	if _, err := s.Get(t.Context(), ref(widgets, "default", "w", "")); err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		t.Errorf("nor for an object: %v", err)
	}
	a.answer(nil)
	eventually(t, "it is followed when the group answers", func() bool { return s.Synced(widgets) })
}

func TestKindGoesAway(t *testing.T) {
	a := newAPI(t, widgets)
	a.put(object(widgets, "default", "w"))
	s := newTestStore(t, a)
	s.shortest, s.longest = time.Millisecond, 10*time.Millisecond
	var heard log
	s.Subscribe(heard.handle)
	start(t, s)
	s.Follow(widgets)
	eventually(t, "it is known", func() bool { return heard.has("initial Widget w") && s.Synced(widgets) })
	a.serve(widgets, false)
	eventually(t, "what is known is not complete any more", func() bool { return !s.Synced(widgets) })
	if _, err := s.Get(t.Context(), ref(widgets, "default", "w", "")); !meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		t.Errorf("a path that is not served does not say that an object is not there: %v", err)
	}
	if heard.has("gone Widget w") {
		t.Error("nobody has said that the object is gone")
	}
	a.serve(widgets, true)
	eventually(t, "it is followed again", func() bool { return s.Synced(widgets) })
	if heard.has("gone Widget w") {
		t.Error("it is still there")
	}
	a.serve(widgets, false)
	eventually(t, "it went again", func() bool { return !s.Synced(widgets) })
	a.remove(widgets, "default", "w")
	a.serve(widgets, true)
	eventually(t, "a list says that the object is gone", func() bool { return heard.has("gone Widget w") })
}

func TestListIsNone(t *testing.T) {
	a := newAPI(t, configMaps)
	a.put(object(configMaps, "default", "c"))
	s := newTestStore(t, a)
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/configmaps" {
			return false
		}
		if r.URL.Query().Get("watch") == "true" {
			http.Error(w, "lists first", http.StatusBadRequest)
		} else {
			reply(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"})
		}
		return true
	})
	start(t, s)
	s.Follow(configMaps)
	eventually(t, "it was listed", func() bool { return a.asked("GET /api/v1/configmaps?") > 1 })
	if s.Synced(configMaps) {
		t.Error("an answer that is no list is taken for an empty one")
	}
	if _, err := s.List(t.Context(), configMaps, "", labels.Everything()); err == nil {
		t.Error("nor may one who asks live take it for one")
	}
}

func TestGet(t *testing.T) {
	a := newAPI(t, configMaps, roles)
	a.put(object(configMaps, "default", "c")) // version 2
	s := newTestStore(t, a)

	u, err := s.Get(t.Context(), ref(configMaps, "default", "c", ""))
	if err != nil || u.GetName() != "c" || u.GetManagedFields() != nil {
		t.Fatalf("before anything is followed it is asked live: %v, %v", u, err)
	}
	start(t, s)
	s.Follow(configMaps)
	eventually(t, "it is known", func() bool { return s.Synced(configMaps) })

	live := func() int { return a.asked("GET /api/v1/namespaces/default/configmaps/") }
	cases := []struct {
		reason     string
		gvk        schema.GroupVersionKind
		ns, name   string
		version    string
		live       int
		found, not bool
	}{
		{"What is known is not asked for.", configMaps, "default", "c", "", 0, true, false},
		{"It is as new as it must be.", configMaps, "default", "c", "2", 0, true, false},
		{"It is newer than it must be.", configMaps, "default", "c", "1", 0, true, false},
		{"It is older than it must be.", configMaps, "default", "c", "10", 1, true, false},
		{"Nobody can tell how old it is.", configMaps, "default", "c", "x", 1, true, false},
		{"That it is not there is asked live.", configMaps, "default", "none", "", 1, false, true},
		{"A namespaced object is in a namespace.", configMaps, "", "c", "", 0, false, true},
		{"One that is not is in none.", roles, "default", "c", "", 0, false, true},
		{"A kind that cannot be followed is not there.", schema.GroupVersionKind{Version: "v1", Kind: "View"}, "default", "c", "", 0, false, false},
	}
	for _, tc := range cases {
		before := live()
		u, err := s.Get(t.Context(), ref(tc.gvk, tc.ns, tc.name, tc.version))
		if (err == nil) != tc.found || (u != nil) != tc.found || apierrors.IsNotFound(err) != tc.not {
			t.Errorf("%s\ngot %v, %v", tc.reason, u, err)
		}
		if got := live() - before; got != tc.live {
			t.Errorf("%s\n%d requests, want %d", tc.reason, got, tc.live)
		}
	}
	if u, known := s.Cached(configMaps, "default", "none"); u != nil || !known {
		t.Errorf("what is not there: %v, known %t", u, known)
	}
	if u, known := s.Cached(roles, "", "r"); u != nil || known {
		t.Errorf("of what is not followed nothing is known: %v, known %t", u, known)
	}
}

func TestWrongAnswer(t *testing.T) {
	a := newAPI(t, configMaps)
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/configmaps/c") {
			reply(w, http.StatusOK, object(configMaps, "default", "other").Object)
			return true
		}
		return false
	})
	if u, err := newTestStore(t, a).Get(t.Context(), ref(configMaps, "default", "c", "")); err == nil {
		t.Errorf("another object is not what was asked for: %v", u)
	}
}

func TestList(t *testing.T) {
	a := newAPI(t, configMaps, roles)
	claimed := object(configMaps, "shop", "claimed")
	claimed.SetLabels(map[string]string{names.PropagationPolicyIDLabel: "1", "app": "web"})
	byCluster := object(configMaps, "bank", "by-cluster")
	byCluster.SetLabels(map[string]string{names.ClusterPropagationPolicyIDLabel: "2"})
	for _, u := range []*unstructured.Unstructured{claimed, byCluster, object(configMaps, "shop", "free"), object(roles, "", "role")} {
		a.put(u)
	}
	s := newTestStore(t, a)
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	check := func(when string) {
		t.Helper()
		cases := []struct {
			reason string
			list   func() ([]*unstructured.Unstructured, error)
			want   []string
		}{
			{"All.", func() ([]*unstructured.Unstructured, error) {
				return s.List(t.Context(), configMaps, "", labels.Everything())
			}, []string{"by-cluster", "claimed", "free"}},
			{"A namespace.", func() ([]*unstructured.Unstructured, error) {
				return s.List(t.Context(), configMaps, "shop", labels.Everything())
			}, []string{"claimed", "free"}},
			{"By labels.", func() ([]*unstructured.Unstructured, error) { return s.List(t.Context(), configMaps, "", web) }, []string{"claimed"}},
			{"A namespace of what has none.", func() ([]*unstructured.Unstructured, error) {
				return s.List(t.Context(), roles, "shop", labels.Everything())
			}, []string{}},
			{"Claimed.", func() ([]*unstructured.Unstructured, error) {
				return s.ListClaimed(t.Context(), configMaps, "shop", names.PropagationPolicyIDLabel, "1")
			}, []string{"claimed"}},
			{"Claimed anywhere.", func() ([]*unstructured.Unstructured, error) {
				return s.ListClaimed(t.Context(), configMaps, "", names.ClusterPropagationPolicyIDLabel, "2")
			}, []string{"by-cluster"}},
			{"Claimed elsewhere.", func() ([]*unstructured.Unstructured, error) {
				return s.ListClaimed(t.Context(), configMaps, "bank", names.PropagationPolicyIDLabel, "1")
			}, []string{}},
			{"Claimed in the other scope.", func() ([]*unstructured.Unstructured, error) {
				return s.ListClaimed(t.Context(), configMaps, "", names.ClusterPropagationPolicyIDLabel, "1")
			}, []string{}},
		}
		for _, tc := range cases {
			got, err := tc.list()
			if err != nil {
				t.Errorf("%s, %s: %v", tc.reason, when, err)
				continue
			}
			if diff := cmp.Diff(tc.want, nameList(got)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tc.reason, when, diff)
			}
			for _, u := range got {
				if u.GetManagedFields() != nil || u.GetKind() == "" {
					t.Errorf("%s, %s: managed fields are stripped, and kinds are there", tc.reason, when)
				}
			}
		}
	}
	check("live")
	start(t, s)
	s.Follow(configMaps)
	s.Follow(roles)
	eventually(t, "all is known", func() bool { return s.Synced(configMaps) && s.Synced(roles) })
	before := a.asked("")
	check("from the cache")
	if n := a.asked("") - before; n > 0 {
		t.Errorf("%d requests for what is known", n)
	}
}

func TestStartTwice(t *testing.T) {
	s := newTestStore(t, newAPI(t))
	start(t, s)
	eventually(t, "it runs", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running
	})
	if err := s.Start(t.Context()); err == nil {
		t.Error("a second start would follow everything twice")
	}
	if !s.NeedLeaderElection() {
		t.Error("who stands by follows nothing")
	}
}
