package join

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var errBoom = errors.New("boom")

// kubeconfig writes one for a server, and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.config")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestToOptions(t *testing.T) {
	usual := registration.Push{Name: "m", Namespace: "karmada-cluster", Labels: map[string]string{}}
	cases := map[string]struct {
		reason string
		name   string
		args   []string
		server string
		want   registration.Push
		notes  []string
		err    string
	}{
		"Usual": {reason: "The contract's defaults.", want: usual},
		"All": {
			reason: "What was asked for is in the request.",
			args:   []string{"--cluster-namespace=n", "--cluster-provider=p", "--cluster-region=r", "--cluster-zones=a,b", "--cluster-zones=c", "--labels=k=v,l=w", "--dry-run", "--karmada-as=u", "--karmada-as-group=g", "--karmada-as-group=h", "--karmada-as-uid=1"},
			want:   registration.Push{Name: "m", Namespace: "n", NamespaceGiven: true, Provider: "p", Region: "r", Zones: []string{"a", "b", "c"}, Labels: map[string]string{"k": "v", "l": "w"}, DryRun: true},
		},
		"SystemNamespace": {reason: "The contract only warns.", args: []string{"--cluster-namespace=karmada-system"}, want: func() registration.Push { p := usual; p.Namespace, p.NamespaceGiven = "karmada-system", true; return p }(), notes: []string{"the namespace of the control plane's own components"}},
		"Loopback":        {reason: "It is the control plane's own there.", server: "https://127.0.0.1:6443", want: usual, notes: []string{"is an address of its own host there"}},
		"Plain":           {reason: "Tokens would be read by others.", server: "http://10.0.0.2:8080", want: usual, notes: []string{"has no TLS"}},
		"LongName":        {reason: "Other names are made of it.", name: strings.Repeat("a", 49), err: "invalid cluster name("},
		"BadName":         {reason: "It is no DNS label.", name: "a.b", err: "invalid cluster name(a.b)"},
		"NoKubeconfig":    {reason: "The default one is somebody's.", args: []string{"--cluster-kubeconfig="}, err: "--cluster-kubeconfig is required"},
		"Namespace":       {reason: "There can be no such namespace.", args: []string{"--cluster-namespace=A"}, err: "--cluster-namespace=A: "},
		"ExecutionSpace":  {reason: "It goes with a cluster.", args: []string{"--cluster-namespace=karmada-es-x"}, err: "choose another"},
		"Region":          {reason: "The server would refuse it, later.", args: []string{"--cluster-region=a b"}, err: "--cluster-region=a b: "},
		"Zones":           {reason: "The server would refuse it, later.", args: []string{"--cluster-zones=a,b/c"}, err: "--cluster-zones=b/c: "},
		"Labels":          {reason: "The server would refuse it, later.", args: []string{"--labels=a b=c"}, err: "--labels: Invalid value"},
		"Wait":            {reason: "There is no such wait.", args: []string{"--wait=-1s"}, err: "negative"},
		"Output":          {reason: "There is no such format.", args: []string{"-o", "xml"}, err: `output format "xml"`},
		"Groups":          {reason: "Nobody has them.", args: []string{"--karmada-as-group=g"}, err: "need --karmada-as"},
		"Credentials":     {reason: "Everybody would see them.", server: "https://a:s3cret@10.0.0.2", err: `use context "x" of kubeconfig `},
		"Context":         {reason: "It is not there.", args: []string{"--cluster-context=y"}, err: `context "y" does not exist in kubeconfig `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", kubeconfig(t, "https://192.0.2.77:5443"))
			t.Setenv("HTTPS_PROXY", "")
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			f := factory.New(factory.Options{Program: "karmadactl", ErrOut: streams.ErrOut})
			cmd, err := NewCmd(f, streams, "karmadactl")
			if err != nil {
				t.Fatal(err)
			}
			server := tc.server
			if server == "" {
				server = "https://10.0.0.2:6443"
			}
			flags := &Flags{}
			cmd.ResetFlags()
			flags.AddFlags(cmd.Flags())
			if err := cmd.ParseFlags(append([]string{"--cluster-kubeconfig=" + kubeconfig(t, server)}, tc.args...)); err != nil {
				t.Fatal(err)
			}
			cluster := tc.name
			if cluster == "" {
				cluster = "m"
			}
			o, err := flags.ToOptions(f, streams, cluster)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want an error with %q: %s", err, tc.err, tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if len(want.Labels) == 0 {
				want.Labels = o.Request.Labels // none, in whatever form
			}
			if diff := cmp.Diff(want, o.Request); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(o.Notes) != len(tc.notes) {
				t.Errorf("notes %q, want %q: %s", o.Notes, tc.notes, tc.reason)
			}
			for i := range min(len(o.Notes), len(tc.notes)) {
				if !strings.Contains(o.Notes[i], tc.notes[i]) {
					t.Errorf("note %q, want %q in it", o.Notes[i], tc.notes[i])
				}
			}
		})
	}
}

// registrar answers always the same.
type registrar struct {
	plan registration.Plan
	err  error
}

func (r registrar) Join(context.Context, registration.Push) (registration.Plan, error) {
	return r.plan, r.err
}

func TestRun(t *testing.T) {
	m := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	ready := m.DeepCopy()
	ready.Labels = map[string]string{"ready": "yes"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Data: map[string][]byte{"token": []byte("s3cret")}}
	plan := registration.Plan{
		Member:       []registration.Change{{Action: registration.Create, Object: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "karmada-m"}}}},
		ControlPlane: []registration.Change{{Action: registration.Update, Object: secret}, {Action: registration.Create, Object: m}},
		Cluster:      m,
	}
	notReady := &registration.NotReadyError{Name: "m", Why: "it is down"}
	cases := map[string]struct {
		reason      string
		options     Options
		err         error // of joining
		readyErr    error
		out, errOut string
		want        error
		waits       int
	}{
		"Text":     {reason: "Scripts match this line.", options: Options{Wait: 1}, out: "cluster(m) is joined successfully\n", waits: 1},
		"NoWait":   {reason: "0 does not wait.", out: "cluster(m) is joined successfully\n"},
		"NotReady": {reason: "Joined it is, and that is said; but it cannot be used.", options: Options{Wait: 1}, readyErr: notReady, out: "cluster(m) is joined successfully\n", want: notReady, waits: 1},
		"Failed":   {reason: "Nothing is said that is not so.", options: Options{Wait: 1}, err: errBoom, want: errBoom},
		"Name":     {reason: "Programs get what they asked for.", options: Options{Wait: 1, Output: "name"}, out: "cluster.cluster.karmada.io/m\n", errOut: "cluster(m) is joined successfully\n", waits: 1},
		"Notes":    {reason: "They are not where output is.", options: Options{Notes: []string{"n"}}, out: "cluster(m) is joined successfully\n", errOut: "note: n\n"},
		"YAML": {
			reason: "It is the Cluster as it is then.", options: Options{Wait: 1, Output: "yaml"}, waits: 1, errOut: "cluster(m) is joined successfully\n",
			out: "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  labels:\n    ready: \"yes\"\n  name: m\nspec:\n  syncMode: \"\"\n",
		},
		"DryRun": {
			reason: "Both sides are shown, and no secret.", options: Options{Wait: 1, Request: registration.Push{DryRun: true}},
			out: "---\n# member cluster: create\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: karmada-m\n  namespace: ns\n" +
				"---\n# control plane: update\napiVersion: v1\nkind: Secret\nmetadata:\n  name: m\n  namespace: ns\nstringData:\n  token: <not shown>\n" +
				"---\n# control plane: create\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: m\nspec:\n  syncMode: \"\"\n",
		},
		"DryRunName": {reason: "A list of what there is.", options: Options{Output: "name", Request: registration.Push{DryRun: true}}, out: "serviceaccount/karmada-m\nsecret/m\ncluster.cluster.karmada.io/m\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := tc.options
			o.Request.Name, o.IOStreams, o.Registrar = "m", streams, registrar{plan, tc.err}
			waits := 0
			o.WaitReady = func(context.Context) (*clusterv1alpha1.Cluster, error) {
				waits++
				return ready, tc.readyErr
			}
			if err := o.Run(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v: %s", err, tc.want, tc.reason)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("stdout: %s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.errOut, errOut.String()); diff != "" {
				t.Errorf("stderr: %s (-want +got):\n%s", tc.reason, diff)
			}
			if waits != tc.waits {
				t.Errorf("waited %d times, want %d: %s", waits, tc.waits, tc.reason)
			}
		})
	}
}

func TestDryRunJSON(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string][]byte{"token": []byte("s3cret")}}
	o := Options{IOStreams: streams, Output: "json", Request: registration.Push{DryRun: true}, Registrar: registrar{plan: registration.Plan{Member: []registration.Change{{Action: registration.Keep, Object: secret}}}}}
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"action": "keep"`) || !strings.Contains(got, `"controlPlane"`) || strings.Contains(got, "s3cret") || strings.Contains(got, "czNjcmV0") {
		t.Errorf("got %s", got)
	}
}

func TestArguments(t *testing.T) {
	cases := map[string][]string{"cluster name is required": nil, "only the cluster name is allowed as an argument": {"a", "b"}}
	for _, want := range slices.Sorted(maps.Keys(cases)) {
		if err := factory.OneClusterName(nil, cases[want]); err == nil || err.Error() != want {
			t.Errorf("got %v, want the contract's %q", err, want)
		}
	}
	if err := factory.OneClusterName(nil, []string{"a"}); err != nil {
		t.Error(err)
	}
}
