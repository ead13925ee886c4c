package features_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/features"
)

// defaults is a transcription of spec: cli/components.md 11, but for
// SchedulingOvercommitProtection, which is on here.
func defaults() map[string]bool {
	return map[string]bool{
		"AllAlpha":                          false,
		"AllBeta":                           false,
		"Failover":                          false,
		"GracefulEviction":                  true,
		"PropagateDeps":                     true,
		"CustomizedClusterResourceModeling": true,
		"PropagationPolicyPreemption":       false,
		"MultiClusterService":               false,
		"ResourceQuotaEstimate":             false,
		"StatefulFailoverInjection":         false,
		"PriorityBasedScheduling":           true,
		"FederatedQuotaEnforcement":         false,
		"MultiplePodTemplatesScheduling":    false,
		"ControllerPriorityQueue":           true,
		"WorkloadAffinity":                  false,
		"SchedulingOvercommitProtection":    true,
		"LoggingAlphaOptions":               false,
		"LoggingBetaOptions":                true,
		"ContextualLogging":                 true,
	}
}

func TestDefaults(t *testing.T) {
	gate, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(maps.Keys(gate.GetAll()))
	var names []string
	for _, f := range known {
		names = append(names, string(f))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(defaults())), names); diff != "" {
		t.Errorf("known features (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(defaults(), state(gate)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    map[string]bool
		want   func(map[string]bool)
		err    bool
	}{
		"One": {
			reason: "A gate is set by its name.",
			set:    map[string]bool{"Failover": true},
			want:   func(m map[string]bool) { m["Failover"] = true },
		},
		"AllBeta": {
			reason: "AllBeta turns all of that stage on, and nothing of another.",
			set:    map[string]bool{"AllBeta": true},
			want: func(m map[string]bool) {
				m["AllBeta"], m["Failover"] = true, true
			},
		},
		"AllAlphaExcept": {
			reason: "A gate that is set by name keeps that, whatever the pseudo gate says.",
			set:    map[string]bool{"AllAlpha": true, "WorkloadAffinity": false},
			want: func(m map[string]bool) {
				for _, f := range []string{
					"AllAlpha", "PropagationPolicyPreemption", "MultiClusterService", "ResourceQuotaEstimate",
					"StatefulFailoverInjection", "FederatedQuotaEnforcement", "MultiplePodTemplatesScheduling",
					"SchedulingOvercommitProtection", "LoggingAlphaOptions",
				} {
					m[f] = true
				}
			},
		},
		"Unknown": {
			reason: "An unknown gate is an error, not a warning.",
			set:    map[string]bool{"Flying": true},
			err:    true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, err := features.New()
			if err != nil {
				t.Fatal(err)
			}
			if err := gate.SetFromMap(tc.set); (err != nil) != tc.err {
				t.Fatalf("SetFromMap: %v\n%s", err, tc.reason)
			}
			if tc.err {
				return
			}
			want := defaults()
			tc.want(want)
			if diff := cmp.Diff(want, state(gate)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGatesAreIndependent(t *testing.T) {
	one, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	other, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := one.SetFromMap(map[string]bool{"Failover": true}); err != nil {
		t.Fatal(err)
	}
	if other.Enabled(features.Failover) {
		t.Error("setting one gate must not set another: nothing is shared by the package")
	}
}

func TestUnread(t *testing.T) {
	got := features.Unread(map[string]bool{
		"Failover": true, "MultiClusterService": true, // nothing reads them yet
		"ControllerPriorityQueue": false, // the manager reads it
		"ContextualLogging":       true,  // the logging library reads it
		"AllAlpha":                true,  // stands for others
	})
	if diff := cmp.Diff([]string{"Failover", "MultiClusterService"}, got); diff != "" {
		t.Errorf("unread (-want +got):\n%s", diff)
	}
}

func state(gate featuregate.MutableVersionedFeatureGate) map[string]bool {
	on := map[string]bool{}
	for f := range gate.GetAll() {
		on[string(f)] = gate.Enabled(f)
	}
	return on
}
