package role_test

import (
	"testing"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// named are flags in two sets.
type named struct{ first, second string }

func (n *named) AddFlags(sets *cliflag.NamedFlagSets, _ featuregate.MutableFeatureGate) {
	sets.FlagSet(flags.GenericSet).StringVar(&n.first, "first-name", "", "a name")
	sets.FlagSet(flags.LogsSet).StringVar(&n.second, "second-name", "", "another name")
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   named
		err    string
	}{
		"Nothing":     {reason: "Flags need not be given."},
		"Sets":        {reason: "Flags of all sets are known.", args: []string{"--first-name=a", "--second-name", "b"}, want: named{"a", "b"}},
		"Underscores": {reason: "Underscores stand for dashes.", args: []string{"--first_name=a"}, want: named{first: "a"}},
		"Unknown":     {reason: "Other flags are refused.", args: []string{"--nope"}, err: "unknown flag: --nope"},
		"Arguments":   {reason: "Arguments are refused.", args: []string{"now", "--first-name=a", "or never"}, want: named{first: "a"}, err: `unexpected arguments ["now" "or never"]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got named
			sets, gate, err := role.NewSets(&got)
			if err != nil || gate == nil {
				t.Fatalf("make the flags: gate %v, error %v", gate, err)
			}
			var text string
			if err := role.Parse("some-role", sets, tc.args); err != nil {
				text = err.Error()
			}
			if text != tc.err || got != tc.want {
				t.Errorf("%s\ngot %+v and error %q, want %+v and %q", tc.reason, got, text, tc.want, tc.err)
			}
			if typed := sets.FlagSets[flags.GenericSet].Lookup("first-name").Changed; typed != (tc.want.first != "") {
				t.Errorf("what was typed is marked in its set; got %v", typed)
			}
		})
	}
}
