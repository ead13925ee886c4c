package aggregatedapiserver

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
)

// TestFlags holds names, types and defaults of the flags still: they are what
// users know.
func TestFlags(t *testing.T) {
	f, err := NewFlags()
	if err != nil {
		t.Fatal(err)
	}
	sets := roletest.Sets(t, f)
	var got []string
	sets.FlagSet(flags.GenericSet).VisitAll(func(f *pflag.Flag) {
		if f.Deprecated != "" {
			return // upstream's, on their way out
		}
		typ, _ := pflag.UnquoteUsage(f) // as help shows it, which leaves it out of switches
		if f.Value.Type() == "bool" {
			typ = "bool"
		}
		got = append(got, fmt.Sprintf("%s\t%s\t%s", f.Name, typ, f.DefValue))
	})
	data, err := os.ReadFile("testdata/flags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
