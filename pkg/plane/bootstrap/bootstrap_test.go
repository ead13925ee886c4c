package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/karmadactl/karmadactl/pkg/apis/crds"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func all(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := All(testServer(), []byte("kubeconfig"))
	return must(t, objects, err)
}

func id(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

func TestObjects(t *testing.T) {
	seen := map[string]bool{}
	var kinds []string
	for _, u := range all(t) {
		key := u.GetKind() + " " + id(u)
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if u.GetName() == "" || u.GetAPIVersion() == "" {
			t.Errorf("%s: %v has no name or no version", key, u.Object)
		}
		if _, err := resourceOf(u); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if namespaced := slices.Contains([]string{"ConfigMap", "Role", "RoleBinding"}, u.GetKind()); namespaced != (u.GetNamespace() != "") {
			t.Errorf("%s: namespace %q", key, u.GetNamespace())
		}
		if ns := u.GetNamespace(); ns != "" && !seen["Namespace "+ns] {
			t.Errorf("%s comes before its namespace", key)
		}
		kinds = append(kinds, u.GetKind())
	}
	if last := slices.Index(kinds, "ConfigMap"); last != len(kinds)-1 {
		t.Errorf("cluster-info is at place %d of %d: whoever reads it may register at once, so all else comes first", last+1, len(kinds))
	}
	if i, j := slices.Index(kinds, "CustomResourceDefinition"), slices.Index(kinds, "ClusterRole"); i < 0 || i > j {
		t.Errorf("definitions begin at %d, access rules at %d", i, j)
	}
}

// What is applied is compared with what the API server answers, in the form that JSON gives it.
func TestObjectsAreAsAnswersAre(t *testing.T) {
	hooks, err := Webhooks(testServer())
	for _, u := range slices.Concat(all(t), AggregatedAPI(32450, []byte("the authority")), must(t, hooks, err)) {
		data, err := u.MarshalJSON()
		var answer unstructured.Unstructured
		if err := answer.UnmarshalJSON(must(t, data, err)); err != nil {
			t.Fatal(err)
		}
		if !holds(answer.Object, u.Object) {
			t.Errorf("%s %s would be updated each time: %s", u.GetKind(), id(u), cmp.Diff(answer.Object, u.Object))
		}
	}
}

func TestNamespaces(t *testing.T) {
	objects, err := Namespaces()
	got := map[string]map[string]string{}
	for _, u := range must(t, objects, err) {
		got[u.GetName()] = u.GetLabels()
	}
	ours := map[string]string{"karmada.io/system": "true"}
	want := map[string]map[string]string{"karmada-system": ours, "karmada-cluster": ours, "kube-public": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces differ (-want +got):\n%s", diff)
	}
}

func TestCRDs(t *testing.T) {
	objects, err := CRDs(testServer())
	var got []string
	for _, u := range must(t, objects, err) {
		got = append(got, u.GetName())
		if _, ok := u.Object["status"]; ok {
			t.Errorf("%s has a status, which is the API server's", u.GetName())
		}
		if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "creationTimestamp"); ok {
			t.Errorf("%s says when it was made", u.GetName())
		}
	}
	generated, err := crds.Groups("policy.karmada.io", "work.karmada.io", "config.karmada.io", "apps.karmada.io")
	var want []string
	for _, crd := range must(t, generated, err) {
		want = append(want, crd.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions differ (-want +got):\n%s\nreason: those whose controllers exist are installed, the others come with theirs", diff)
	}
}

func TestClusterInfo(t *testing.T) {
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "kube-public", "name": "cluster-info"},
		"data":     map[string]any{"kubeconfig": "text"},
	}
	if diff := cmp.Diff(want, ClusterInfo([]byte("text")).Object); diff != "" {
		t.Errorf("cluster-info differs (-want +got):\n%s\nreason: spec: cli/init.md 8", diff)
	}
}

// rules are the access rules in a form that can be compared: names are namespace/name.
type rules struct {
	roles    map[string][]rbacv1.PolicyRule // Role and ClusterRole
	metadata map[string][2]map[string]string
	bindings map[string]binding
}

type binding struct {
	role     string // kind and name
	subjects []string
}

func readRBAC(t *testing.T) rules {
	t.Helper()
	objects, err := RBAC()
	r := rules{map[string][]rbacv1.PolicyRule{}, map[string][2]map[string]string{}, map[string]binding{}}
	convert := func(u *unstructured.Unstructured, into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), id(u), err)
		}
	}
	for _, u := range must(t, objects, err) {
		if u.GroupVersionKind().Group == admissionregistrationv1.GroupName {
			continue // TestAdmission
		}
		if u.GetAPIVersion() != rbacv1.SchemeGroupVersion.String() {
			t.Errorf("%s %s is of %s", u.GetKind(), id(u), u.GetAPIVersion())
		}
		if len(u.GetLabels())+len(u.GetAnnotations()) > 0 {
			r.metadata[id(u)] = [2]map[string]string{u.GetLabels(), u.GetAnnotations()}
		}
		var ref rbacv1.RoleRef
		var subjects []rbacv1.Subject
		switch u.GetKind() {
		case "ClusterRole":
			var role rbacv1.ClusterRole
			convert(u, &role)
			r.roles[id(u)] = role.Rules
			continue
		case "Role":
			var role rbacv1.Role
			convert(u, &role)
			r.roles[id(u)] = role.Rules
			continue
		case "ClusterRoleBinding":
			var b rbacv1.ClusterRoleBinding
			convert(u, &b)
			ref, subjects = b.RoleRef, b.Subjects
		case "RoleBinding":
			var b rbacv1.RoleBinding
			convert(u, &b)
			ref, subjects = b.RoleRef, b.Subjects
		default:
			t.Errorf("%s %s is no access rule", u.GetKind(), id(u))
		}
		if ref.APIGroup != rbacv1.GroupName {
			t.Errorf("%s: its role is of group %q", id(u), ref.APIGroup)
		}
		b := binding{role: ref.Kind + " " + ref.Name}
		for _, s := range subjects {
			if s.APIGroup != rbacv1.GroupName {
				t.Errorf("%s: %s is of group %q", id(u), s.Name, s.APIGroup)
			}
			b.subjects = append(b.subjects, s.Kind+" "+s.Name)
		}
		r.bindings[id(u)] = b
	}
	return r
}

func TestRBAC(t *testing.T) {
	rule := func(group string, resources, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
	}
	// spec: behaviour/11 11.6, cli/init.md 8
	namespaced := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			rule("autoscaling.karmada.io", []string{"cronfederatedhpas", "cronfederatedhpas/status", "federatedhpas", "federatedhpas/status"}, verbs),
			rule("multicluster.x-k8s.io", []string{"serviceexports", "serviceexports/status", "serviceimports", "serviceimports/status"}, verbs),
			rule("networking.karmada.io", []string{"multiclusteringresses", "multiclusteringresses/status", "multiclusterservices", "multiclusterservices/status"}, verbs),
			rule("policy.karmada.io", []string{"overridepolicies", "propagationpolicies"}, verbs),
			rule("work.karmada.io", []string{"resourcebindings", "resourcebindings/status", "works", "works/status"}, verbs),
		}
	}
	create := []string{"create"}
	want := rules{
		roles: map[string][]rbacv1.PolicyRule{
			"karmada-view":        namespaced("get", "list", "watch"),
			"karmada-edit":        namespaced("create", "update", "patch", "delete", "deletecollection"),
			"cluster-proxy-admin": {rule("cluster.karmada.io", []string{"clusters/proxy"}, []string{"*"})},
			"kube-public/system:karmada:bootstrap-signer-clusterinfo":   {rule("", []string{"configmaps"}, []string{"get"}, "cluster-info")},
			"system:karmada:certificatesigningrequest:autoapprover":     {rule("certificates.k8s.io", []string{"certificatesigningrequests/clusteragent"}, create)},
			"system:karmada:certificatesigningrequest:selfautoapprover": {rule("certificates.k8s.io", []string{"certificatesigningrequests/selfclusteragent"}, create)},
			// Not in the contract, whose tokens are all of the classic kind. No list: others' requests are not theirs.
			"system:karmada:certificatesigningrequest:namedautoapprover": {rule("certificates.k8s.io", []string{"certificatesigningrequests/namedclusteragent"}, create)},
			"system:karmada:agent-named-bootstrapper":                    {rule("certificates.k8s.io", []string{"certificatesigningrequests"}, []string{"create", "get"})},
		},
		metadata: map[string][2]map[string]string{},
		bindings: map[string]binding{
			"cluster-proxy-admin": {"ClusterRole cluster-proxy-admin", []string{"User system:admin"}},
			"kube-public/system:karmada:bootstrap-signer-clusterinfo": {"Role system:karmada:bootstrap-signer-clusterinfo", []string{"User system:anonymous"}},
			"system:karmada:agent-bootstrap":                          {"ClusterRole system:node-bootstrapper", []string{"Group system:bootstrappers:karmada:default-cluster-token"}},
			"system:karmada:agent-autoapprove-bootstrap":              {"ClusterRole system:karmada:certificatesigningrequest:autoapprover", []string{"Group system:bootstrappers:karmada:default-cluster-token"}},
			"system:karmada:agent-autoapprove-certificate-rotation":   {"ClusterRole system:karmada:certificatesigningrequest:selfautoapprover", []string{"Group system:karmada:agents"}},
			"system:karmada:agent-named-bootstrap":                    {"ClusterRole system:karmada:agent-named-bootstrapper", []string{"Group system:bootstrappers:karmada:named-cluster-token"}},
			"system:karmada:agent-autoapprove-named-bootstrap":        {"ClusterRole system:karmada:certificatesigningrequest:namedautoapprover", []string{"Group system:bootstrappers:karmada:named-cluster-token"}},
			// Not in the contract, where every component is system:admin. Here each has a name of its own and this group.
			"cluster-admin:karmada": {"ClusterRole cluster-admin", []string{"Group system:karmada"}},
		},
	}
	for _, verb := range []string{"view", "edit"} {
		want.metadata["karmada-"+verb] = [2]map[string]string{
			{"kubernetes.io/bootstrapping": "rbac-defaults", "rbac.authorization.k8s.io/aggregate-to-" + verb: "true"},
			{"rbac.authorization.kubernetes.io/autoupdate": "true"},
		}
	}
	if diff := cmp.Diff(want, readRBAC(t), cmp.AllowUnexported(rules{}, binding{})); diff != "" {
		t.Errorf("access rules differ (-want +got):\n%s", diff)
	}
}

// Whoever holds a bootstrap token, or nothing at all, must not become more than that.
func TestNobodyUntrustedIsAdmin(t *testing.T) {
	r := readRBAC(t)
	for name := range r.roles {
		if strings.Contains(name, "rbac-generator") {
			t.Errorf("role %s exists: with it the holder of a bootstrap token becomes admin", name)
		}
	}
	for name, b := range r.bindings {
		if strings.Contains(name, "rbac-generator") {
			t.Errorf("binding %s exists", name)
		}
		_, role, _ := strings.Cut(b.role, " ")
		if ns, _, ok := strings.Cut(name, "/"); ok {
			role = ns + "/" + role
		}
		for _, subject := range b.subjects {
			untrusted := strings.Contains(subject, "system:bootstrappers") || strings.Contains(subject, "system:anonymous") ||
				strings.Contains(subject, "system:unauthenticated") || strings.Contains(subject, "system:authenticated") ||
				strings.Contains(subject, "system:karmada:agent")
			if !untrusted {
				continue
			}
			known := r.roles[role] != nil || role == "system:node-bootstrapper" // which may request certificates
			if !known || role == "cluster-admin" {
				t.Errorf("%s gives %s to %s", name, role, subject)
			}
			for _, rule := range r.roles[role] {
				if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
					t.Errorf("%s gives a wildcard to %s: %v", name, subject, rule)
				}
			}
		}
	}
}

// The prefixes whose length the policies count on, and who they are about.
func TestAdmission(t *testing.T) {
	agents := map[string]string{} // policy to its first resource
	bound := map[string]bool{}
	objects, err := RBAC()
	for _, u := range must(t, objects, err) {
		switch u.GetKind() {
		case "ValidatingAdmissionPolicyBinding":
			var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &b, true); err != nil {
				t.Errorf("%s: %v", u.GetName(), err)
			}
			if _, known := agents[b.Spec.PolicyName]; !known || !slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) || b.Spec.MatchResources != nil {
				t.Errorf("%s has to make a policy before it count everywhere", b.Name)
			}
			bound[b.Spec.PolicyName] = true
		case "ValidatingAdmissionPolicy":
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &p, true); err != nil {
				t.Errorf("%s: %v", u.GetName(), err)
				continue
			}
			agents[p.Name] = p.Spec.MatchConstraints.ResourceRules[0].Resources[0]
			if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
				t.Errorf("%s: what cannot be judged has to be refused", p.Name)
			}
			for _, c := range p.Spec.MatchConditions {
				if !strings.HasPrefix(c.Expression, "has(request.userInfo.groups) && ") || !strings.Contains(c.Expression, registration.AgentGroup) && !strings.Contains(c.Expression, "'system:bootstrappers:karmada:'") {
					t.Errorf("%s: condition %s: it has to let everybody else through, also those without groups", p.Name, c.Expression)
				}
			}
			for _, v := range p.Spec.Variables {
				for _, prefix := range []string{registration.AgentUserPrefix, registration.ClusterTokenGroupPrefix} {
					if strings.Contains(v.Expression, "startsWith('"+prefix+"')") && !strings.Contains(v.Expression, fmt.Sprintf("substring(%d)", len(prefix))) {
						t.Errorf("%s: variable %s cuts off something other than %s", p.Name, v.Name, prefix)
					}
				}
			}
			for _, v := range p.Spec.Validations {
				if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden || v.Message == "" && v.MessageExpression == "" {
					t.Errorf("%s: whoever is refused has to be told why: %s", p.Name, v.Expression)
				}
			}
		}
	}
	want := map[string]string{
		"agent-secrets.karmada.io": "secrets", "agent-leases.karmada.io": "leases", "agent-events.karmada.io": "events", "agent-works.karmada.io": "works",
		"agent-certificates.karmada.io": "certificatesigningrequests", "bootstrap-certificates.karmada.io": "certificatesigningrequests",
	}
	if diff := cmp.Diff(want, agents); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	for name := range want {
		if !bound[name] {
			t.Errorf("policy %s counts nowhere", name)
		}
	}
}

// A server is a fake API server that can be made to refuse.
type server struct {
	*dynamicfake.FakeDynamicClient
	mu      sync.Mutex
	writes  []string // verb and name
	refuses func(verb, name string) error
}

func newServer(objects ...*unstructured.Unstructured) *server {
	var there []runtime.Object
	for _, o := range objects {
		there = append(there, o.DeepCopy())
	}
	lists := map[schema.GroupVersionResource]string{
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"): "CustomResourceDefinitionList",
	}
	s := &server{FakeDynamicClient: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, there...)}
	s.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch a := action.(type) {
		case clienttesting.CreateAction: // an update is one, too, by its methods
			if u, ok := a.GetObject().(*unstructured.Unstructured); ok {
				name = u.GetName()
			}
		case clienttesting.GetAction:
			name = a.GetName()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refuses != nil {
			if err := s.refuses(action.GetVerb(), name); err != nil {
				return true, nil, err
			}
		}
		if action.GetVerb() != "get" {
			s.writes = append(s.writes, action.GetVerb()+" "+name)
		}
		return false, nil, nil
	})
	return s
}

func namespace(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func TestApply(t *testing.T) {
	s := newServer(
		namespace("right", map[string]string{"ours": "true", "theirs": "kept"}),
		namespace("wrong", map[string]string{"ours": "false", "theirs": "kept"}),
	)
	wanted := []*unstructured.Unstructured{
		namespace("right", map[string]string{"ours": "true"}),
		namespace("wrong", map[string]string{"ours": "true"}),
		namespace("absent", map[string]string{"ours": "true"}),
	}
	summary, err := Apply(t.Context(), s, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Summary{Created: 1, Updated: 1, Unchanged: 1}); summary != want {
		t.Errorf("got %+v, want %+v", summary, want)
	}
	slices.Sort(s.writes)
	if diff := cmp.Diff([]string{"create absent", "update wrong"}, s.writes); diff != "" {
		t.Errorf("writes differ (-want +got):\n%s\nreason: what is right is not written", diff)
	}
	resource := s.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for name, want := range map[string]map[string]string{
		"right": {"ours": "true", "theirs": "kept"}, "wrong": {"ours": "true", "theirs": "kept"}, "absent": {"ours": "true"},
	} {
		u, err := resource.Get(t.Context(), name, metav1.GetOptions{})
		if diff := cmp.Diff(want, must(t, u, err).GetLabels()); diff != "" {
			t.Errorf("labels of %s differ (-want +got):\n%s\nreason: what others added stays", name, diff)
		}
	}
}

// The API server refuses to change which role a binding is for.
func TestApplyMakesBindingsAnew(t *testing.T) {
	binding := func(role string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "b"},
			"roleRef": map[string]any{"kind": "ClusterRole", "name": role},
		}}
	}
	s := newServer(binding("before"))
	summary, err := Apply(t.Context(), s, []*unstructured.Unstructured{binding("after")})
	if err != nil || summary != (Summary{Updated: 1}) {
		t.Errorf("got %+v, %v, want one that is mended", summary, err)
	}
	if diff := cmp.Diff([]string{"delete b", "create b"}, s.writes); diff != "" {
		t.Errorf("writes differ (-want +got):\n%s", diff)
	}
	if summary, err := Apply(t.Context(), s, []*unstructured.Unstructured{binding("after")}); err != nil || summary != (Summary{Unchanged: 1}) {
		t.Errorf("once more: got %+v, %v, want that it stays", summary, err)
	}
}

func TestApplyEverythingTwice(t *testing.T) {
	s := newServer()
	objects := all(t)
	for i, want := range []Summary{{Created: len(objects)}, {Unchanged: len(objects)}} {
		got, err := Apply(t.Context(), s, objects)
		if err != nil || got != want {
			t.Errorf("time %d: got %+v, %v, want %+v", i+1, got, err, want)
		}
	}
}

func TestApplyKeepsWhatOthersAdded(t *testing.T) {
	info := ClusterInfo([]byte("old"))
	set := func(u *unstructured.Unstructured, value any, path ...string) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	// The token's signature, by which register trusts what it reads.
	set(info, "signature", "data", "jws-kubeconfig-abcdef")
	definitions, err := CRDs(testServer())
	crd := must(t, definitions, err)[0].DeepCopy()
	set(crd, map[string]any{"strategy": "Webhook"}, "spec", "conversion")
	set(crd, "Namespaced or not", "spec", "scope")
	set(crd, "kept", "metadata", "annotations", "theirs")
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "cluster-proxy-admin"},
		"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}},
	}}
	s := newServer(info, crd, role)
	if _, err := Apply(t.Context(), s, all(t)); err != nil {
		t.Fatal(err)
	}
	get := func(u *unstructured.Unstructured) map[string]any {
		gvr, err := resourceOf(u)
		got, err := s.Resource(must(t, gvr, err)).Namespace(u.GetNamespace()).Get(t.Context(), u.GetName(), metav1.GetOptions{})
		return must(t, got, err).Object
	}
	field := func(o map[string]any, path ...string) any {
		value, _, err := unstructured.NestedFieldNoCopy(o, path...)
		return must(t, value, err)
	}
	if diff := cmp.Diff(map[string]any{"kubeconfig": "kubeconfig", "jws-kubeconfig-abcdef": "signature"}, field(get(info), "data")); diff != "" {
		t.Errorf("cluster-info differs (-want +got):\n%s", diff)
	}
	mended := get(crd)
	if got := field(mended, "spec", "conversion", "strategy"); got != "Webhook" {
		t.Errorf("the conversion of %s is %v, want the one that is set elsewhere", crd.GetName(), got)
	}
	if got, want := field(mended, "spec", "scope"), field(definitions[0].Object, "spec", "scope"); got != want {
		t.Errorf("the scope of %s is %v, want %v", crd.GetName(), got, want)
	}
	if got := field(mended, "metadata", "annotations", "theirs"); got != "kept" {
		t.Errorf("an annotation of others is %v", got)
	}
	want := []any{map[string]any{"apiGroups": []any{"cluster.karmada.io"}, "resources": []any{"clusters/proxy"}, "verbs": []any{"*"}}}
	if diff := cmp.Diff(want, get(role)["rules"]); diff != "" {
		t.Errorf("a rule that gave more than it should stays (-want +got):\n%s", diff)
	}
}

func TestApplyErrors(t *testing.T) {
	group := schema.GroupResource{Resource: "namespaces"}
	cases := map[string]struct {
		reason    string
		verb      string
		err       error
		transient bool
	}{
		"Unavailable":     {"The API server has only just started.", "get", apierrors.NewServiceUnavailable("starting"), true},
		"TooManyRequests": {"It has much to do in its first second.", "get", apierrors.NewTooManyRequests("later", 0), true},
		"NamespaceAbsent": {"A namespace is not visible everywhere at once.", "create", apierrors.NewNotFound(group, "a"), true},
		"Forbidden":       {"The admin's rights come a moment after the server.", "create", apierrors.NewForbidden(group, "a", nil), true},
		"Raced":           {"Another writer was faster: the next look sees it.", "create", apierrors.NewAlreadyExists(group, "a"), true},
		"Invalid":         {"What is invalid stays so.", "create", apierrors.NewInvalid(schema.GroupKind{Kind: "Namespace"}, "a", nil), false},
		"Unauthorized":    {"Nobody knows us, and waiting changes nothing.", "get", apierrors.NewUnauthorized("who are you"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			refused := 0
			s.refuses = func(verb, _ string) error {
				if verb == c.verb && refused < 2 {
					refused++
					return c.err
				}
				return nil
			}
			summary, err := Apply(t.Context(), s, []*unstructured.Unstructured{namespace("a", nil)})
			if c.transient {
				if err != nil || summary != (Summary{Created: 1}) || refused != 2 {
					t.Errorf("got %+v, %v after %d refusals, want success\nreason: %s", summary, err, refused, c.reason)
				}
				return
			}
			if err == nil || refused != 1 {
				t.Fatalf("got %v after %d refusals, want an error after one\nreason: %s", err, refused, c.reason)
			}
			if apierrors.ReasonForError(err) != apierrors.ReasonForError(c.err) || strings.Count(err.Error(), c.err.Error()) != 1 {
				t.Errorf("got %v, want %v, once", err, c.err)
			}
			if !strings.HasPrefix(err.Error(), "apply Namespace a: ") {
				t.Errorf("got %v, want the kind and the name", err)
			}
		})
	}
}

func TestApplyIsInterrupted(t *testing.T) {
	s := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	s.refuses = func(string, string) error {
		cancel()
		return apierrors.NewServiceUnavailable("starting")
	}
	_, err := Apply(ctx, s, []*unstructured.Unstructured{namespace("a", nil)})
	if err == nil || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want an error that says what was waited for", err)
	}
}

func TestApplyUnknownKind(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	if _, err := Apply(t.Context(), newServer(), []*unstructured.Unstructured{u}); err == nil || !strings.Contains(err.Error(), "kind Pod") {
		t.Errorf("got %v, want that it is none of the kinds known here", err)
	}
}

func TestSummary(t *testing.T) {
	cases := map[string]struct {
		reason  string
		summary Summary
		want    string
	}{
		"First":  {"On a new control plane.", Summary{Created: 9}, "9 created"},
		"Second": {"Nothing had to be done.", Summary{Unchanged: 9}, "9 unchanged"},
		"Mixed":  {"After an upgrade.", Summary{1, 2, 6}, "1 created, 2 updated, 6 unchanged"},
		"Some":   {"What there is none of is not worth a word.", Summary{Updated: 2, Unchanged: 6}, "2 updated, 6 unchanged"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.summary.String(); got != c.want {
				t.Errorf("got %q, want %q\nreason: %s", got, c.want, c.reason)
			}
		})
	}
}

func definition(name string, conditions ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	u.SetName(name)
	if len(conditions) > 0 {
		u.Object["status"] = map[string]any{"conditions": conditions}
	}
	return u
}

func condition(kind, status, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "message": message}
}

func TestWaitEstablished(t *testing.T) {
	served := definition("served.example.com", condition("NamesAccepted", "True", ""), condition("Established", "True", ""))
	cases := map[string]struct {
		reason string
		there  *unstructured.Unstructured
		hidden int    // how often it is not found at first
		says   string // "" when it comes to be served; else what the error says when the wait is interrupted
	}{
		"Served":  {"Nothing to wait for.", served, 0, ""},
		"Later":   {"It shows after a while.", served, 3, ""},
		"New":     {"One without conditions has not been looked at.", definition("served.example.com"), 0, "not established yet"},
		"Refused": {"Why it is not served is what people need to know.", definition("served.example.com", condition("NamesAccepted", "False", "the plural is taken")), 0, "the plural is taken"},
		"Not yet": {"A condition that is false is not met.", definition("served.example.com", condition("Established", "False", "")), 0, "not established yet"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(c.there)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := 0
			s.refuses = func(string, string) error {
				asked++
				if asked <= c.hidden {
					return apierrors.NewNotFound(schema.GroupResource{}, "served.example.com")
				}
				if c.says != "" && asked > 3 {
					cancel()
				}
				return nil
			}
			err := WaitEstablished(ctx, s, []*unstructured.Unstructured{definition("served.example.com")})
			if (err == nil) != (c.says == "") {
				t.Fatalf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
			if err != nil && (!strings.Contains(err.Error(), "served.example.com") || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want the name and %q\nreason: %s", err, c.says, c.reason)
			}
		})
	}
}
