package stop

import (
	"errors"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestStop(t *testing.T) {
	s, _, out, _ := genericiooptions.NewTestIOStreams()
	dir := t.TempDir()
	if err := run(t.Context(), s, "karmadactl", dir); !errors.Is(err, plane.ErrNotInstalled) {
		t.Errorf("got %v, want that nothing is installed", err)
	}
	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	cfg.AdvertiseAddress = "127.0.0.1"
	if err := cfg.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Save(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again: the lock was given back
		out.Reset()
		if err := run(t.Context(), s, "karmadactl", dir); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "The control plane in "+dir+" was not running.\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
