package controllermanager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/features"
)

func TestControllerTable(t *testing.T) {
	// A transcription of spec: cli/components.md 1.
	const known = "agentcsrapproving, applicationFailover, binding, bindingStatus, cluster, clusterStatus, clustertaintpolicy, cronFederatedHorizontalPodAutoscaler, deploymentReplicasSyncer, endpointSlice, endpointsliceCollect, endpointsliceDispatch, execution, federatedHorizontalPodAutoscaler, federatedResourceQuotaEnforcement, federatedResourceQuotaStatus, federatedResourceQuotaSync, gracefulEviction, hpaScaleTargetMarker, multiclusterservice, namespace, remedy, serviceExport, serviceImport, unifiedAuth, workStatus, workloadRebalancer"
	var names, off []string
	for _, c := range controllers() {
		names = append(names, c.name)
		if c.offByDefault {
			off = append(off, c.name)
		}
	}
	if diff := cmp.Diff(strings.Split(known, ", "), names); diff != "" {
		t.Errorf("known controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"deploymentReplicasSyncer", "hpaScaleTargetMarker"}, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
}

func TestPlanControllers(t *testing.T) {
	var setUp []string
	built := func(name string) func(manager.Manager, *setting) error {
		return func(manager.Manager, *setting) error {
			setUp = append(setUp, name)
			return nil
		}
	}
	table := []controller{
		{name: "plain", setup: built("plain")},
		{name: "gated", setup: built("gated"), gate: features.MultiClusterService},
		{name: "optional", setup: built("optional"), offByDefault: true},
		{name: "future"},
	}
	cases := map[string]struct {
		reason    string
		selection []string
		gates     map[string]bool
		start     []string
		gated     []string
		missing   []string
	}{
		"Default":  {reason: "What is on by default starts, if its gate is on and it exists.", selection: []string{"*"}, start: []string{"plain"}, gated: []string{"gated"}, missing: []string{"future"}},
		"Gate":     {reason: "A gate lets its controller start.", selection: []string{"*"}, gates: map[string]bool{"MultiClusterService": true}, start: []string{"plain", "gated"}, missing: []string{"future"}},
		"Named":    {reason: "Naming one does not open its gate.", selection: []string{"gated", "optional"}, start: []string{"optional"}, gated: []string{"gated"}},
		"Disabled": {reason: "What is disabled is not spoken of.", selection: []string{"*", "-future", "-gated"}, start: []string{"plain"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate, err := features.New()
			if err != nil {
				t.Fatal(err)
			}
			if err := gate.SetFromMap(tc.gates); err != nil {
				t.Fatal(err)
			}
			selection := newControllersFlag(table)
			selection.Selection = tc.selection
			p := planControllers(table, selection.Enabled, gate)
			if diff := cmp.Diff([][]string{tc.gated, tc.missing}, [][]string{p.gated, p.missing}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			setUp = nil
			if err := p.setUp(nil, nil); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tc.start, setUp) {
				t.Errorf("set up %v, want %v\n%s", setUp, tc.start, tc.reason)
			}
		})
	}
}

func TestSetUpError(t *testing.T) {
	boom := errors.New("boom")
	p := plan{start: []controller{{name: "bad", setup: func(manager.Manager, *setting) error { return boom }}}}
	err := p.setUp(nil, nil)
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "bad") {
		t.Errorf("the error must be of the controller, and name it; got: %v", err)
	}
}
