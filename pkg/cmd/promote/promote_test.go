package promote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

var errBoom = errors.New("boom")

// A promoter answers always the same.
type promoter struct {
	plan             *promotion.Plan
	all              []*promotion.Plan
	readErr, makeErr error
	checkErr         error
	refuses          string // the name of an object
	made             bool
	checked          bool
}

func (p *promoter) Read(context.Context, promotion.Request) (*promotion.Plan, error) {
	return p.plan, p.readErr
}

func (p *promoter) ReadAll(context.Context, promotion.Request, labels.Selector) ([]*promotion.Plan, error) {
	return p.all, p.readErr
}

func (p *promoter) Check(_ context.Context, plan *promotion.Plan) error {
	p.checked = true
	if p.refuses != "" && plan.Template.Object.GetName() == p.refuses {
		return errBoom
	}
	return p.checkErr
}

func (p *promoter) Make(_ context.Context, plan *promotion.Plan, made func(client.Object)) error {
	p.made = true
	if p.makeErr != nil {
		return p.makeErr
	}
	for _, d := range plan.Dependencies {
		made(d.Object)
	}
	made(plan.Template.Object)
	if plan.Policy != nil {
		made(plan.Policy.Object)
	}
	return nil
}

func item(apiVersion, kind, namespace, name, resource string) promotion.Item {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return promotion.Item{Object: u, Resource: schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion().WithResource(resource)}
}

func namespaced() *promotion.Plan {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x"}}
	p.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	return &promotion.Plan{
		Cluster: "m1", Template: item("apps/v1", "Deployment", "shop", "web", "deployments"), Policy: &promotion.Policy{Object: p},
	}
}

func withDependency() *promotion.Plan {
	plan := namespaced()
	plan.Dependencies, plan.Interpreted = []promotion.Item{item("v1", "ConfigMap", "shop", "settings", "configmaps")}, true
	return plan
}

func TestRun(t *testing.T) {
	clusterScoped := func() *promotion.Plan {
		return &promotion.Plan{
			Cluster: "m1", Template: item("rbac.authorization.k8s.io/v1", "ClusterRole", "", "viewer", "clusterroles"),
			Policy: &promotion.Policy{Object: &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "viewer-x"}}},
		}
	}
	done := func() *promotion.Plan {
		plan := namespaced()
		plan.Template.Exists, plan.Policy.Exists = true, true
		return plan
	}

	tests := map[string]struct {
		reason        string
		promoter      promoter
		options       Options
		out           string
		err           error
		checked, made bool
	}{
		"Namespaced": {
			reason: "Scripts match these lines.", promoter: promoter{plan: namespaced()}, checked: true, made: true,
			out: "ResourceTemplate (shop/web) is created successfully\nPropagationPolicy (shop/web-x) is created successfully\n" +
				"Resource \"apps/v1, Resource=deployments\"(shop/web) is promoted successfully\n",
		},
		"ClusterScoped": {
			reason: "Scripts match these lines.", promoter: promoter{plan: clusterScoped()}, checked: true, made: true,
			out: "ResourceTemplate (viewer) is created successfully\nClusterPropagationPolicy viewer-x is created successfully\n" +
				"Resource \"rbac.authorization.k8s.io/v1, Resource=clusterroles\"(viewer) is promoted successfully\n",
		},
		"Dependencies": {
			reason: "Scripts match these lines.", promoter: promoter{plan: withDependency()}, checked: true, made: true,
			out: "use default interpreter\nDependency resource \"/v1, Resource=configmaps\"(shop/settings) is promoted successfully\n" +
				"ResourceTemplate (shop/web) is created successfully\nPropagationPolicy (shop/web-x) is created successfully\n" +
				"Resource \"apps/v1, Resource=deployments\"(shop/web) is promoted successfully\n",
		},
		"Again": {
			reason: "What is done is done.", promoter: promoter{plan: done()}, checked: true,
			out: "Resource \"apps/v1, Resource=deployments\"(shop/web) is promoted already\n",
		},
		"DryRun": {
			reason: "Nothing is made.", promoter: promoter{plan: withDependency()}, options: Options{DryRun: true}, checked: true,
			out: "use default interpreter\nDependency resource \"/v1, Resource=configmaps\"(shop/settings) is promoted successfully (dry run)\n" +
				"ResourceTemplate (shop/web) is created successfully (dry run)\nPropagationPolicy (shop/web-x) is created successfully (dry run)\n" +
				"Deployment shop/web stays as it is in cluster m1, but for the marks of the control plane\n",
		},
		"YAML": {
			reason:   "With dependencies too nothing is made, and nobody asks what there is.",
			promoter: promoter{plan: withDependency()}, options: Options{Output: "yaml"},
			out: "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n---\n" +
				"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: web-x\n  namespace: shop\nspec:\n  resourceSelectors: null\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: shop\n",
		},
		"JSON": {
			reason:   "Programs read this.",
			promoter: promoter{plan: &promotion.Plan{Template: item("v1", "ConfigMap", "shop", "settings", "configmaps")}}, options: Options{Output: "json"},
			out: "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"ConfigMap\",\n    \"metadata\": {\n        \"name\": \"settings\",\n        \"namespace\": \"shop\"\n    }\n}\n",
		},
		"NotThere": {reason: "An error ends it.", promoter: promoter{readErr: errBoom}, err: errBoom},
		"Refused":  {reason: "An error ends it.", promoter: promoter{plan: namespaced(), checkErr: errBoom}, err: errBoom, checked: true},
		"Failed":   {reason: "An error ends it.", promoter: promoter{plan: namespaced(), makeErr: errBoom}, err: errBoom, checked: true, made: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := tc.options
			o.IOStreams, o.Promoter = streams, &tc.promoter
			if err := o.Run(context.Background()); !errors.Is(err, tc.err) {
				t.Errorf("%s\nRun(): %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\nout (-want +got):\n%s", tc.reason, diff)
			}
			if errOut.Len() > 0 {
				t.Errorf("unexpected on stderr: %q", errOut)
			}
			if tc.promoter.checked != tc.checked || tc.promoter.made != tc.made {
				t.Errorf("%s\nchecked %t, made %t; want %t, %t", tc.reason, tc.promoter.checked, tc.promoter.made, tc.checked, tc.made)
			}
		})
	}
}

// A changed plan is one by which pods would be started anew.
func changed() *promotion.Plan {
	plan := namespaced()
	plan.Changes = []promotion.Change{{Item: plan.Template, Fields: []promotion.Field{
		{Path: "spec.paused", Have: true}, {Path: "spec.replicas", Have: int64(2), Want: int64(3)}, {Path: "spec.template.spec.x", Want: strings.Repeat("y", 90)},
	}}}
	return plan
}

func TestRunMany(t *testing.T) {
	named := func(name string) *promotion.Plan {
		return &promotion.Plan{Cluster: "m1", Template: item("v1", "ConfigMap", "shop", name, "configmaps")}
	}
	done := func(name string) string {
		return fmt.Sprintf("ResourceTemplate (shop/%[1]s) is created successfully\nResource \"/v1, Resource=configmaps\"(shop/%[1]s) is promoted successfully\n", name)
	}
	restart := &promotion.RestartError{Cluster: "m1", Changes: []promotion.Change{{Item: changed().Template, Pods: []promotion.Field{{Path: "spec.template.spec.x"}}}}}
	tests := map[string]struct {
		reason      string
		promoter    promoter
		options     Options
		out, errOut string
		err         string // what it begins with
	}{
		"All": {reason: "One after the other.", promoter: promoter{all: []*promotion.Plan{named("a"), named("b")}}, out: done("a") + done("b")},
		"None": {
			reason: "Nothing there is no error, as with kubectl.", options: Options{Request: promotion.Request{Cluster: "m1", Namespace: "shop"}},
			errOut: "note: there is nothing to promote in cluster m1, or in namespace shop of it\n",
		},
		"Refused": {
			reason: "One that cannot be keeps the others.", promoter: promoter{all: []*promotion.Plan{named("a"), named("b")}, refuses: "b"},
			err: "1 of 2 objects cannot be promoted, so that none was; --keep-going promotes the others:\nboom",
		},
		"KeepGoing": {
			reason: "Unless asked for, and then it is an error still.", promoter: promoter{all: []*promotion.Plan{named("a"), named("b")}, refuses: "a"},
			options: Options{KeepGoing: true}, out: done("b"), err: "1 of 2 objects were not promoted:\nboom",
		},
		"DryRun": {
			reason: "All of it is shown, and what would be refused is an error.", promoter: promoter{all: []*promotion.Plan{named("a"), named("b")}, refuses: "b"},
			options: Options{DryRun: true}, err: "1 of 2 objects were not promoted:\nboom",
			out: "ResourceTemplate (shop/a) is created successfully (dry run)\nConfigMap shop/a stays as it is in cluster m1, but for the marks of the control plane\n",
		},
		"YAML": {
			reason: "They are one stream.", promoter: promoter{all: []*promotion.Plan{named("a"), named("b")}}, options: Options{Output: "yaml"},
			out: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: shop\n",
		},
		"Restart": {
			reason: "The plan shows why it is refused.", promoter: promoter{all: []*promotion.Plan{changed()}, checkErr: restart}, options: Options{DryRun: true},
			out: "Deployment shop/web changes in cluster m1:\n  - spec.paused: true\n  ~ spec.replicas: 2 -> 3\n  + spec.template.spec.x: \"" + strings.Repeat("y", 79) + "...\n",
			err: "1 of 1 objects were not promoted:\nthe pods of Deployment shop/web in cluster m1 would be started anew or stopped, as spec.template.spec.x would change",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := tc.options
			o.Many, o.IOStreams, o.Promoter = true, streams, &tc.promoter
			err := o.Run(context.Background())
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\nout (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.errOut, errOut.String()); diff != "" {
				t.Errorf("%s\nstderr (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSecretsAreNotShown checks that a diff does not tell what a Secret holds.
func TestSecretsAreNotShown(t *testing.T) {
	var out strings.Builder
	plan := &promotion.Plan{Cluster: "m1", Template: item("v1", "Secret", "shop", "s", "secrets")}
	plan.Changes = []promotion.Change{{Item: plan.Template, Fields: []promotion.Field{{Path: "data.p", Have: "YQ==", Want: "Yg=="}}}}
	if err := printChanges(&out, plan); err != nil {
		t.Fatal(err)
	}
	if want := "Secret shop/s changes in cluster m1:\n  ~ data.p: (secret) -> (secret)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// serve answers requests for the control plane, and for what is behind its
// proxy, with the objects at their paths. It notes what it was asked to make.
func serve(t *testing.T, objects map[string]any) (url string, writes *[]string) {
	t.Helper()
	writes = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPut {
			if r.URL.RawQuery != "dryRun=All" {
				t.Errorf("%s: what is there must not be changed", r.URL.RequestURI())
			}
			_, _ = io.Copy(w, r.Body)
			return
		}
		if r.Method == http.MethodPost {
			*writes = append(*writes, r.URL.RequestURI())
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Errorf("read what is to be made: %v", err)
			}
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(body)
			return
		}
		o, ok := objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			o = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: "NotFound", Code: 404, Message: r.URL.Path + " not found"}
		}
		_ = json.NewEncoder(w).Encode(o)
	}))
	t.Cleanup(s.Close)
	return s.URL, writes
}

// discovered adds what discovery of a server with Deployments, Namespaces and policies answers, below a path.
func discovered(objects map[string]any, below string, groups ...string) {
	verbs := metav1.Verbs{"create", "get", "list"}
	list := func(gv string, all ...metav1.APIResource) metav1.APIResourceList {
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv, APIResources: all}
	}
	objects[below+"/api"] = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	objects[below+"/api/v1"] = list("v1", metav1.APIResource{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", ShortNames: []string{"ns"}, Verbs: verbs})
	var found []metav1.APIGroup
	for _, g := range groups {
		name, version, _ := strings.Cut(g, "/")
		v := metav1.GroupVersionForDiscovery{GroupVersion: g, Version: version}
		found = append(found, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		switch name {
		case "apps":
			objects[below+"/apis/"+g] = list(g, metav1.APIResource{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", ShortNames: []string{"deploy"}, Verbs: verbs})
		case "policy.karmada.io":
			objects[below+"/apis/"+g] = list(g,
				metav1.APIResource{Name: "propagationpolicies", Namespaced: true, Kind: "PropagationPolicy", Verbs: verbs},
				metav1.APIResource{Name: "overridepolicies", Namespaced: true, Kind: "OverridePolicy", Verbs: verbs},
				metav1.APIResource{Name: "clusteroverridepolicies", Kind: "ClusterOverridePolicy", Verbs: verbs})
		}
	}
	objects[below+"/apis"] = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: found}
}

// TestThrough promotes through the whole command: once by the proxy of the control plane, once by a kubeconfig.
func TestThrough(t *testing.T) {
	const proxy = "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"
	deployment := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u"},
		"spec": map[string]any{"paused": true},
	}
	ns := func(name, uid string) any {
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "uid": uid}}
	}
	tests := map[string]struct {
		reason  string
		uid     string // of the kube-system behind the kubeconfig, "" to use the proxy
		leaving bool
		dryRun  bool
		err     string
	}{
		"Proxy":      {reason: "Without a kubeconfig the cluster is behind the control plane."},
		"Kubeconfig": {reason: "A kubeconfig leads there, too.", uid: "id-m1"},
		"Wrong":      {reason: "What another cluster has must not replace what this one has.", uid: "id-m2", err: "leads to a cluster with ID id-m2, and cluster m1 is the one with ID id-m1"},
		"Leaving":    {reason: "What leaves takes nothing along.", leaving: true, err: "cluster m1 is leaving the control plane"},
		"DryRun":     {reason: "Nothing is made.", dryRun: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := map[string]any{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": "m1"}, "spec": map[string]any{"id": "id-m1", "syncMode": "Push"}}
			if tc.leaving {
				cluster["metadata"] = map[string]any{"name": "m1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []string{"x"}}
			}
			plane := map[string]any{
				"/apis/cluster.karmada.io/v1alpha1/clusters/m1": cluster,
				"/api/v1/namespaces/shop":                       ns("shop", "s"),
				"/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies": map[string]any{
					"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicyList", "metadata": map[string]any{}, "items": []any{},
				},
			}
			for kind, path := range map[string]string{"OverridePolicyList": "namespaces/shop/overridepolicies", "ClusterOverridePolicyList": "clusteroverridepolicies"} {
				plane["/apis/policy.karmada.io/v1alpha1/"+path] = map[string]any{"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": map[string]any{}, "items": []any{}}
			}
			discovered(plane, "", "apps/v1", "policy.karmada.io/v1alpha1", "cluster.karmada.io/v1alpha1")
			var args []string
			if tc.uid == "" {
				plane[proxy+"/apis/apps/v1/namespaces/shop/deployments/web"] = deployment
				discovered(plane, proxy, "apps/v1")
			} else {
				member := map[string]any{"/apis/apps/v1/namespaces/shop/deployments/web": deployment, "/api/v1/namespaces/kube-system": ns("kube-system", tc.uid)}
				discovered(member, "", "apps/v1")
				url, _ := serve(t, member)
				args = append(args, "--cluster-kubeconfig="+kubeconfig(t, url))
			}
			if tc.dryRun {
				args = append(args, "--dry-run")
			}
			url, writes := serve(t, plane)
			t.Setenv("HOME", t.TempDir())
			t.Setenv("KUBECONFIG", kubeconfig(t, url))
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			f := factory.New(factory.Options{Program: "karmadactl", ErrOut: streams.ErrOut})
			cmd, err := NewCmd(f, streams, "karmadactl")
			if err != nil {
				t.Fatal(err)
			}
			cmd.SetArgs(append([]string{"deploy", "web", "-n", "shop", "-C", "m1", "--policy-name=p"}, args...))
			cmd.SilenceErrors = true
			err = cmd.ExecuteContext(context.Background())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\n%v, want an error with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			want := []string{
				"/apis/apps/v1/namespaces/shop/deployments?dryRun=All", "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies?dryRun=All",
			}
			last := "Deployment shop/web stays as it is in cluster m1, but for the marks of the control plane\n"
			if !tc.dryRun {
				want = append(want, "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies", "/apis/apps/v1/namespaces/shop/deployments")
				last = "Resource \"apps/v1, Resource=deployments\"(shop/web) is promoted successfully\n"
			}
			if diff := cmp.Diff(want, *writes); diff != "" {
				t.Errorf("%s\nrequests that make something (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.HasSuffix(out.String(), last) {
				t.Errorf("%s\nout %q, want it to end in %q", tc.reason, out, last)
			}
		})
	}
}

// kubeconfig writes one for a server, and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.config")
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
