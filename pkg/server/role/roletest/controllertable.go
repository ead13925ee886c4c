package roletest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// ControllerTable holds the names still that --controllers of a role takes, in
// the order of its table, and which of them are off by default.
func ControllerTable[S any](t *testing.T, table []role.Controller[S], known, offByDefault []string) {
	t.Helper()
	var names, off []string
	for _, c := range table {
		if c.Always {
			continue
		}
		names = append(names, c.Name)
		if c.OffByDefault {
			off = append(off, c.Name)
		}
	}
	if diff := cmp.Diff(known, names); diff != "" {
		t.Errorf("known controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(offByDefault, off); diff != "" {
		t.Errorf("off by default (-want +got):\n%s", diff)
	}
}
