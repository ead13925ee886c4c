// Package roletest is what the tests of roles have in common.
package roletest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// Sets returns the flags of a role in their sets, with a gate of their own.
func Sets(t *testing.T, f role.Flags) *cliflag.NamedFlagSets {
	t.Helper()
	sets, _, err := role.NewSets(f)
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// FlagTable holds the flags of a role still: they are the contract. Each line of
// a file is one flag, its columns, with tabs between them, are set, name, type
// and default; what comes after those, and lines that start with #, are remarks.
func FlagTable(t *testing.T, file string, sets *cliflag.NamedFlagSets) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(line, "#") {
			columns := strings.Split(line, "\t")
			want = append(want, strings.Join(columns[:min(4, len(columns))], "\t"))
		}
	}

	var got []string
	for _, set := range sets.Order {
		sets.FlagSets[set].VisitAll(func(f *pflag.Flag) {
			got = append(got, strings.Join([]string{set, f.Name, typeOf(f), defaultOf(f)}, "\t"))
			if f.Usage == "" {
				t.Errorf("--%s has no usage", f.Name)
			}
		})
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags are the contract (-want +got):\n%s", diff)
	}
}

// typeOf returns the type as help shows it, and as the contract names it.
func typeOf(f *pflag.Flag) string {
	if f.Value.Type() == "bool" {
		return "bool"
	}
	// Not from the usage, where back quotes would name something else.
	name, _ := pflag.UnquoteUsage(&pflag.Flag{Value: f.Value})
	return name
}

func defaultOf(f *pflag.Flag) string {
	switch {
	case f.Value.Type() == "string":
		return `"` + f.DefValue + `"`
	case f.DefValue == "":
		return "(unset)"
	default:
		return f.DefValue
	}
}
