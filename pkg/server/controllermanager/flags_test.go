package controllermanager_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/controllermanager"
	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
)

func TestFlagTable(t *testing.T) {
	sets := roletest.Sets(t, controllermanager.NewFlags())
	roletest.FlagTable(t, "testdata/flags.tsv", sets)
	if diff := cmp.Diff([]string{"generic", "cluster failover", "logs"}, sets.Order); diff != "" {
		t.Errorf("flag sets (-want +got):\n%s", diff)
	}
}

func TestEveryIdleFlagExists(t *testing.T) {
	sets := roletest.Sets(t, controllermanager.NewFlags())
	for _, name := range controllermanager.Unread() {
		if sets.FlagSets["generic"].Lookup(name) == nil && sets.FlagSets["cluster failover"].Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		gate   bool // the process has one
		config bool // the process has one
		errs   []string
	}{
		"Defaults": {reason: "With a control plane, no flag is needed.", config: true},
		"NoControlPlane": {
			reason: "Without one, the flag that says where it is must be given.",
			errs:   []string{"--kubeconfig"},
		},
		"Everything": {
			reason: "All that is wrong is told at once, also what is only found by reading files.",
			args: []string{
				"--kubeconfig=/does/not/exist", "--controllers=*,nope", "--feature-gates=Flying=true",
				"--leader-elect-lease-duration=1s", "--health-probe-bind-address=nowhere", "--kube-api-burst=-1",
				"--concurrent-work-syncs=0", "--resync-period=-1s", "--no-execute-taint-eviction-purge-mode=Hard",
				"--resource-eviction-rate=-1", "--rate-limiter-qps=0", "--skipped-propagating-apis=/", "--logging-format=xml",
				"--cluster-api-context=c", "--horizontal-pod-autoscaler-tolerance=-1", "--skipped-propagating-namespaces=(",
			},
			errs: []string{
				"/does/not/exist", "nope", "Flying", "--leader-elect-lease-duration", "--health-probe-bind-address", "--kube-api-burst",
				"--concurrent-work-syncs", "--resync-period", "Gracefully", "--resource-eviction-rate", "--rate-limiter-qps",
				"--skipped-propagating-apis", "--logging-format", "--cluster-api-kubeconfig", "--horizontal-pod-autoscaler-tolerance",
				"--skipped-propagating-namespaces", "16 invalid flags",
			},
		},
		"NotBuiltYet": {
			reason: "Known controllers and gates are accepted, whether or not this version has them.",
			config: true,
			args:   []string{"--controllers=*,hpaScaleTargetMarker,-namespace", "--feature-gates=AllAlpha=true,AllBeta=true,WorkloadAffinity=true"},
		},
		"AlphaLogging": {
			reason: "A gate of this very command line counts for its other flags.",
			config: true,
			args:   []string{"--feature-gates=LoggingAlphaOptions=true", "--log-text-split-stream"},
		},
		"AlphaLoggingOff": {
			reason: "Without its gate an alpha option is refused.",
			config: true,
			args:   []string{"--log-text-split-stream"},
			errs:   []string{"--log-text-split-stream", "LoggingAlphaOptions"},
		},
		"SharedGate": {
			reason: "Gates of the whole process are not one role's to set.",
			config: true, gate: true,
			args: []string{"--feature-gates=Failover=true"},
			errs: []string{"--feature-gates", "set already"},
		},
		"SharedGateUnknown": {
			reason: "An unknown gate is an error there as well.",
			config: true, gate: true,
			args: []string{"--feature-gates=Flying=true"},
			errs: []string{"Flying"},
		},
		"UnknownFlag": {reason: "There are no other flags.", config: true, args: []string{"--nope"}, errs: []string{"--nope"}},
		"Arguments":   {reason: "There are no arguments.", config: true, args: []string{"now"}, errs: []string{"now"}},
		"Underscores": {reason: "Underscores stand for dashes.", config: true, args: []string{"--kube_api_qps=5"}},
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p controllermanager.Process
			if tc.config {
				p.RESTConfig = &rest.Config{Host: "http://127.0.0.1:1"}
			}
			if tc.gate {
				gate, err := features.New()
				if err != nil {
					t.Fatal(err)
				}
				p.Gate = gate
			}
			_, err := controllermanager.Parse(tc.args, p)
			if (err == nil) != (len(tc.errs) == 0) {
				t.Fatalf("got error: %v\n%s", err, tc.reason)
			}
			for _, want := range tc.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %q\n%s\n%v", want, tc.reason, err)
				}
			}
		})
	}
}

func TestManagerOptions(t *testing.T) {
	c, err := controllermanager.Parse([]string{
		"--concurrent-work-syncs=11", "--concurrent-resourcebinding-syncs=12", "--concurrent-clusterresourcebinding-syncs=13",
		"--concurrent-cluster-syncs=14", "--concurrent-namespace-syncs=15", "--feature-gates=ControllerPriorityQueue=false",
	}, controllermanager.Process{RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.ManagerOptions(klog.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"Work.work.karmada.io": 11, "ResourceBinding.work.karmada.io": 12, "ClusterResourceBinding.work.karmada.io": 13,
		"Cluster.cluster.karmada.io": 14, "Namespace": 15,
	}
	if diff := cmp.Diff(want, o.Controller.GroupKindConcurrency); diff != "" {
		t.Errorf("concurrency (-want +got):\n%s", diff)
	}
	for gk := range want {
		if !slices.Contains(controllermanager.SchemeKinds(o.Scheme), gk) {
			t.Errorf("the scheme has no kind %s: its concurrency would have no effect", gk)
		}
	}
	if *o.Controller.UsePriorityQueue {
		t.Error("the feature gate decides about priority queues")
	}
	if o.LeaderElectionID != "karmada-controller-manager" || o.LeaderElectionNamespace != "karmada-system" {
		t.Errorf("lease %s/%s", o.LeaderElectionNamespace, o.LeaderElectionID)
	}
	if c.RESTConfig().QPS > 0 {
		t.Error("requests to the control plane are not limited by default")
	}
}

func TestCommandHelp(t *testing.T) {
	var out bytes.Buffer
	cmd, err := controllermanager.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetArgs([]string{"--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Usage:\n  karmada-controller-manager [flags]\n", "\nAvailable Commands:\n",
		"\nGeneric flags:\n", "\nCluster failover flags:\n", "\nLogs flags:\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not contain %q:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(line)) > 81 { // with the line's end
			t.Errorf("line of %d columns: %s", len([]rune(line))-1, line)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	var out bytes.Buffer
	cmd, err := controllermanager.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetArgs([]string{"--kubeconfig=/does/not/exist", "--controllers=nope"})
	err = cmd.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "2 invalid flags:\n") {
		t.Errorf("both mistakes are to be told, got: %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("the error is for the caller to print, printed: %s", out.String())
	}
}
