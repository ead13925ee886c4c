package demote

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

var errBoom = errors.New("boom")

// A demoter answers always the same.
type demoter struct {
	all      []*promotion.Demotion
	readErr  error
	refuses  string // the name of an object
	fails    string
	demoted  bool
	wasAsked promotion.Farewell
}

func (d *demoter) Read(_ context.Context, f promotion.Farewell) ([]*promotion.Demotion, error) {
	d.wasAsked = f
	return d.all, d.readErr
}

func (d *demoter) ReadAll(ctx context.Context, f promotion.Farewell, _ labels.Selector) ([]*promotion.Demotion, error) {
	return d.Read(ctx, f)
}

func (d *demoter) errs(all []*promotion.Demotion, name string) map[*promotion.Demotion]error {
	errs := map[*promotion.Demotion]error{}
	for _, x := range all {
		if x.Template.Object.GetName() == name {
			errs[x] = errBoom
		}
	}
	return errs
}

func (d *demoter) Check(_ context.Context, all []*promotion.Demotion) map[*promotion.Demotion]error {
	return d.errs(all, d.refuses)
}

func (d *demoter) Demote(_ context.Context, all []*promotion.Demotion, told func(string)) map[*promotion.Demotion]error {
	d.demoted = true
	for _, x := range all {
		if x.Template.Object.GetName() != d.fails {
			told(x.Template.Object.GetName() + " has gone")
		}
	}
	return d.errs(all, d.fails)
}

func demotion(name string, change ...func(*promotion.Demotion)) *promotion.Demotion {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	u.SetNamespace("shop")
	u.SetName(name)
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-x"}}
	x := &promotion.Demotion{
		Template: promotion.Item{Object: u, Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
		Binding:  &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}},
		Clusters: []string{"m1", "m2"}, Policy: &promotion.Policy{Object: p},
	}
	for _, f := range change {
		f(x)
	}
	return x
}

func TestRun(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
	kept := func(x *promotion.Demotion) {
		x.KeepTemplate, x.Binding, x.Policy = true, nil, nil
		x.Template.Object.SetLabels(map[string]string{"resourcetemplate.karmada.io/claimed-by": promotion.DemotedBy})
	}
	tests := map[string]struct {
		reason      string
		demoter     demoter
		options     Options
		elsewhere   []string
		out, errOut string
		err         string
		demoted     bool
	}{
		"One":  {reason: "It is told what has gone.", demoter: demoter{all: []*promotion.Demotion{demotion("web")}}, out: "web has gone\n", demoted: true},
		"Many": {reason: "All of it is.", options: Options{Many: true}, demoter: demoter{all: []*promotion.Demotion{demotion("web"), demotion("api")}}, out: "web has gone\napi has gone\n", demoted: true},
		"None": {
			reason: "Nothing there is no error, as with kubectl.", options: Options{Many: true, Request: promotion.Farewell{Namespace: "shop"}},
			errOut: "note: there is nothing to let go of in namespace shop of the control plane\n",
		},
		"DryRun": {
			reason: "The plan is shown, and nothing is done.", options: Options{DryRun: true}, demoter: demoter{all: []*promotion.Demotion{demotion("web")}},
			out: "Deployment shop/web stays as it is in clusters m1, m2 (dry run)\nResourceBinding (shop/web-deployment) is released (dry run)\n" +
				"PropagationPolicy (shop/web-x) is deleted (dry run)\nResourceTemplate (shop/web) is deleted (dry run)\n",
		},
		"DryRunKeeps": {
			reason: "A template that stays is said to.", options: Options{DryRun: true},
			demoter: demoter{all: []*promotion.Demotion{demotion("web", func(x *promotion.Demotion) { x.KeepTemplate, x.Policy, x.Clusters = true, nil, []string{"m1"} })}},
			out:     "Deployment shop/web stays as it is in cluster m1 (dry run)\nResourceBinding (shop/web-deployment) is released (dry run)\nResourceTemplate (shop/web) is kept (dry run)\n",
		},
		"DryRunRefused": {
			reason: "What would be refused is an error, in a plan too.", options: Options{DryRun: true, Many: true},
			demoter: demoter{all: []*promotion.Demotion{demotion("web"), demotion("api")}, refuses: "web"},
			out: "Deployment shop/api stays as it is in clusters m1, m2 (dry run)\nResourceBinding (shop/api-deployment) is released (dry run)\n" +
				"PropagationPolicy (shop/api-x) is deleted (dry run)\nResourceTemplate (shop/api) is deleted (dry run)\n",
			err: "1 of 2 objects cannot be demoted, so that none would be:\nboom",
		},
		"Refused": {
			reason: "One that cannot be keeps the others.", options: Options{Many: true}, demoter: demoter{all: []*promotion.Demotion{demotion("web"), demotion("api")}, refuses: "api"},
			err: "1 of 2 objects cannot be demoted, so that none was:\nboom",
		},
		"Failed": {
			reason: "A failure of one is never a success.", options: Options{Many: true}, demoter: demoter{all: []*promotion.Demotion{demotion("web"), demotion("api")}, fails: "api"},
			out: "web has gone\n", demoted: true, err: "1 of 2 objects were not let go of, or not wholly; run the command again to go on:\nboom",
		},
		"Already": {
			reason: "What is kept, and goes nowhere, has been let go of.", demoter: demoter{all: []*promotion.Demotion{demotion("web", kept)}},
			out: "Resource \"apps/v1, Resource=deployments\"(shop/web) is demoted already\n",
		},
		"Gone": {
			reason: "What a cluster has, and the control plane has not, was let go of.", demoter: demoter{readErr: fmt.Errorf("read: %w", notFound)},
			options: Options{Request: promotion.Farewell{Type: "deployment", Name: "web"}}, elsewhere: []string{"m1"},
			out: "deployment web is demoted already: the control plane does not have it, and it is in cluster m1\n",
		},
		"NotThere": {reason: "What nobody has is a mistake.", demoter: demoter{readErr: fmt.Errorf("read: %w", notFound)}, err: `read: deployments.apps "web" not found`},
		"Error":    {reason: "An error ends it.", demoter: demoter{readErr: errBoom}, err: "boom"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := tc.options
			o.IOStreams, o.Demoter = streams, &tc.demoter
			o.Elsewhere = func(context.Context, promotion.Farewell) ([]string, error) { return tc.elsewhere, nil }
			err := o.Run(t.Context())
			if fmt.Sprint(err) != tc.err && (err != nil || tc.err != "") {
				t.Errorf("%s\nerror %v, want %s", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff([]string{tc.out, tc.errOut}, []string{out.String(), errOut.String()}); diff != "" {
				t.Errorf("%s\nout, stderr (-want +got):\n%s", tc.reason, diff)
			}
			if tc.demoter.demoted != tc.demoted {
				t.Errorf("%s\ndemoted: %t, want %t", tc.reason, tc.demoter.demoted, tc.demoted)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	tests := map[string]struct {
		reason     string
		flags      Flags
		args       []string
		kind, name string
		err        string
	}{
		"Slash":     {reason: "As kubectl takes it.", args: []string{"deployment/web"}, kind: "deployment", name: "web"},
		"Apart":     {reason: "As promote takes it.", args: []string{"deployments.v1.apps", "web"}, kind: "deployments.v1.apps", name: "web"},
		"Nothing":   {reason: "It must be said what goes.", err: "say what to let go of"},
		"TypeAlone": {reason: "A type is not all of it.", args: []string{"deployments"}, err: "one object is let go of at a time"},
		"Two":       {reason: "One at a time.", args: []string{"deployment/web", "deployment/api"}, err: "one object is let go of at a time"},
		"Empty":     {reason: "A name is needed.", args: []string{"deployment/"}, err: `"deployment/" is not of the form TYPE/NAME`},
		"Path":      {reason: "A name has no slash.", args: []string{"deployment/a/b"}, err: `"deployment/a/b" is not of the form TYPE/NAME`},
		"Types":     {reason: "A name is that of one type.", args: []string{"deployment,service/web"}, err: "is not of the form TYPE/NAME"},
		"All":       {reason: "A namespace needs no type.", flags: Flags{All: true}},
		"AllOfType": {reason: "Or has some.", flags: Flags{All: true}, args: []string{"deployments,services"}},
		"AllNamed":  {reason: "What is named is not all.", flags: Flags{All: true}, args: []string{"deployment/web"}, err: "at most a TYPE can be given"},
		"Selected":  {reason: "Labels or a name.", flags: Flags{Selector: "a=b"}, args: []string{"deployment", "web"}, err: "at most a TYPE can be given"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.flags.args(nil, tc.args)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s\nerror %v, want one with %q", tc.reason, err, tc.err)
			}
			if err != nil || tc.flags.many() {
				return
			}
			if kind, object, err := typeAndName(tc.args); kind != tc.kind || object != tc.name || err != nil {
				t.Errorf("%s\ngot %q, %q, %v", tc.reason, kind, object, err)
			}
		})
	}
}

// TestThrough runs the whole command against a control plane that does not have the object, with members behind it.
func TestThrough(t *testing.T) {
	tests := map[string]struct {
		reason  string
		members map[string]int // what each answers: a status, 200 being the object
		managed bool
		out     string
		err     string
	}{
		"Before":  {reason: "A member has it, as its own.", members: map[string]int{"m1": 404, "m2": 200}, out: "deploy web is demoted already: the control plane does not have it, and it is in cluster m2\n"},
		"Never":   {reason: "No member has it.", members: map[string]int{"m1": 404}, err: `deployments.apps "web" not found`},
		"Managed": {reason: "Somebody else's is no trace of a demotion.", members: map[string]int{"m1": 200}, managed: true, err: `deployments.apps "web" not found`},
		"Unknown": {reason: "A member that cannot tell may have it.", members: map[string]int{"m1": 500}, err: "look for it in cluster m1"},
		"Partly":  {reason: "One that has it is enough.", members: map[string]int{"m1": 500, "m2": 200}, out: "deploy web is demoted already: the control plane does not have it, and it is in cluster m2\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			url := serve(t, tc.members, tc.managed)
			t.Setenv("HOME", t.TempDir())
			t.Setenv("KUBECONFIG", kubeconfig(t, url))
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			f := factory.New(factory.Options{Program: "karmadactl", ErrOut: streams.ErrOut})
			cmd, err := NewCmd(f, streams, "karmadactl")
			if err != nil {
				t.Fatal(err)
			}
			cmd.SetArgs([]string{"deploy/web", "-n", "shop"})
			cmd.SilenceErrors = true
			err = cmd.ExecuteContext(t.Context())
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nerror %v, want one with %q", tc.reason, err, tc.err)
			}
			if out.String() != tc.out {
				t.Errorf("%s\nout %q, want %q", tc.reason, out, tc.out)
			}
		})
	}
}

// serve answers for a control plane without objects, and for the members behind its proxy.
func serve(t *testing.T, members map[string]int, managed bool) string {
	t.Helper()
	const clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
	answer := func(w http.ResponseWriter, status int, o any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(o)
	}
	failure := func(w http.ResponseWriter, status int) {
		err := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
		if status != http.StatusNotFound {
			err = apierrors.NewInternalError(errBoom)
		}
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer(w, status, err.ErrStatus)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: nothing may be written", r.Method, r.URL.Path)
		}
		verbs := metav1.Verbs{"create", "delete", "get", "list", "watch"}
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}}
		switch path := r.URL.Path; path {
		case "/api":
			answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case "/api/v1":
			list.GroupVersion = "v1"
			answer(w, http.StatusOK, list)
		case "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
			answer(w, http.StatusOK, metav1.APIGroupList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
				Groups:   []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}},
			})
		case "/apis/apps/v1":
			list.GroupVersion = "apps/v1"
			list.APIResources = []metav1.APIResource{{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", ShortNames: []string{"deploy"}, Verbs: verbs}}
			answer(w, http.StatusOK, list)
		case clusters:
			var items []any
			for name := range members {
				items = append(items, map[string]any{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": name}, "spec": map[string]any{"syncMode": "Push"}})
			}
			answer(w, http.StatusOK, map[string]any{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "ClusterList", "metadata": map[string]any{}, "items": items})
		default:
			name, behind, proxied := strings.Cut(strings.TrimPrefix(path, clusters+"/"), "/proxy")
			if !proxied || !strings.HasSuffix(behind, "/namespaces/shop/deployments/web") || members[name] != http.StatusOK {
				status := http.StatusNotFound
				if proxied && members[name] != 0 {
					status = members[name]
				}
				failure(w, status)
				return
			}
			o := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			if managed {
				o.Labels = map[string]string{"karmada.io/managed": "true"}
			}
			answer(w, http.StatusOK, o)
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL
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
