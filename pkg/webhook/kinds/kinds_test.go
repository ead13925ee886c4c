package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

var errBoom = errors.New("boom")

// A server serves kinds.
type server struct {
	lists  map[string][]metav1.APIResource // by group and version
	groups []*metav1.APIGroup
	err    error
	block  chan struct{} // an answer waits for it, if there is one
	begun  chan struct{} // closed when the first answer waits

	mu    sync.Mutex
	asked int
}

func (s *server) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.mu.Lock()
	if s.asked++; s.asked == 1 && s.begun != nil {
		close(s.begun)
	}
	block := s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lists []*metav1.APIResourceList
	for gv, resources := range s.lists { // in any order, as it comes
		lists = append(lists, &metav1.APIResourceList{GroupVersion: gv, APIResources: resources})
	}
	return s.groups, lists, s.err
}

func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func resource(kind, name string, namespaced bool, verbs ...string) metav1.APIResource {
	if len(verbs) == 0 {
		verbs = []string{"create", "delete", "get", "list", "watch"}
	}
	return metav1.APIResource{Kind: kind, Name: name, Namespaced: namespaced, Verbs: verbs}
}

func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: versions[0]}}
	for _, v := range slices.Sorted(slices.Values(versions)) {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	return g
}

// newServer returns one that serves what most do, and a kind of two versions.
func newServer() *server {
	return &server{
		lists: map[string][]metav1.APIResource{
			"v1": {
				resource("ConfigMap", "configmaps", true), resource("Namespace", "namespaces", false), resource("Event", "events", true),
				resource("Pod", "pods", true), resource("Pod", "pods/status", true, "get", "patch"), resource("Binding", "bindings", true, "create"),
			},
			"apps/v1":   {resource("Deployment", "deployments", true), resource("Scale", "deployments/scale", true, "get")},
			"x.io/v1":   {resource("Gadget", "gadgets", true), resource("Wheel", "wheels", false)},
			"x.io/v2":   {resource("Gadget", "gadgets", true)},
			"rbac.k/v1": {resource("ClusterRole", "clusterroles", false)},
			"metrics/v1": {
				resource("Pod", "pods", true, "get", "list"),
			},
			"policy.karmada.io/v1alpha1": {resource("PropagationPolicy", "propagationpolicies", true)},
		},
		groups: []*metav1.APIGroup{group("", "v1"), group("apps", "v1"), group("x.io", "v2", "v1"), group("rbac.k", "v1"), group("metrics", "v1"), group("policy.karmada.io", "v1alpha1")},
	}
}

// A clock can be moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newKinds(s *server) (*Kinds, *clock) {
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	k := New(s)
	k.now = c.now
	k.patience = time.Minute
	return k, c
}

func selector(apiVersion, kind string, change ...func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
	r := policyv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind}
	for _, f := range change {
		f(&r)
	}
	return r
}

func in(namespace string) func(*policyv1alpha1.ResourceSelector) {
	return func(r *policyv1alpha1.ResourceSelector) { r.Namespace = namespace }
}

func TestWarnings(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string // of the policy
		selector  policyv1alpha1.ResourceSelector
		change    func(*server)
		want      string // without what selector it is
	}{
		"Installed":        {reason: "Nothing to say.", namespace: "shop", selector: selector("apps/v1", "Deployment", in("shop"))},
		"InstalledCluster": {reason: "Nor about a policy of cluster scope.", selector: selector("apps/v1", "Deployment")},
		"ClusterScoped":    {reason: "Which may select what has cluster scope.", selector: selector("rbac.k/v1", "ClusterRole")},
		"OldVersion":       {reason: "Any version that is served will do.", selector: selector("x.io/v1", "Gadget")},
		"NotInstalled": {
			reason: "The kind may come later; until then nothing happens.", selector: selector("y.io/v1", "Widget"),
			want: "y.io/v1 Widget is not installed in the control plane: this selects nothing until it is",
		},
		"WrongVersion": {
			reason: "A version that is not served is named with one that is.", selector: selector("x.io/v1beta1", "Gadget"),
			want: "x.io/v1beta1 Gadget is not installed in the control plane: this selects nothing until it is; did you mean x.io/v2 Gadget?",
		},
		"WrongGroup": {
			reason: "So is a kind in the wrong group.", selector: selector("v1", "Deployment"),
			want: "v1 Deployment is not installed in the control plane: this selects nothing until it is; did you mean apps/v1 Deployment?",
		},
		"WrongCase": {
			reason: "Kinds are written in one way.", selector: selector("apps/v1", "deployment"),
			want: "apps/v1 deployment is not installed in the control plane: this selects nothing until it is; did you mean apps/v1 Deployment?",
		},
		"Plural": {
			reason: "The resource is not the kind.", selector: selector("v1", "configmaps"),
			want: "v1 configmaps is not installed in the control plane: this selects nothing until it is; did you mean v1 ConfigMap?",
		},
		"OwnGroupFirst": {
			reason: "Of two kinds of that name the one of the group is meant.", selector: selector("x.io/v9", "Pod"),
			change: func(s *server) {
				s.lists["x.io/v2"] = append(s.lists["x.io/v2"], resource("Pod", "pods", true))
			},
			want: "x.io/v9 Pod is not installed in the control plane: this selects nothing until it is; did you mean x.io/v2 Pod?",
		},
		"NoGoodHint": {
			reason: "What cannot be propagated is never what is meant.", selector: selector("apps/v1", "Binding"),
			want: "apps/v1 Binding is not installed in the control plane: this selects nothing until it is",
		},
		"NoVersion": {
			reason: "What is no version at all is shown as it is.", selector: selector("a/b/c", "Deployment"),
			want: "a/b/c Deployment is not installed in the control plane: this selects nothing until it is; did you mean apps/v1 Deployment?",
		},
		"SubResource": {
			reason: "The kind of a sub-resource cannot be selected.", selector: selector("apps/v1", "Scale"),
			want: "apps/v1 Scale is not installed in the control plane: this selects nothing until it is",
		},
		"WrongScope": {
			reason: "A policy in a namespace never sees what is in none.", namespace: "shop", selector: selector("rbac.k/v1", "ClusterRole", in("shop")),
			want: "rbac.k/v1 ClusterRole is cluster-scoped, and a policy in a namespace selects in its namespace alone: use a policy of cluster scope",
		},
		"NamespaceKind": {
			reason: "Namespaces have cluster scope as well.", namespace: "shop", selector: selector("v1", "Namespace", in("shop")),
			want: "v1 Namespace is cluster-scoped, and a policy in a namespace selects in its namespace alone: use a policy of cluster scope",
		},
		"NamespaceOfNone": {
			reason: "What is in no namespace is not in that one.", selector: selector("x.io/v1", "Wheel", in("shop")),
			want: `x.io/v1 Wheel is cluster-scoped and in no namespace: this selects nothing while it says namespace "shop"`,
		},
		"Exempt": {
			reason: "Our own machinery stays here.", selector: selector("policy.karmada.io/v1alpha1", "PropagationPolicy"),
			want: "policy.karmada.io/v1alpha1 PropagationPolicy is never propagated: this selects nothing",
		},
		"NotPropagatable": {
			reason: "What cannot be listed cannot be followed.", selector: selector("v1", "Binding"),
			want: "v1 Binding cannot be listed, watched and deleted, and so not be propagated: this selects nothing",
		},
		"GroupFails": {
			reason: "Of what does not answer nothing is known.", selector: selector("metrics/v1", "Odd"),
			change: func(s *server) {
				delete(s.lists, "metrics/v1")
				s.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics", Version: "v1"}: errBoom}}
			},
		},
		"OtherGroupFails": {
			reason: "What does answer is known.", selector: selector("y.io/v1", "Widget"),
			change: func(s *server) {
				s.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics", Version: "v1"}: errBoom}}
			},
			want: "y.io/v1 Widget is not installed in the control plane: this selects nothing until it is",
		},
		"Fails": {
			reason: "Without an answer there is nothing to say.", selector: selector("y.io/v1", "Widget"),
			change: func(s *server) { s.err = errBoom },
		},
		"OddVersion": {
			reason: "What the server calls oddly is nobody's concern.", selector: selector("apps/v1", "Deployment"),
			change: func(s *server) { s.lists["a/b/c"] = []metav1.APIResource{resource("Odd", "odds", true)} },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			if c.change != nil {
				c.change(s)
			}
			k, _ := newKinds(s)
			var want []string
			if c.want != "" {
				want = []string{"spec.resourceSelectors[1]: " + c.want}
			}
			selectors := []policyv1alpha1.ResourceSelector{selector("v1", "ConfigMap"), c.selector}
			if diff := cmp.Diff(want, k.Warnings(t.Context(), c.namespace, selectors)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestManyWarnings(t *testing.T) {
	k, _ := newKinds(newServer())
	var selectors []policyv1alpha1.ResourceSelector
	for i := range 12 {
		selectors = append(selectors, selector("y.io/v1", fmt.Sprintf("Kind%d", i)))
	}
	got := k.Warnings(t.Context(), "", selectors)
	if len(got) != 11 || got[10] != "spec.resourceSelectors: 2 more of them select nothing" {
		t.Errorf("an API server passes on so much, and no more: %q", got)
	}
	for _, w := range got {
		if len(w) > 256 {
			t.Errorf("an API server cuts a warning after 256 bytes: %s", w)
		}
	}
}

func TestNobodyToAsk(t *testing.T) {
	var k *Kinds
	if got := k.Warnings(t.Context(), "", []policyv1alpha1.ResourceSelector{selector("y.io/v1", "Widget")}); got != nil {
		t.Errorf("who knows nothing warns of nothing: %q", got)
	}
	if _, err := k.Namespaced(t.Context()); err == nil {
		t.Error("and says so when asked")
	}
	h := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied("no") })
	if r := k.Warn(h).Handle(t.Context(), admission.Request{}); r.Allowed {
		t.Error("nor is there anything in the way of others")
	}
}

// What is asked of the server, and when.
func TestAsking(t *testing.T) {
	s := newServer()
	k, c := newKinds(s)
	warned := func(kind string) bool {
		return len(k.Warnings(t.Context(), "", []policyv1alpha1.ResourceSelector{selector("y.io/v1", kind)})) > 0
	}
	fine := func() bool {
		return len(k.Warnings(t.Context(), "", []policyv1alpha1.ResourceSelector{selector("apps/v1", "Deployment")})) == 0
	}
	step := func(reason string, ok bool, asked int) {
		t.Helper()
		if got := s.times(); !ok || got != asked {
			t.Errorf("%s: as expected %v, asked %d times, want %d", reason, ok, got, asked)
		}
	}

	if s.times() != 0 {
		t.Error("nobody is asked before there is a question: the API server may not be there yet")
	}
	step("a policy without selectors is no question", k.Warnings(t.Context(), "", nil) == nil, 0)
	step("the first question asks", fine(), 1)
	step("the second does not", fine(), 1)
	c.pass(lifetime - time.Nanosecond)
	step("nor do others for a while", fine(), 1)
	c.pass(time.Nanosecond)
	step("after a while they do", fine(), 2)

	c.pass(recent)
	step("a kind that is not known is asked about at once", warned("Widget"), 3)
	step("but not with each policy", warned("Widget") && warned("Gizmo"), 3)
	s.change(func() { s.lists["y.io/v1"] = []metav1.APIResource{resource("Widget", "widgets", true)} })
	c.pass(recent)
	step("one that has come is found", !warned("Widget"), 4)

	s.change(func() { s.err = errBoom })
	c.pass(recent)
	step("a failure is no warning", !warned("Gizmo"), 5)
	step("nor is it tried again with each policy", !warned("Gizmo"), 5)
	step("what was known still is", fine(), 5)
	c.pass(pause)
	step("it is tried again after a pause", !warned("Gizmo"), 6)
	s.change(func() { s.err = nil })
	c.pass(pause)
	step("and once it answers again, there are warnings", warned("Gizmo"), 7)
}

// Many ask at once when a plane starts: one of them asks the server.
func TestAskingOnce(t *testing.T) {
	s := newServer()
	s.block, s.begun = make(chan struct{}), make(chan struct{})
	k, _ := newKinds(s)
	selectors := []policyv1alpha1.ResourceSelector{selector("apps/v1", "deployment")}
	answers := make(chan int, 8)
	for range cap(answers) {
		go func() { answers <- len(k.Warnings(context.WithoutCancel(t.Context()), "", selectors)) }()
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	<-s.begun // somebody has the turn
	if got := k.Warnings(gone, "", selectors); got != nil {
		t.Errorf("who has gone does not wait: %q", got)
	}
	close(s.block)
	for range cap(answers) {
		if n := <-answers; n != 1 {
			t.Errorf("%d warnings, want 1: everybody gets the answer", n)
		}
	}
	if n := s.times(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestAskingInTime(t *testing.T) {
	s := newServer()
	s.block = make(chan struct{}) // for ever
	k, _ := newKinds(s)
	k.patience = time.Nanosecond
	if got := k.Warnings(t.Context(), "", []policyv1alpha1.ResourceSelector{selector("y.io/v1", "Widget")}); got != nil {
		t.Errorf("a server that does not answer in time holds up nobody, and there is no warning: %q", got)
	}
}

func TestNamespaced(t *testing.T) {
	s := newServer()
	k, c := newKinds(s)
	get := func() ([]string, error) {
		kinds, err := k.Namespaced(t.Context())
		var all []string
		for _, gvr := range kinds {
			all = append(all, strings.TrimPrefix(gvr.GroupVersion().String()+"/"+gvr.Resource, "/"))
		}
		slices.Sort(all)
		return all, err
	}
	want := []string{"apps/v1/deployments", "policy.karmada.io/v1alpha1/propagationpolicies", "v1/configmaps", "v1/events", "v1/pods", "x.io/v2/gadgets"}
	got, err := get()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; every kind once, in its preferred version, if it can be listed and deleted (-want +got):\n%s", err, diff)
	}

	c.pass(recent)
	s.change(func() {
		delete(s.lists, "apps/v1")
		s.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "apps", Version: "v1"}: errBoom}}
	})
	got, err = get()
	if diff := cmp.Diff(want[1:], got); diff != "" || !discovery.IsGroupDiscoveryFailedError(err) {
		t.Errorf("%v; those that are known come with an error that says which are not (-want +got):\n%s", err, diff)
	}

	c.pass(recent)
	s.change(func() { s.err = errBoom })
	if _, err = get(); !errors.Is(err, errBoom) {
		t.Errorf("got %v: what may have changed is not believed", err)
	}
}

func TestWarn(t *testing.T) {
	const selects = `{"metadata":{"name":"p"},"spec":{"resourceSelectors":[{"apiVersion":"rbac.k/v1","kind":"ClusterRole"}]}}`
	yes, no := admission.Allowed("").WithWarnings("theirs"), admission.Denied("no")
	warning := "spec.resourceSelectors[0]: rbac.k/v1 ClusterRole is cluster-scoped, and a policy in a namespace selects in its namespace alone: use a policy of cluster scope"
	cases := map[string]struct {
		reason   string
		answer   admission.Response
		request  admissionv1.AdmissionRequest
		old, now string
		want     []string
	}{
		"Create": {
			reason: "The warning comes beside what the handler says.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "CREATE", Namespace: "shop"}, now: selects,
			want: []string{"theirs", warning},
		},
		"OtherScope": {
			reason: "A policy of cluster scope may select that.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "CREATE"}, now: selects,
			want: []string{"theirs"},
		},
		"Refused": {
			reason: "Who is refused has other worries.", answer: no,
			request: admissionv1.AdmissionRequest{Operation: "CREATE", Namespace: "shop"}, now: selects,
		},
		"Update": {
			reason: "Whoever changes the spec is told again.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "UPDATE", Namespace: "shop"},
			old:     strings.Replace(selects, `{"resourceSelectors"`, `{"priority":1,"resourceSelectors"`, 1), now: selects,
			want: []string{"theirs", warning},
		},
		"SameSpec": {
			reason: "A label or a finalizer changes nothing about that.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "UPDATE", Namespace: "shop"},
			old:     strings.Replace(selects, `"name":"p"`, `"name":"p","labels":{"a":"b"}`, 1), now: selects,
			want: []string{"theirs"},
		},
		"Deleted": {
			reason: "What goes selects nothing anyway.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "UPDATE", Namespace: "shop"},
			old:     `{}`, now: strings.Replace(selects, `"name":"p"`, `"name":"p","deletionTimestamp":"2026-01-02T03:04:05Z"`, 1),
			want: []string{"theirs"},
		},
		"Deletion": {
			reason: "Nor is there anything to say when it is deleted.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "DELETE", Namespace: "shop"}, old: selects,
			want: []string{"theirs"},
		},
		"Status": {
			reason: "A sub-resource is not the policy.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "UPDATE", SubResource: "status", Namespace: "shop"}, now: selects,
			want: []string{"theirs"},
		},
		"NoSelectors": {
			reason: "An override policy without any means everything.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "CREATE", Namespace: "shop"}, now: `{"spec":{"overrideRules":[]}}`,
			want: []string{"theirs"},
		},
		"Unreadable": {
			reason: "It is for the handler to say that.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "CREATE", Namespace: "shop"}, now: `{"spec":{"resourceSelectors":{}}}`,
			want: []string{"theirs"},
		},
		"NoObject": {
			reason: "So is that.", answer: yes,
			request: admissionv1.AdmissionRequest{Operation: "CREATE", Namespace: "shop"}, now: `[]`,
			want: []string{"theirs"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k, _ := newKinds(newServer())
			h := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				r := c.answer
				r.Warnings = slices.Clone(r.Warnings)
				return r
			})
			c.request.Object.Raw, c.request.OldObject.Raw = []byte(c.now), []byte(c.old)
			got := k.Warn(h).Handle(t.Context(), admission.Request{AdmissionRequest: c.request})
			if got.Allowed != c.answer.Allowed {
				t.Error("the handler decides")
			}
			if diff := cmp.Diff(c.want, got.Warnings); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// FuzzWarn: whatever is sent, the handler's answer stands.
func FuzzWarn(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"name":"p"},"spec":{"resourceSelectors":[{"apiVersion":"rbac.k/v1","kind":"ClusterRole"},{"kind":"a/b"},{"apiVersion":"//"}]}}`,
		`{"spec":null}`, `{"metadata":{"deletionTimestamp":"x"}}`, `null`, `[`, `{"spec":{"resourceSelectors":[null]}}`,
	} {
		f.Add([]byte(s), []byte(`{"spec":{}}`), "shop")
	}
	k, _ := newKinds(newServer())
	h := k.Warn(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	f.Fuzz(func(t *testing.T, now, was []byte, namespace string) {
		for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: op, Namespace: namespace}}
			req.Object.Raw, req.OldObject.Raw = now, was
			if !h.Handle(t.Context(), req).Allowed {
				t.Error("a warning refuses nothing")
			}
		}
	})
}
