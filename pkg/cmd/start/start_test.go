package start

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestNothingInstalled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCmd(s, "karmadactl")
	cmd.SetArgs([]string{"--data-dir=" + dir, "--wait-component-ready-timeout=30s"})
	cmd.SilenceErrors = true
	err := cmd.ExecuteContext(t.Context())
	if !errors.Is(err, plane.ErrNotInstalled) || !strings.Contains(err.Error(), "karmadactl init --data-dir="+dir) {
		t.Errorf("got %v, want that nothing is installed, and the command that installs", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory was made")
	}
}

func TestWithoutServers(t *testing.T) {
	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	cfg.AdvertiseAddress = "127.0.0.1"
	if err := cfg.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := cfg.Save(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	if err := run(t.Context(), s, "karmadactl", dir, 0); err == nil || !strings.Contains(err.Error(), "karmada binary") {
		t.Errorf("got %v, want that the servers are missing", err)
	}
}
