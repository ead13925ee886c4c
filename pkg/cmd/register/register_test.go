package register

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- {name: first, cluster: {server: "https://127.0.0.1:1"}}
- {name: second, cluster: {server: "https://127.0.0.1:2", insecure-skip-tls-verify: true, proxy-url: "http://proxy.example:3128"}}
users: [{name: u, user: {token: s3cret}}]
contexts:
- {name: one, context: {cluster: first, user: u}}
- {name: two, context: {cluster: second, user: u}}
current-context: one
`

func TestToOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cases := map[string]struct {
		reason string
		args   []string
		want   localagent.Config
	}{
		"Default": {
			reason: "The name is that of the cluster in the kubeconfig (cli/commands.md 3.4).",
			want:   localagent.Config{Cluster: "first", Namespace: "karmada-cluster", APIEndpoint: "https://127.0.0.1:1", CertRotation: true},
		},
		"Context": {
			reason: "The name and the proxy are those of the context that was chosen.", args: []string{"--context=two", "--proxy-server-address=http://other:1"},
			want: localagent.Config{Cluster: "second", Namespace: "karmada-cluster", APIEndpoint: "https://127.0.0.1:2", CertRotation: true, ProxyURL: "http://proxy.example:3128"},
		},
		"Given": {
			reason: "What is said is kept.",
			args:   []string{"--cluster-name=m", "--cluster-provider=p", "--cluster-region=r", "--cluster-zones=x,y", "--labels=a=b", "--proxy-server-address=http://p:1", "--enable-cert-rotation=false", "--print"},
			want: localagent.Config{
				Cluster: "m", Namespace: "karmada-cluster", APIEndpoint: "https://127.0.0.1:1", ProxyURL: "http://p:1", Provider: "p", Region: "r",
				Zones: []string{"x", "y"}, Labels: map[string]string{"a": "b"}, External: true,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := &Flags{Program: "karmadactl"}
			fs := pflag.NewFlagSet("register", pflag.ContinueOnError)
			flags.AddFlags(fs)
			args := append([]string{"--agent=process", "--kubeconfig=" + file, "--token=abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification", "--agent-dir=" + dir}, tc.args...)
			if err := fs.Parse(args); err != nil {
				t.Fatal(err)
			}
			o, err := flags.ToOptions(factory.New(factory.Options{Program: "karmadactl", ErrOut: &bytes.Buffer{}}), genericiooptions.IOStreams{}, "10.0.0.1:5443")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, o.Config); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if o.Enrolment.Cluster != tc.want.Cluster || o.Enrolment.Validity != 365*24*time.Hour || o.Enrolment.Server() != "https://10.0.0.1:5443" || o.Wait != time.Minute {
				t.Errorf("got %+v", o.Enrolment)
			}
			if len(o.Kubeconfig.Contexts) != 1 || len(o.Kubeconfig.Clusters) != 1 {
				t.Errorf("the agent gets one context alone, got %d", len(o.Kubeconfig.Contexts))
			}
		})
	}
}

// options are complete, of a cluster that is the given objects.
func options(t *testing.T, groups []string, deployments ...runtime.Object) (*Options, *bytes.Buffer) {
	t.Helper()
	scheme, err := registration.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-m"}}).Build()
	out := &bytes.Buffer{}
	return &Options{
		Program: "karmadactl", Source: func() string { return "that kubeconfig" }, Explain: func(err error) error { return err },
		Member: registration.Member{
			API:      registration.API{Client: c, Groups: func(context.Context) ([]string, error) { return groups, nil }},
			Endpoint: registration.Endpoint{URL: "https://m"},
		},
		Deployments: kubefake.NewClientset(deployments...).AppsV1(),
		Layout:      localagent.Layout{Dir: filepath.Join(t.TempDir(), "m")},
		Config:      localagent.Config{Cluster: "m", Namespace: "karmada-cluster", APIEndpoint: "https://m"},
		Enrolment:   registration.Enrolment{Cluster: "m", Validity: time.Hour},
		IOStreams:   genericiooptions.IOStreams{Out: out, ErrOut: &bytes.Buffer{}},
	}, out
}

func TestPreflight(t *testing.T) {
	cases := map[string]struct {
		reason      string
		groups      []string
		deployments []runtime.Object
		config      string // agent.yaml
		err         string
	}{
		"Good":         {reason: "A cluster without anything of ours.", groups: []string{"apps"}},
		"ControlPlane": {reason: "A control plane is no member of itself.", groups: []string{"policy.karmada.io"}, err: "that kubeconfig leads to a Karmada control plane"},
		"Deployment": {
			reason: "Two agents would do the same.", deployments: []runtime.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent"}}},
			err: "Deployment karmada-system/karmada-agent: unregister it first",
		},
		"Ours":    {reason: "Our own is repaired.", config: "kind: KarmadaAgent\ncluster: m\nclusterID: uid-m\n"},
		"Other":   {reason: "Another cluster's is not.", config: "kind: KarmadaAgent\ncluster: m\nclusterID: uid-x\n", err: "was it rebuilt?"},
		"Foreign": {reason: "Nor is what is no agent's.", config: "something: else\n", err: "read the agent's settings"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, _ := options(t, tc.groups, tc.deployments...)
			if tc.config != "" {
				if err := errors.Join(
					os.MkdirAll(filepath.Dir(o.Layout.Credential()), 0o700),
					os.WriteFile(o.Layout.ConfigFile(), []byte(tc.config), 0o600),
					os.WriteFile(o.Layout.Credential(), nil, 0o600), // there was a certificate once
				); err != nil {
					t.Fatal(err)
				}
			}
			err := o.preflight(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if tc.err == "" && o.Config.ClusterID != "uid-m" {
				t.Errorf("the ID of the cluster is known then, got %q", o.Config.ClusterID)
			}
		})
	}
}

func TestDryRun(t *testing.T) {
	o, out := options(t, nil)
	o.DryRun = true
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# directory " + o.Layout.Dir, "karmada-agent --karmada-kubeconfig=", "# control plane, by this command", "kind: CertificateSigningRequest", "generateName: m-",
		"# cluster, by the agent (create)", "name: karmada-m", "name: karmada-impersonator", "kind: ClusterRoleBinding",
		"# control plane, by the agent", "kind: Cluster\n", "syncMode: Pull", "id: uid-m",
		"# ClusterRole/system:karmada:m:agent\n", "# control plane, by the agent, with the tokens in it\napiVersion: v1\nkind: Secret\n", "name: m-impersonator",
		"type: kubernetes.io/service-account-token",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "null") {
		t.Errorf("what is not known yet is left out:\n%s", out.String())
	}
	if _, err := os.Stat(o.Layout.Dir); !os.IsNotExist(err) {
		t.Error("a dry run makes nothing on this host")
	}
	var list corev1.NamespaceList
	if err := o.Member.Client.List(t.Context(), &list, &client.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("a dry run makes nothing in the cluster: %v, %v", list.Items, err)
	}
}

func TestShellQuoted(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command []string
		want    string
	}{
		"Plain": {"Nothing to quote.", []string{"/bin/karmada", "karmada-agent", "--a=b:1,c"}, "/bin/karmada karmada-agent --a=b:1,c"},
		"Star":  {"The shell would look for files.", []string{"k", "--controllers=*,x"}, "k '--controllers=*,x'"},
		"Space": {"One word.", []string{"k", "a b"}, "k 'a b'"},
		"Quote": {"It ends a quoted word.", []string{"k", "a'b"}, `k 'a'\''b'`},
		"Empty": {"It is a word, too.", []string{"k", ""}, "k ''"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := shellQuoted(tc.command); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	other := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member3"}}
	other.Spec.ID, other.Spec.SyncMode = "uid-m", clusterv1alpha1.Pull
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}, "m", &registration.TakenError{Identity: registration.Identity{Name: "m", ID: "uid-m"}, By: other})
	push := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	push.Spec.ID, push.Spec.SyncMode = "uid-m", clusterv1alpha1.Push
	entered := push.DeepCopy()
	entered.Spec.SyncMode = clusterv1alpha1.Pull

	cases := map[string]struct {
		reason  string
		known   []client.Object
		refusal error
		change  func(o *Options, res *localagent.Result)
		ended   bool // the command is, before the agent is started
		err     string
		says    string
		left    bool // the directory
	}{
		"OtherName": {reason: "The other is named, and what an administrator can remove.", refusal: refusal, err: "this cluster is registered as member3", says: "ClusterRole/system:karmada:m:agent"},
		"Push":      {reason: "The rights of a name that is somebody else's are not this run's to speak of.", known: []client.Object{push}, err: "registered in Push mode"},
		"Old":       {reason: "An agent that was there before is not removed.", refusal: refusal, change: func(_ *Options, res *localagent.Result) { res.New = false }, err: "member3", left: true},
		"Ended":     {reason: "Who ends the command wants nothing of it.", ended: true, change: func(o *Options, _ *localagent.Result) { o.Print = true }, err: "canceled", says: "karmadactl unregister m --karmada-config="},
		"Entered":   {reason: "A Cluster that is there needs its agent.", ended: true, known: []client.Object{entered}, change: func(o *Options, _ *localagent.Result) { o.Print = true }, err: "run this again to go on", left: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, _ := options(t, nil)
			errOut := &bytes.Buffer{}
			o.ErrOut = errOut
			o.Config.ClusterID, o.Config.Cluster = "uid-m", "m"
			if err := os.MkdirAll(filepath.Dir(o.Layout.Credential()), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{o.Layout.ConfigFile(), o.Layout.Credential(), o.Layout.PendingKey()} {
				if err := os.WriteFile(file, []byte("kind: KarmadaAgent\ncluster: m\nclusterID: uid-m\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			scheme, err := registration.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			plane := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.known...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					if tc.refusal != nil {
						return tc.refusal
					}
					return c.Create(ctx, obj, opts...)
				},
			}).Build()
			res := localagent.Result{Config: o.Config, New: true, Enrolled: true}
			if tc.change != nil {
				tc.change(o, &res)
			}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if tc.ended {
				end()
			}
			_, err = o.enter(ctx, plane, res)
			if err == nil {
				t.Fatalf("%s\nit is entered", tc.reason)
			}
			err = o.undo(ctx, plane, res, err)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if said := errOut.String(); !strings.Contains(said, tc.says) || tc.says == "" && said != "" {
				t.Errorf("%s\nsaid %q, want %q", tc.reason, said, tc.says)
			}
			if _, err := os.Stat(o.Layout.Dir); (err == nil) != tc.left {
				t.Errorf("%s\nthe directory: %v", tc.reason, err)
			}
		})
	}
}
