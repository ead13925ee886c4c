package supervise

import (
	"errors"
	"testing"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestSupervise(t *testing.T) {
	cmd := NewCmd()
	if cmd.Name() != host.SuperviseCommand || !cmd.Hidden {
		t.Errorf("the command is %q, hidden %t: init calls it by that name, and it is not for people", cmd.Name(), cmd.Hidden)
	}
	cmd.SetArgs([]string{"--data-dir=" + t.TempDir(), "--karmada=/nowhere/karmada"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, plane.ErrNotInstalled) {
		t.Errorf("got %v, want that nothing is installed: it makes no directory a data directory", err)
	}
}
