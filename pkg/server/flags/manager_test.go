package flags_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

func TestManagerValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Defaults": {reason: "The defaults are fine."},
		"All": {
			reason: "Everything wrong with any part is reported at once.",
			args: []string{
				"--rate-limiter-qps=0", "--controllers=nope", "--feature-gates=Flying=true", "--metrics-bind-address=nowhere",
				"--leader-elect-retry-period=0s", "--cluster-api-burst=-1", "--kube-api-burst=-1",
			},
			want: []string{
				"--kube-api-burst", "--cluster-api-burst", "--leader-elect-retry-period", "--metrics-bind-address",
				"--feature-gates", "--controllers", "--rate-limiter-qps",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, err := features.New()
			if err != nil {
				t.Fatal(err)
			}
			m := flags.NewManager("some-role", ":10357", flags.NewControllers([]string{"a"}, nil))
			parse(t, func(fs *pflag.FlagSet) { m.AddFlags(fs, gate) }, tc.args)
			var got []string
			for _, err := range m.Validate(gate) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFeatureGatesApplyValid(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    map[string]bool
		want   []string // fields in error
		on     bool     // MultiClusterService
	}{
		"Nothing": {reason: "Gates need not be set."},
		"Known":   {reason: "What is known is set.", set: map[string]bool{"MultiClusterService": true}, on: true},
		"Unknown": {reason: "Validation reports it, once, and nothing is set.", set: map[string]bool{"MultiClusterService": true, "Flying": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, err := features.New()
			if err != nil {
				t.Fatal(err)
			}
			f := flags.FeatureGates{Set: tc.set}
			var got []string
			for _, err := range f.ApplyValid(gate) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if on := gate.Enabled(features.MultiClusterService); on != tc.on {
				t.Errorf("the gate is %v\n%s", on, tc.reason)
			}
		})
	}
}
