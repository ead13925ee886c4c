package role_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

func TestPlan(t *testing.T) {
	built := func(name string) func(manager.Manager, *[]string) error {
		return func(_ manager.Manager, setUp *[]string) error {
			*setUp = append(*setUp, name)
			return nil
		}
	}
	table := []role.Controller[*[]string]{
		{Name: "plain", Setup: built("plain")},
		{Name: "gated", Setup: built("gated"), Gate: features.MultiClusterService},
		{Name: "optional", Setup: built("optional"), OffByDefault: true},
		{Name: "future"},
		{Name: "both", Gate: features.MultiClusterService, OffByDefault: true},
	}
	cases := map[string]struct {
		reason    string
		selection []string
		gates     map[string]bool
		first     role.Reason
		start     []string
		gated     []string
		missing   []string
	}{
		"Default": {
			reason: "What is on by default starts, if its gate is on and it exists.", selection: []string{"*"},
			start: []string{"plain"}, gated: []string{"gated"}, missing: []string{"future"},
		},
		"Gate": {
			reason: "A gate lets its controller start.", selection: []string{"*"}, gates: map[string]bool{"MultiClusterService": true},
			start: []string{"plain", "gated"}, missing: []string{"future"},
		},
		"Named": {
			reason: "Naming one does not open its gate.", selection: []string{"gated", "optional"},
			start: []string{"optional"}, gated: []string{"gated"},
		},
		"Disabled": {
			reason: "What is disabled is not spoken of.", selection: []string{"*", "-future", "-gated"},
			start: []string{"plain"},
		},
		"BothGated": {
			reason: "Of two reasons the one that the role asks for is told.", selection: []string{"future", "both"}, first: role.Gated,
			gated: []string{"both"}, missing: []string{"future"},
		},
		"BothMissing": {
			reason: "Of two reasons the one that the role asks for is told.", selection: []string{"gated", "both"}, first: role.Missing,
			gated: []string{"gated"}, missing: []string{"both"},
		},
		"BothOpen": {
			reason: "An open gate does not make a controller.", selection: []string{"both"}, gates: map[string]bool{"MultiClusterService": true}, first: role.Gated,
			missing: []string{"both"},
		},
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
			selection := role.ControllersFlag(table)
			selection.Selection = tc.selection
			p := role.NewPlan(table, selection.Enabled, gate, tc.first)
			if diff := cmp.Diff([][]string{tc.start, tc.gated, tc.missing}, [][]string{p.Started(), p.Gated, p.Missing}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var setUp []string
			if err := p.SetUp(nil, &setUp); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tc.start, setUp) {
				t.Errorf("set up %v, want %v\n%s", setUp, tc.start, tc.reason)
			}
		})
	}
}

func TestPlanReportIdle(t *testing.T) {
	cases := map[string]struct {
		reason string
		plan   role.Plan[any]
		want   []string
	}{
		"Nothing": {reason: "When all that is enabled starts there is nothing to say.", plan: role.Plan[any]{Start: []role.Controller[any]{{Name: "a"}}}},
		"Both": {
			reason: "Each reason has a line of its own, with the names.", plan: role.Plan[any]{Gated: []string{"b"}, Missing: []string{"c", "d"}},
			want: []string{
				`"level"=0 "msg"="Controllers not started, because their feature gate is off" "controllers"=["b"]`,
				`"level"=0 "msg"="Controllers not started, because this version does not have them yet" "controllers"=["c" "d"]`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			tc.plan.ReportIdle(funcr.New(func(_, line string) { got = append(got, line) }, funcr.Options{}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanNeeds(t *testing.T) {
	a, b := schema.GroupVersionKind{Kind: "A"}, schema.GroupVersionKind{Kind: "B"}
	p := role.Plan[any]{Start: []role.Controller[any]{
		{Name: "one", Needs: []schema.GroupVersionKind{a}},
		{Name: "none"},
		{Name: "two", Needs: []schema.GroupVersionKind{a, b}},
	}}
	if diff := cmp.Diff([]schema.GroupVersionKind{a, b}, p.Needs()); diff != "" {
		t.Errorf("each kind is waited for once (-want +got):\n%s", diff)
	}
}

func TestSetUpError(t *testing.T) {
	p := role.Plan[any]{Start: []role.Controller[any]{{Name: "bad", Setup: func(manager.Manager, any) error { return errBoom }}}}
	err := p.SetUp(nil, nil)
	if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "bad") {
		t.Errorf("the error must be of the controller, and name it; got: %v", err)
	}
}
