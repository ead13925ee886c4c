package unregister

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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

var clusters = schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}

func clientOf(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := registration.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func cluster(mode clusterv1alpha1.ClusterSyncMode, id string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode, ID: id}}
}

// system are objects that the agent made in the cluster.
func system() []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"karmada.io/system": "true"}}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-m"}},
		&corev1.Namespace{ObjectMeta: meta("", "karmada-cluster")},
		&corev1.ServiceAccount{ObjectMeta: meta("karmada-cluster", "karmada-m")},
		&corev1.ServiceAccount{ObjectMeta: meta("karmada-cluster", "karmada-impersonator")},
	}
}

func TestRun(t *testing.T) {
	forbidden := apierrors.NewForbidden(clusters, "m", errors.New("no rights"))
	refuse := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*clusterv1alpha1.Cluster); ok {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		}}
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m", Name: "w"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"}}`)}}}
	stuck := cluster("Pull", "uid-m")
	stuck.Finalizers = []string{"karmada.io/cluster-controller"}

	cases := map[string]struct {
		reason  string
		objects []client.Object
		funcs   interceptor.Funcs
		change  func(o *Options)
		err     string
		says    string
		left    bool // the Cluster is there afterwards
		kept    bool // nothing was removed in the cluster
	}{
		"Leaves":     {reason: "The usual one.", objects: []client.Object{cluster("Pull", "uid-m")}},
		"Gone":       {reason: "What is gone is no error; what is left here is removed.", says: "RoleBinding/karmada-es-m/system:karmada:m:agent-work\nan administrator removes them: karmadactl unregister m --karmada-config="},
		"GoneRights": {reason: "An administrator leaves no access rules.", change: func(o *Options) { o.Administrator = true }, says: "is gone at the control plane already\n"},
		"Rights":     {reason: "An agent's rights go with its Cluster.", objects: []client.Object{cluster("Pull", "uid-m")}, funcs: refuse(forbidden), says: "no rights any more", left: true},
		"Admin":      {reason: "An administrator without rights is another matter.", objects: []client.Object{cluster("Pull", "uid-m")}, funcs: refuse(forbidden), change: func(o *Options) { o.Administrator = true }, err: "nothing was removed", left: true, kept: true},
		"Push":       {reason: "That is unjoin's (cli/commands.md 3.5).", objects: []client.Object{cluster("Push", "uid-m")}, err: `use "karmadactl unjoin m"`, left: true, kept: true},
		"OtherID":    {reason: "The kubeconfig is that of another cluster.", objects: []client.Object{cluster("Pull", "uid-x")}, err: "has ID uid-x", left: true, kept: true},
		"Expired":    {reason: "Somebody with rights has to help.", objects: []client.Object{cluster("Pull", "uid-m")}, funcs: refuse(apierrors.NewUnauthorized("x")), err: "--karmada-config", left: true, kept: true},
		"Away":       {reason: "Nothing is removed while the control plane still believes in the cluster.", objects: []client.Object{cluster("Pull", "uid-m")}, funcs: refuse(apierrors.NewServiceUnavailable("x")), err: "add --force", left: true, kept: true},
		"AwayOK":     {reason: "Unless that is wanted.", objects: []client.Object{cluster("Pull", "uid-m")}, funcs: refuse(apierrors.NewServiceUnavailable("x")), change: func(o *Options) { o.Force = true }, says: "because of --force", left: true},
		"Stuck":      {reason: "The wait is bounded, and the next command is named.", objects: []client.Object{stuck}, err: "karmadactl unregister m --force --karmada-config=", left: true, kept: true},
		"Announce":   {reason: "Without a terminal it is said what becomes of what was propagated.", objects: []client.Object{cluster("Pull", "uid-m"), work}, says: "unregister m --cascade=orphan"},
		"Orphan":     {reason: "What was said is said to the control plane.", objects: []client.Object{stuck, work}, change: func(o *Options) { o.Cascade = "orphan" }, err: "--cascade=orphan", left: true, kept: true},
		"Interrupted": {
			reason: "A registration that never got credentials has nothing to leave.",
			change: func(o *Options) {
				o.ControlPlane, o.Agent = nil, &localagent.Config{ClusterID: "uid-m", External: true}
			}, says: "nothing to leave",
		},
		"NoWay":  {reason: "Nobody knows the control plane.", change: func(o *Options) { o.ControlPlane = nil }, err: "give --karmada-config", kept: true},
		"DryRun": {reason: "Nothing is removed.", objects: []client.Object{cluster("Pull", "uid-m")}, change: func(o *Options) { o.DryRun = true }, left: true, kept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane := clientOf(t, tc.funcs, tc.objects...)
			member := clientOf(t, interceptor.Funcs{}, system()...)
			var out, errOut bytes.Buffer
			o := &Options{
				Program: "karmadactl", Cluster: "m", Namespace: "karmada-cluster",
				Member: registration.Member{
					API:      registration.API{Client: member},
					Contents: func(context.Context, string) ([]string, error) { return nil, nil },
				},
				MemberClient: kubefake.NewClientset(), AgentName: "karmada-agent", AgentNamespace: "karmada-system",
				ControlPlane: &rest.Config{Host: "https://c"}, Connect: func(*rest.Config) (client.Client, error) { return plane, nil },
				Wait: 50 * time.Millisecond, Explain: func(err error) error { return err },
				Layout:    localagent.Layout{Dir: filepath.Join(t.TempDir(), "none")},
				IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut},
			}
			if tc.change != nil {
				tc.change(o)
			}
			err := o.Run(t.Context())
			switch {
			case tc.err == "" && err != nil, tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if !strings.Contains(errOut.String(), tc.says) {
				t.Errorf("%s\nsaid %q, want %q", tc.reason, errOut.String(), tc.says)
			}
			if !o.DryRun && out.Len() > 0 {
				t.Errorf("the contract has no output, got %q", out.String())
			}
			var list clusterv1alpha1.ClusterList
			if err := plane.List(t.Context(), &list); err != nil || (len(list.Items) > 0) != tc.left {
				t.Errorf("%s\nthe control plane has %d Clusters, %v", tc.reason, len(list.Items), err)
			}
			if name == "Orphan" && list.Items[0].Annotations["cluster.karmadactl.io/cascade"] != "orphan" {
				t.Errorf("%s\ngot %v", tc.reason, list.Items[0].Annotations)
			}
			var accounts corev1.ServiceAccountList
			if err := member.List(t.Context(), &accounts); err != nil || (len(accounts.Items) > 0) != tc.kept {
				t.Errorf("%s\nthe cluster has %d ServiceAccounts, %v", tc.reason, len(accounts.Items), err)
			}
		})
	}
}

// Without the cluster it may still be known that there is nothing to do.
func TestGone(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:m:agent", Labels: map[string]string{"karmada.io/system": "true"}}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		asked   bool // there are credentials of an administrator
		dir     bool // was named
		dryRun  bool
		err     string
		says    string
		left    bool // the rights of the agent
	}{
		"Dir":     {reason: "A second run finds nothing, and that was wanted.", dir: true, says: "there is no agent in ", left: true, objects: []client.Object{role}},
		"Unknown": {reason: "The agent may be in the cluster.", err: "--cluster-kubeconfig is required to specify the cluster: no agent of cluster m is a process of this host", left: true, objects: []client.Object{role}},
		"Asked":   {reason: "The control plane knows, and what a refused agent left there goes.", asked: true, says: "cluster m is gone at the control plane already", objects: []client.Object{role}},
		"DryRun":  {reason: "It only looks.", asked: true, dryRun: true, says: "cluster m is gone", left: true, objects: []client.Object{role}},
		"There":   {reason: "Its agent is somewhere.", asked: true, objects: []client.Object{role, cluster("Pull", "uid-m")}, err: "cluster m is registered, and its agent is no process of this host", left: true},
		"Push":    {reason: "That is unjoin's.", asked: true, objects: []client.Object{role, cluster("Push", "uid-m")}, err: `use "karmadactl unjoin m"`, left: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane := clientOf(t, interceptor.Funcs{}, tc.objects...)
			var errOut bytes.Buffer
			o := &Options{
				Program: "karmadactl", Cluster: "m", DirGiven: tc.dir, DryRun: tc.dryRun, Layout: localagent.Layout{Dir: "/none"},
				Connect:   func(*rest.Config) (client.Client, error) { return plane, nil },
				IOStreams: genericiooptions.IOStreams{ErrOut: &errOut},
			}
			if tc.asked {
				o.ControlPlane, o.Administrator = &rest.Config{Host: "https://c"}, true
			}
			err := o.Run(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if !strings.Contains(errOut.String(), tc.says) {
				t.Errorf("%s\nsaid %q, want %q", tc.reason, errOut.String(), tc.says)
			}
			if err := plane.Get(t.Context(), client.ObjectKeyFromObject(role), &rbacv1.ClusterRole{}); (err == nil) != tc.left {
				t.Errorf("%s\nthe rights: %v", tc.reason, err)
			}
		})
	}
}

// agentDeployment is one as Karmada makes it.
func agentDeployment(cluster string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent", UID: "d"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Command:      []string{"/bin/karmada-agent", "--karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig", "--cluster-name=" + cluster},
				VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: "/etc/kubeconfig"}},
			}},
			Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "karmada-kubeconfig"}}}},
		}}},
	}
}

func TestDeployment(t *testing.T) {
	const kubeconfig = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://c:5443"}}],"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	secret := func(data string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"}, Data: map[string][]byte{"karmada-kubeconfig": []byte(data)}}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-sa"}}
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		host    string
		err     string
	}{
		"None":     {reason: "No agent runs in the cluster."},
		"Whole":    {reason: "Its credentials lead to the control plane.", objects: []runtime.Object{agentDeployment("m"), secret(kubeconfig), account}, host: "https://c:5443"},
		"Other":    {reason: "The agent of another cluster is not removed.", objects: []runtime.Object{agentDeployment("x"), secret(kubeconfig)}, err: `the agent of cluster "x"`},
		"NoSecret": {reason: "An earlier run was interrupted after the Cluster had gone.", objects: []runtime.Object{agentDeployment("m")}},
		"Damaged":  {reason: "It has to be said where the control plane is.", objects: []runtime.Object{agentDeployment("m"), secret("x")}, err: "give --karmada-config"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := kubefake.NewClientset(tc.objects...)
			o := &Options{Cluster: "m", MemberClient: c, AgentName: "karmada-agent", AgentNamespace: "karmada-system", Explain: func(err error) error { return err }}
			cfg, err := o.deploymentCredentials(t.Context())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				return
			}
			host := ""
			if cfg != nil {
				host = cfg.Host
			}
			if err != nil || host != tc.host {
				t.Errorf("%s\ngot %q, %v", tc.reason, host, err)
			}
			if err := o.removeDeployment(t.Context()); err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
			var left []string
			for _, what := range []func() error{
				func() error {
					_, err := c.AppsV1().Deployments("karmada-system").Get(t.Context(), "karmada-agent", metav1.GetOptions{})
					return err
				},
				func() error {
					_, err := c.CoreV1().Secrets("karmada-system").Get(t.Context(), "karmada-kubeconfig", metav1.GetOptions{})
					return err
				},
				func() error {
					_, err := c.CoreV1().ServiceAccounts("karmada-system").Get(t.Context(), "karmada-agent-sa", metav1.GetOptions{})
					return err
				},
			} {
				if err := what(); !apierrors.IsNotFound(err) {
					left = append(left, "something")
				}
			}
			if diff := cmp.Diff([]string(nil), left); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemovesTheAgentOfTheHost(t *testing.T) {
	l := localagent.Layout{Dir: filepath.Join(t.TempDir(), "m")}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.ConfigFile(), []byte("kind: KarmadaAgent\ncluster: m\nclusterID: uid-m\nexternal: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := localagent.Load(l)
	if err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	o := &Options{
		Cluster: "m", Namespace: "karmada-cluster", Agent: &cfg, Layout: l, MemberClient: kubefake.NewClientset(),
		Member:  registration.Member{API: registration.API{Client: clientOf(t, interceptor.Funcs{}, system()...)}, Contents: func(context.Context, string) ([]string, error) { return nil, nil }},
		Explain: func(err error) error { return err }, IOStreams: genericiooptions.IOStreams{ErrOut: &errOut},
	}
	if err := o.cleanUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Dir); !os.IsNotExist(err) {
		t.Error("the agent's directory is left")
	}
	if !strings.Contains(errOut.String(), "stop it there") {
		t.Errorf("who started it is told to stop it, got %q", errOut.String())
	}
}
