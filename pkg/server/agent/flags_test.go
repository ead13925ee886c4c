package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
)

func TestFlagTable(t *testing.T) {
	roletest.FlagTable(t, "testdata/flags.tsv", roletest.Sets(t, NewFlags()))
}

func TestControllerTable(t *testing.T) {
	// A transcription of spec: behaviour/02 2.0.
	roletest.ControllerTable(t, controllers(),
		[]string{"certRotation", "clusterStatus", "endpointsliceCollect", "execution", "serviceExport", "workStatus"},
		[]string{"certRotation"})
}

const kubeconfigText = `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
- {name: proxied, cluster: {server: "https://127.0.0.1:2", proxy-url: "http://proxy.example:3128"}}
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u}}
- {name: two, context: {cluster: proxied, user: u}}
current-context: %s
`

// kubeconfigs writes two kubeconfigs and returns flags that name them.
func kubeconfigs(t *testing.T, member string) []string {
	t.Helper()
	dir := t.TempDir()
	var args []string
	for flag, context := range map[string]string{"kubeconfig": member, "karmada-kubeconfig": "one"} {
		file := filepath.Join(dir, flag)
		if err := os.WriteFile(file, []byte(strings.Replace(kubeconfigText, "%s", context, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--"+flag+"="+file)
	}
	return args
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason  string
		args    []string
		without bool // kubeconfigs
		errs    []string
	}{
		"Usual": {reason: "What register passes.", args: []string{"--cluster-name=member3", "--controllers=*,certRotation", "--cluster-labels=a=b,c=d", "--cluster-zones=x,y"}},
		"Bare": {
			reason: "All that is missing is told at once.", without: true,
			errs: []string{"--cluster-name", "--karmada-kubeconfig", "--kubeconfig"},
		},
		"Everything": {
			reason: "All that is wrong is told at once.",
			args: []string{
				"--cluster-name=Member", "--cluster-namespace=A", "--cluster-api-endpoint=10.0.0.1:6443", "--proxy-server-address=http://u:s3cret@proxy:1",
				"--report-secrets=None,KubeCredentials", "--cluster-labels=a b=c", "--cluster-lease-renew-interval-fraction=1", "--cluster-lease-duration=0s",
				"--cluster-status-update-frequency=0s", "--cert-rotation-checking-interval=0s", "--cert-rotation-remaining-time-threshold=1", "--karmada-kubeconfig-namespace=",
				"--concurrent-work-syncs=0", "--concurrent-cluster-syncs=0", "--leader-elect-renew-deadline=20s", "--controllers=nope", "--karmada-context=nope",
			},
			errs: []string{
				"invalid cluster name(Member)", "--cluster-namespace", "--cluster-api-endpoint", "--proxy-server-address", "excludes the others", "--cluster-labels",
				"--cluster-lease-renew-interval-fraction", "--cluster-lease-duration", "--cluster-status-update-frequency", "--cert-rotation-checking-interval",
				"--cert-rotation-remaining-time-threshold", "--karmada-kubeconfig-namespace", "--concurrent-work-syncs", "--concurrent-cluster-syncs",
				"--leader-elect-lease-duration", "nope", "--karmada-kubeconfig",
			},
		},
		"Report":     {reason: "A secret that does not exist.", args: []string{"--cluster-name=a", "--report-secrets=Everything"}, errs: []string{`"Everything"`, `"KubeCredentials"`}},
		"NotANumber": {reason: "It compares with nothing.", args: []string{"--cluster-name=a", "--cluster-lease-renew-interval-fraction=NaN"}, errs: []string{"between 0 and 1"}},
		"Arguments":  {reason: "There are none.", args: []string{"member3"}, errs: []string{"member3"}},
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if !tc.without {
				args = append(kubeconfigs(t, "one"), args...)
			}
			_, err := Parse(args, prometheus.NewRegistry())
			if (err == nil) != (len(tc.errs) == 0) {
				t.Fatalf("got error: %v\n%s", err, tc.reason)
			}
			for _, want := range tc.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q\n%s\n%v", want, tc.reason, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	cases := map[string]struct {
		reason string
		member string // context of its kubeconfig
		args   []string
		want   registration.Entry
	}{
		"Default": {
			reason: "Both secrets are reported, and the address is that by which the agent itself reaches the cluster.", member: "one",
			want: registration.Entry{Identity: registration.Identity{Name: "m", ID: "uid", Mode: "Pull", Endpoint: "https://127.0.0.1:1"}, Namespace: "karmada-cluster", Credentials: true, Impersonator: true},
		},
		"Given": {
			reason: "What is said about the cluster is entered.", member: "one",
			args: []string{"--cluster-api-endpoint=https://m.example:6443", "--proxy-server-address=http://p:1", "--cluster-provider=p", "--cluster-region=r", "--cluster-zones=x,y", "--cluster-labels=a=b", "--report-secrets=KubeImpersonator", "--cluster-namespace=other"},
			want: registration.Entry{
				Identity:  registration.Identity{Name: "m", ID: "uid", Mode: "Pull", Endpoint: "https://m.example:6443"},
				Namespace: "other", Impersonator: true, ProxyURL: "http://p:1", Provider: "p", Region: "r", Zones: []string{"x", "y"}, Labels: map[string]string{"a": "b"},
			},
		},
		"ProxyOfKubeconfig": {
			reason: "That of the kubeconfig wins (behaviour/11 11.1).", member: "two", args: []string{"--proxy-server-address=http://p:1", "--report-secrets=None"},
			want: registration.Entry{Identity: registration.Identity{Name: "m", ID: "uid", Mode: "Pull", Endpoint: "https://127.0.0.1:2"}, Namespace: "karmada-cluster", ProxyURL: "http://proxy.example:3128"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(append(append(kubeconfigs(t, tc.member), "--cluster-name=m"), tc.args...), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.entry("uid")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// An agent that asks for more than its rights gets nothing.
func TestManagerAsksForItsOwn(t *testing.T) {
	c, err := Parse(append(kubeconfigs(t, "one"), "--cluster-name=m"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.managerOptions(klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	if o.LeaderElectionID != "karmada-agent-m" || o.LeaderElectionNamespace != "karmada-system" {
		t.Errorf("lease %s/%s", o.LeaderElectionNamespace, o.LeaderElectionID)
	}
	var namespaces []string
	for n := range o.Cache.DefaultNamespaces {
		namespaces = append(namespaces, n)
	}
	if diff := cmp.Diff([]string{"karmada-es-m"}, namespaces); diff != "" {
		t.Errorf("only the execution namespace is watched (-want +got):\n%s", diff)
	}
	for obj, by := range o.Cache.ByObject {
		if got := by.Field.String(); got != "metadata.name=m" {
			t.Errorf("of %T, %q is watched", obj, got)
		}
	}
}

func TestCommand(t *testing.T) {
	var out bytes.Buffer
	cmd, err := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetArgs([]string{"--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Usage:\n  karmada-agent [flags]\n", "\nAvailable Commands:\n", "\nGeneric flags:\n", "\nLogs flags:\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not contain %q:\n%s", want, out.String())
		}
	}
}
