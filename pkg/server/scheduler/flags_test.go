package scheduler_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
	"github.com/karmadactl/karmadactl/pkg/server/scheduler"
)

func TestFlagTable(t *testing.T) {
	sets := roletest.Sets(t, scheduler.NewFlags())
	roletest.FlagTable(t, "testdata/flags.tsv", sets)
	if diff := cmp.Diff([]string{"generic", "logs"}, sets.Order); diff != "" {
		t.Errorf("flag sets (-want +got):\n%s", diff)
	}
}

func TestEveryIdleFlagExists(t *testing.T) {
	sets := roletest.Sets(t, scheduler.NewFlags())
	for _, name := range scheduler.Unread() {
		if sets.FlagSets["generic"].Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

func nowhere() scheduler.Process {
	return scheduler.Process{RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		alone  bool // there is no control plane
		errs   []string
	}{
		"Defaults":       {reason: "With a control plane, no flag is needed."},
		"NoControlPlane": {reason: "Without one, the flag that says where it is must be given.", alone: true, errs: []string{"--kubeconfig"}},
		"Master":         {reason: "Its address alone is enough.", alone: true, args: []string{"--master=http://127.0.0.1:1"}},
		"Everything": {
			reason: "All that is wrong is told at once, also what is only found by reading files.",
			alone:  true,
			args: []string{
				"--kubeconfig=/does/not/exist", "--plugins=*,-Nope", "--feature-gates=Flying=true", "--leader-elect-lease-duration=1s",
				"--health-probe-bind-address=nowhere", "--kube-api-burst=-1", "--rate-limiter-qps=0", "--logging-format=xml",
				"--scheduler-name=", "--scheduler-estimator-port=0", "--scheduler-estimator-timeout=0", "--scheduler-estimator-cert-file=a",
			},
			errs: []string{
				"/does/not/exist", "-Nope", "ClusterLocality", "Flying", "--leader-elect-lease-duration", "--health-probe-bind-address",
				"--kube-api-burst", "--rate-limiter-qps", "--logging-format", "--scheduler-name", "--scheduler-estimator-port",
				"--scheduler-estimator-timeout", "--scheduler-estimator-key-file", "12 invalid flags",
			},
		},
		"OneServer": {
			reason: "Probes and metrics may have one address: one server answers for both.",
			args:   []string{"--health-probe-bind-address=:10351", "--metrics-bind-address=:10351"},
		},
		"NoServer": {reason: "Both may be off.", args: []string{"--health-probe-bind-address=0", "--metrics-bind-address=0"}},
		"Collision": {
			reason: "Profiles are another matter.",
			args:   []string{"--enable-pprof", "--profiling-bind-address=:10351"}, errs: []string{"--health-probe-bind-address"},
		},
		"NotBuiltYet": {
			reason: "Known flags and gates are accepted, whether or not this version has what they are for.",
			args:   []string{"--scheduler-estimator-ca-file=a", "--disable-scheduler-estimator-in-pull-mode", "--feature-gates=AllAlpha=true,AllBeta=true"},
		},
		"Estimators": {
			reason: "Whoever relies on estimators must not be scheduled without them.",
			args:   []string{"--enable-scheduler-estimator"}, errs: []string{"--enable-scheduler-estimator", "leave it out"},
		},
		"UnknownFlag": {reason: "There are no other flags.", args: []string{"--nope"}, errs: []string{"--nope"}},
		"Arguments":   {reason: "There are no arguments.", args: []string{"now"}, errs: []string{"now"}},
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := nowhere()
			if tc.alone {
				p = scheduler.Process{}
			}
			_, err := scheduler.Parse(tc.args, p)
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

func TestCountsPending(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   bool
	}{
		"Default": {reason: "Nobody wants two bindings to take the same room.", want: true},
		"Off":     {reason: "Who does can say so.", args: []string{"--feature-gates=SchedulingOvercommitProtection=false"}},
		"On":      {reason: "As can who says what is so anyway.", args: []string{"--feature-gates=SchedulingOvercommitProtection=true"}, want: true},
		"Others":  {reason: "Other gates are others.", args: []string{"--feature-gates=AllBeta=false"}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := scheduler.CountsPending(tc.args, nowhere())
			if err != nil || got != tc.want {
				t.Errorf("got %t, %v: %s", got, err, tc.reason)
			}
		})
	}
}

func TestPlugins(t *testing.T) {
	cases := map[string]struct {
		reason string
		flag   string
		want   map[string]bool
	}{
		"All":     {reason: "The default.", flag: "*", want: map[string]bool{"TaintToleration": true, "ClusterLocality": true}},
		"AllBut":  {reason: "One is taken off.", flag: "*,-TaintToleration", want: map[string]bool{"TaintToleration": false, "APIEnablement": true}},
		"Some":    {reason: "Without * only those that are named.", flag: "APIEnablement", want: map[string]bool{"TaintToleration": false, "APIEnablement": true}},
		"Twice":   {reason: "The first entry decides.", flag: "-APIEnablement,APIEnablement", want: map[string]bool{"APIEnablement": false}},
		"Nothing": {reason: "An empty list uses none.", flag: "", want: map[string]bool{"APIEnablement": false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for plugin := range tc.want {
				uses, err := scheduler.Uses([]string{"--plugins=" + tc.flag}, plugin, nowhere())
				if err != nil {
					t.Fatal(err)
				}
				got[plugin] = uses
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
