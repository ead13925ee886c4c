package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
)

func TestFlagTable(t *testing.T) {
	sets := roletest.Sets(t, NewFlags())
	roletest.FlagTable(t, "testdata/flags.tsv", sets)
	if diff := cmp.Diff([]string{"generic", "logs"}, sets.Order); diff != "" {
		t.Errorf("flag sets (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		errs   []string // what the error says; none: valid
	}{
		"Defaults": {reason: "No flag is needed."},
		"Given": {
			reason: "What existing manifests pass is accepted.",
			args:   []string{"--kubeconfig=/etc/k", "--allow-no-execute-taint-policy=true", "--secure_port=9443", "--v=4"},
		},
		"Everything": {
			reason: "All that is wrong is told at once.",
			args: []string{
				"--bind-address=here", "--secure-port=0", "--tls-min-version=VersionTLS13", "--tls-cert-file-name=", "--feature-gates=Flying=true",
				"--kube-api-burst=-1", "--metrics-bind-address=nowhere", "--logging-format=xml",
			},
			errs: []string{
				"--bind-address", "--secure-port", `--tls-min-version: Unsupported value: "VersionTLS13": supported values: "1.0", "1.1", "1.2", "1.3"`,
				"--tls-cert-file-name", "Flying", "--kube-api-burst", "--metrics-bind-address", "--logging-format", "8 invalid flags",
			},
		},
		"Arguments": {reason: "There are flags only.", args: []string{"now"}, errs: []string{"now"}},
		"Unknown":   {reason: "Flags are the contract's.", args: []string{"--port=1"}, errs: []string{"--port"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.args)
			if len(c.errs) == 0 && err != nil {
				t.Fatalf("%v: %s", err, c.reason)
			}
			for _, want := range c.errs {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q: %s", err, want, c.reason)
				}
			}
		})
	}
}
