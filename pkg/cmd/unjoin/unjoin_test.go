package unjoin

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

func server(t *testing.T, id string, groups []string, objects ...client.Object) registration.API {
	t.Helper()
	scheme, err := registration.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID(id)}}
	return registration.API{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, system)...).Build(),
		Groups: func(context.Context) ([]string, error) { return groups, nil },
	}
}

func has(t *testing.T, c client.Client, obj client.Object) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// made is what join made in a member, as far as these tests look at it.
func made(namespace string) []client.Object {
	system := map[string]string{names.SystemLabel: names.True}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: system}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karmada-m", Labels: system}},
	}
}

func TestRun(t *testing.T) {
	now := metav1.Now()
	push := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u"}, Spec: clusterv1alpha1.ClusterSpec{ID: "id-m", SyncMode: clusterv1alpha1.Push}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		change(c)
		return c
	}
	asIs := func(*clusterv1alpha1.Cluster) {}
	stuck := func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{names.ClusterFinalizer} }
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m", Name: "w"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"Deployment","metadata":{"name":"web","namespace":"default"}}`)}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m", Labels: map[string]string{names.SystemLabel: names.True}}}

	down := &url.Error{Op: "Get", URL: "https://m", Err: errors.New("refused")}
	cases := map[string]struct {
		reason   string
		plane    []client.Object
		member   string // ID of the one that the kubeconfig leads to
		groups   []string
		fails    error  // what asking it ends with
		space    string // namespace of the accounts in it
		options  Options
		in       string
		gone     bool
		cleaned  bool
		cascade  string
		out, say []string
		err      string
	}{
		"Nothing":    {reason: "It is gone, and that is no error.", gone: true, say: []string{"cluster m is not registered"}},
		"Leftovers":  {reason: "A join that was interrupted may have left some.", plane: []client.Object{secret}, gone: true, say: []string{"cluster m is not registered"}},
		"Push":       {reason: "Success says nothing.", plane: []client.Object{push(asIs)}, gone: true},
		"Pull":       {reason: "An agent has to go, too.", plane: []client.Object{push(func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull })}, err: `remove it with "unregister m"`},
		"Member":     {reason: "What join made is removed.", plane: []client.Object{push(asIs)}, member: "id-m", gone: true, cleaned: true},
		"MemberOnly": {reason: "Also if the control plane has forgotten it.", member: "id-m", gone: true, cleaned: true, say: []string{"cluster m is not registered"}},
		"OtherNamespace": {
			reason: "The control plane knows which it was.", member: "id-m", space: "elsewhere", gone: true, cleaned: true,
			plane: []client.Object{push(func(c *clusterv1alpha1.Cluster) {
				c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "elsewhere", Name: "m"}
			})},
		},
		"WrongMember":  {reason: "Nothing is removed from somebody else.", plane: []client.Object{push(asIs)}, member: "id-x", err: "leads to another cluster: it has the ID id-x, and m has id-m"},
		"ControlPlane": {reason: "It is no member.", plane: []client.Object{push(asIs)}, member: "id-plane", err: "that is the control plane itself"},
		"OtherPlane":   {reason: "It is no member.", plane: []client.Object{push(asIs)}, member: "id-m", groups: []string{"work.karmada.io"}, err: "that is a Karmada control plane"},
		"Announced": {
			reason: "The contract deletes, and that is said with the way out.", plane: []client.Object{push(asIs), work}, gone: true,
			say: []string{"deleting what was propagated to cluster m: Deployment default/web; to leave it there: karmadactl unjoin m --cascade=orphan"},
		},
		"Asked": {
			reason: "Who can be asked is.", plane: []client.Object{push(stuck), work}, options: Options{Terminal: true}, in: "Orphan\n", cascade: "orphan",
			say: []string{"Type delete to delete it there, or orphan to leave it there"}, err: "has not gone in",
		},
		"AskedDelete": {reason: "And does as is said.", plane: []client.Object{push(asIs), work}, options: Options{Terminal: true}, in: "delete\n", gone: true, say: []string{"Type delete"}},
		"AskedNo":     {reason: "Anything else removes nothing.", plane: []client.Object{push(asIs), work}, options: Options{Terminal: true}, in: "y\n", say: []string{"Type delete"}, err: "nothing was removed"},
		"AskedEnd":    {reason: "Nor does the end.", plane: []client.Object{push(asIs), work}, options: Options{Terminal: true}, say: []string{"Type delete"}, err: "nothing was removed"},
		"Told":        {reason: "Who has said is not asked.", plane: []client.Object{push(stuck), work}, options: Options{Terminal: true, Cascade: "orphan"}, cascade: "orphan", err: "has not gone in"},
		"NotReady": {
			reason: "What cannot be reached cannot be deleted.", options: Options{Cascade: "delete"}, gone: true,
			plane: []client.Object{push(func(c *clusterv1alpha1.Cluster) { c.Status = clusterv1alpha1.ClusterStatus{} }), work},
			say: []string{
				"cluster m is not ready: what was propagated to it may stay there: Deployment default/web",
				"once the member answers: karmadactl unjoin m --cluster-kubeconfig=FILE\n",
			},
		},
		"Going": {
			reason: "Somebody has decided already.", options: Options{Terminal: true}, cascade: "orphan", err: "has not gone in",
			plane: []client.Object{push(func(c *clusterv1alpha1.Cluster) {
				stuck(c)
				c.DeletionTimestamp, c.Annotations = &now, map[string]string{names.ClusterCascadeAnnotation: "orphan"}
			}), work},
		},
		"Unreached": {
			reason: "A member that is down does not keep the control plane from forgetting it.", plane: []client.Object{push(asIs)}, member: "id-m", fails: down, gone: true,
			say: []string{
				"the member cannot be cleaned up now, cluster m is removed from the control plane alone: explained\n",
				"ServiceAccounts karmada-m and karmada-impersonator in namespace karmada-cluster, ClusterRole and ClusterRoleBinding karmada-controller-manager:karmada-m; to remove it once the member answers: karmadactl unjoin m\n",
			},
			err: "refused",
		},
		"UnreachedElsewhere": {
			reason: "Nobody will know where it was.", member: "id-m", space: "elsewhere", fails: down, gone: true, err: "refused",
			plane: []client.Object{push(func(c *clusterv1alpha1.Cluster) {
				c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "elsewhere", Name: "m"}
			})},
			say: []string{"karmadactl unjoin m --cluster-namespace=elsewhere\n"},
		},
		"UnreachedStuck": {
			reason: "There is a way out.", plane: []client.Object{push(stuck)}, member: "id-m", fails: down,
			say: []string{"cannot be cleaned up now"}, err: "karmadactl unjoin m --force",
		},
		"UnreachedForce": {
			reason: "And it leads out.", plane: []client.Object{push(stuck)}, member: "id-m", fails: down, options: Options{Force: true}, gone: true,
			say: []string{"once the member answers: karmadactl unjoin m\n"}, err: "refused",
		},
		"UnreachedDryRun": {
			reason: "It is seen beforehand.", plane: []client.Object{push(asIs)}, member: "id-m", fails: down, options: Options{DryRun: true},
			out: []string{"control plane: delete Cluster m"}, say: []string{"cannot be cleaned up now"}, err: "refused",
		},
		"Mistaken": {
			reason: "Who passes what leads nowhere may have meant another.", plane: []client.Object{push(asIs)}, member: "id-m",
			fails: &url.Error{Op: "Get", URL: "https://m", Err: &tls.CertificateVerificationError{Err: errors.New("of another CA")}}, say: []string{"nothing was removed"}, err: "of another CA",
		},
		"Refused": {
			reason: "It answers.", plane: []client.Object{push(asIs)}, member: "id-m", fails: apierrors.NewUnauthorized("who"), say: []string{"nothing was removed"}, err: "who",
		},
		"ForceAlone": {reason: "It is told what stays.", plane: []client.Object{push(stuck)}, options: Options{Force: true}, gone: true, say: []string{"once the member answers: karmadactl unjoin m --cluster-kubeconfig=FILE\n"}},
		"Stuck":      {reason: "The next commands are whole.", plane: []client.Object{push(stuck)}, member: "id-m", err: "to go on waiting: karmadactl unjoin m; to give the cluster up, with what may stay there: karmadactl unjoin m --force"},
		"Force":      {reason: "It goes whatever holds it.", plane: []client.Object{push(stuck)}, member: "id-m", options: Options{Force: true}, gone: true, cleaned: true, say: []string{"it is removed by force"}},
		"DryRun": {
			reason: "All that would go is shown, and stays.", plane: []client.Object{push(asIs), work, secret}, member: "id-m", options: Options{DryRun: true},
			out: []string{"control plane: delete Cluster m", "member cluster: delete Deployment default/web", "control plane: delete Secret karmada-cluster/m", "member cluster: delete ServiceAccount karmada-cluster/karmada-m", "member cluster: delete Namespace karmada-cluster"},
		},
		"DryRunOrphan": {
			reason: "What stays is shown as such.", plane: []client.Object{push(asIs), work}, options: Options{DryRun: true, Cascade: "orphan"},
			out: []string{"control plane: delete Cluster m", "member cluster: keep Deployment default/web"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var plane []client.Object
			for _, o := range tc.plane {
				copied, ok := o.DeepCopyObject().(client.Object)
				if !ok {
					t.Fatalf("%T is no object", o)
				}
				plane = append(plane, copied)
			}
			in, out, errOut := strings.NewReader(tc.in), &strings.Builder{}, &strings.Builder{}
			o := tc.options
			o.IOStreams = genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}
			o.Name, o.Namespace, o.Wait = "m", "karmada-cluster", time.Millisecond
			o.Explain = func(error) error { return errors.New("explained") }
			o.Line = func(extra ...string) string {
				return strings.Join(append([]string{"karmadactl unjoin m"}, extra...), " ")
			}
			o.ControlPlane = server(t, "id-plane", nil, plane...)
			var reached client.Client // whether or not the command reaches it
			space := tc.space
			if space == "" {
				space = "karmada-cluster"
			}
			if tc.member != "" {
				o.Member = &registration.Member{
					API:      server(t, tc.member, tc.groups, made(space)...),
					Contents: func(context.Context, string) ([]string, error) { return nil, nil },
				}
				reached = o.Member.Client
				if tc.fails != nil {
					c, ok := o.Member.Client.(client.WithWatch)
					if !ok {
						t.Fatalf("%T cannot fail", o.Member.Client)
					}
					o.Member.Client = interceptor.NewClient(c, interceptor.Funcs{
						Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
							return tc.fails
						},
					})
				}
			}
			err := o.Run(t.Context())
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q: %s", err, tc.err, tc.reason)
			}
			left := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
			if got := !has(t, o.ControlPlane.Client, left); got != tc.gone {
				t.Errorf("gone: %t, want %t: %s", got, tc.gone, tc.reason)
			}
			if got := left.Annotations[names.ClusterCascadeAnnotation]; got != tc.cascade {
				t.Errorf("cascade %q, want %q: %s", got, tc.cascade, tc.reason)
			}
			if name == "Leftovers" && has(t, o.ControlPlane.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m"}}) {
				t.Error("the Secret is left")
			}
			if tc.member != "" {
				for _, made := range made(space) {
					if got := !has(t, reached, made); got != tc.cleaned {
						t.Errorf("%T %s is removed: %t, want %t: %s", made, made.GetName(), got, tc.cleaned, tc.reason)
					}
				}
			}
			want := ""
			if len(tc.out) > 0 {
				want = strings.Join(tc.out, "\n") + "\n"
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("stdout: %s (-want +got):\n%s", tc.reason, diff)
			}
			for _, want := range tc.say {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("stderr %q, want %q in it: %s", errOut, want, tc.reason)
				}
			}
			if len(tc.say) == 0 && strings.Contains(errOut.String(), "Type ") {
				t.Errorf("it asks: %s", errOut)
			}
		})
	}
}

func TestToOptions(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x y.config")
	content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://c\"}}, {name: d, cluster: {server: \"https://d\"}}]\nusers: [{name: u, user: {token: t}}]\n" +
		"contexts: [{name: x, context: {cluster: c, user: u}}, {name: m, context: {cluster: d, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := "--cluster-kubeconfig=" + file
	cases := map[string]struct {
		reason string
		name   string
		args   []string
		server string
		line   string
		err    string
	}{
		"Bare":        {reason: "The member is not needed.", name: "m", line: "karmadactl unjoin m --force"},
		"ByName":      {reason: "A context of the cluster's name is meant.", name: "m", args: []string{kubeconfig}, server: "https://d", line: "karmadactl unjoin m '" + kubeconfig + "' --force"},
		"Current":     {reason: "If there is none, the current one is.", name: "other", args: []string{kubeconfig}, server: "https://c", line: "karmadactl unjoin other '" + kubeconfig + "' --force"},
		"ByFlag":      {reason: "Who says is taken at their word.", name: "m", args: []string{kubeconfig, "--cluster-context=x", "--cascade=delete", "--wait=5s"}, server: "https://c", line: "karmadactl unjoin m --cascade=delete --cluster-context=x '" + kubeconfig + "' --wait=5s --force"},
		"Wait":        {reason: "The contract's rule.", name: "m", args: []string{"--wait=0"}, err: "--wait=0s: it has to be more than 0"},
		"Cascade":     {reason: "There is no such way.", name: "m", args: []string{"--cascade=foreground"}, err: "want delete or orphan"},
		"Name":        {reason: "There can be no such cluster.", name: "M", err: "invalid cluster name(M)"},
		"Namespace":   {reason: "There can be no such namespace.", name: "m", args: []string{"--cluster-namespace=A"}, err: "--cluster-namespace=A: "},
		"ContextOnly": {reason: "Of which file?", name: "m", args: []string{"--cluster-context=x"}, err: "needs --cluster-kubeconfig"},
		"NoFile":      {reason: "It is not there.", name: "m", args: []string{"--cluster-kubeconfig=" + dir + "/none"}, err: "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", file)
			f := factory.New(factory.Options{Program: "karmadactl", ErrOut: io.Discard})
			flags := &Flags{Program: "karmadactl"}
			fs := pflag.NewFlagSet("unjoin", pflag.ContinueOnError)
			flags.AddFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			o, err := flags.ToOptions(f, genericiooptions.NewTestIOStreamsDiscard(), tc.name)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("got %v, want %q: %s", err, tc.err, tc.reason)
			}
			if err != nil {
				return
			}
			if (o.Member != nil) != (tc.server != "") || (o.Member != nil && o.Member.Endpoint.URL != tc.server) {
				t.Errorf("got %+v, want the member at %q: %s", o.Member, tc.server, tc.reason)
			}
			if got := o.Line("--force"); got != tc.line {
				t.Errorf("got %s, want %s: %s", got, tc.line, tc.reason)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{"cluster name is required": nil, "only the cluster name is allowed as an argument": {"a", "b"}} {
		if err := factory.OneClusterName(nil, args); err == nil || err.Error() != want {
			t.Errorf("got %v, want the contract's %q", err, want)
		}
	}
}

// A terminal that nobody answers on does not keep the command once it is interrupted.
func TestAskIsInterrupted(t *testing.T) {
	never, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	o := Options{Name: "m", IOStreams: genericiooptions.IOStreams{In: never, ErrOut: io.Discard}}
	if _, err := o.ask(ctx, []string{"Deployment default/web"}); err == nil {
		t.Error("an answer was found")
	}
}
