package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// newPlane returns a control plane to install in a directory that does not exist yet. Whatever the test does, nothing
// of it outlives the test.
func newPlane(t *testing.T) rig.Plane {
	t.Helper()
	binaries, err := rig.FindBinaries("")
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("", "karmada-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	p, err := rig.NewPlane(binaries, filepath.Join(base, "plane"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of its log:\n%s", p.LogTail())
		}
		if err := errors.Join(p.Destroy(context.WithoutCancel(t.Context())), os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestInitKilled(t *testing.T) {
	cases := map[string]struct {
		reason string
		at     Point
	}{
		"AtOnce": {
			reason: "An init that did nothing must not be in the way of the next one.",
		},
		"DirectoryMade": {
			reason: "A data directory without a configuration is still that of an interrupted init, not of something else.",
			at:     Point{File: "run"},
		},
		"FirstKeyMade": {
			reason: "A key without its certificate, or the other way round, is completed or made anew.",
			at:     Point{File: "pki/ca.key"},
		},
	}
	for _, step := range InitSteps() {
		cases["After "+step] = struct {
			reason string
			at     Point
		}{
			reason: "What the steps so far have made is taken over, and the rest is done.",
			at:     Point{Line: step},
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			strike, err := StrikeInit(t.Context(), p, tc.at, syscall.SIGKILL)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("killed %s: %s", tc.at, strike)
			if err := Survives(t.Context(), p); err != nil {
				t.Fatalf("%s\nkilled %s (%s): %v", tc.reason, tc.at, strike, err)
			}
		})
	}
}

// TestInitBarelyBegun puts in place what a kill leaves behind in a moment too short to hit: the configuration, which
// marks the directory as ours, is half written.
func TestInitBarelyBegun(t *testing.T) {
	p := newPlane(t)
	if err := os.MkdirAll(filepath.Join(p.Dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"run/command.pid", ".plane.yaml.tmp-1"} {
		if err := os.WriteFile(filepath.Join(p.Dir, file), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Survives(t.Context(), p); err != nil {
		t.Fatalf("A data directory without a configuration is that of an interrupted init, as long as nothing else is in it.\n%v", err)
	}
}

// TestInitTemporaryFilesLeft is about files that are written beside their place and then renamed: a kill in between
// leaves what was written so far.
func TestInitTemporaryFilesLeft(t *testing.T) {
	p := newPlane(t)
	if _, err := StrikeInit(t.Context(), p, Point{Line: "component files"}, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		".plane.yaml.tmp-1", ".karmada-apiserver.config.tmp-1", "run/.plane.json.tmp-1", "pki/.ca.key.tmp-1",
		"config/.authentication.yaml.tmp-1", "kubeconfig/.kube-controller-manager.config.tmp-1",
	} {
		if err := os.WriteFile(filepath.Join(p.Dir, file), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Survives(t.Context(), p); err != nil {
		t.Fatalf("Half-written files, of keys among others, must not outlive deinit --purge.\n%v", err)
	}
}

func TestInitInterrupted(t *testing.T) {
	p := newPlane(t)
	strike, err := StrikeInit(t.Context(), p, Point{Line: "component files"}, syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	if code := rig.ExitCode(strike.Ended); code <= 0 {
		t.Errorf("An init that was interrupted while the control plane starts must say so with its exit code: got %d (%v)\n%s", code, strike.Ended, strike.Output)
	}
	t.Logf("interrupted: %s", strike)
	if err := Survives(t.Context(), p); err != nil {
		t.Fatalf("What an interrupted init has made is completed by the next one.\n%v", err)
	}
}

func TestInitTwiceAtOnce(t *testing.T) {
	p := newPlane(t)
	var errs [2]error
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() { _, errs[i] = p.Init(t.Context()) })
	}
	both.Wait()
	if errs[0] != nil && errs[1] != nil {
		t.Fatalf("Of two inits at least one must succeed:\n%v\n%v", errs[0], errs[1])
	}
	for _, err := range errs {
		if err != nil && !strings.Contains(err.Error(), "another karmadactl") {
			t.Errorf("An init that gives way must say to whom:\n%v", err)
		}
	}
	if err := Healthy(t.Context(), p); err != nil {
		t.Fatalf("The one that succeeded must leave a whole control plane, whatever the other did.\n%v", err)
	}
	if err := Survives(t.Context(), p); err != nil {
		t.Fatalf("Two inits at once leave nothing that the next one trips over.\n%v", err)
	}
}
