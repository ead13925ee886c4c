package factory

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestCheckClusterFlags(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		ok     bool
	}{
		"None":    {"Who names none means what is the default.", nil, true},
		"One":     {"A name is one.", []string{"-C", "member1"}, true},
		"Empty":   {"An unset variable of a script is none.", []string{"-C", ""}, false},
		"Some":    {"Several are.", []string{"--clusters=member1,member2"}, true},
		"NoneOf":  {"Nor is it in a list,", []string{"--clusters="}, false},
		"OneLost": {"or in a part of one.", []string{"--clusters=member1,"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			fs.StringP("cluster", "C", "", "")
			fs.StringSlice("clusters", nil, "")
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := CheckClusterFlags(fs); (err == nil) != tc.ok {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}
