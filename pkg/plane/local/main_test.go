package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

// Where childMode is set, the test binary is the process that a test supervises or starts, on the directory of childDir.
const (
	childMode = "LOCAL_TEST_CHILD"
	childDir  = "LOCAL_TEST_DIR"
)

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := child(mode, childLayout()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childLayout is the data directory of --data-dir, or of the environment.
func childLayout() plane.Layout {
	dir := os.Getenv(childDir)
	for _, arg := range os.Args[1:] {
		if value, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			dir = value
		}
	}
	return plane.NewLayout(dir, "")
}

func child(mode string, l plane.Layout) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch mode {
	case "fails":
		return errors.New("the child fails")
	case "reports":
		s := State{PID: os.Getpid(), Components: []ComponentState{{Name: "etcd", Phase: Failed, Message: "disk full"}}}
		if err := writeState(l.PlaneState(), s); err != nil {
			return err
		}
		return errors.New("the child fails")
	case "waits":
		signal.Ignore(syscall.SIGPIPE) // as the role does: its output goes to a supervisor that may be killed
		if err := os.WriteFile(filepath.Join(l.Dir, "started"), nil, 0o600); err != nil {
			return err
		}
		<-ctx.Done()
		fmt.Println("the child was asked to stop")
		return os.WriteFile(filepath.Join(l.Dir, "stopped"), nil, 0o600)
	case "supervises":
		if err := os.Setenv(childMode, "waits"); err != nil {
			return err
		}
		return Supervise(ctx, l, []string{os.Args[0]})
	case "plane":
		return pretendPlane(ctx, l)
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// pretendPlane holds the lock and reports ready components, as a plane's process does.
func pretendPlane(ctx context.Context, l plane.Layout) (err error) {
	lock, err := pidlock.Acquire(l.PlaneLock())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s := State{PID: os.Getpid(), Version: "v0.0.0-test", Started: time.Now(), Components: []ComponentState{{Name: plane.Etcd, Phase: Ready}}}
	if err := writeState(l.PlaneState(), s); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// actAs makes the processes that a test starts from its own binary behave so.
func actAs(t *testing.T, mode string, l plane.Layout) (command []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childMode, mode)
	t.Setenv(childDir, l.Dir)
	return []string{self}
}

// eventually waits until ok, and fails the test with the reason when that takes absurdly long.
func eventually(t *testing.T, reason string, ok func() bool) {
	t.Helper()
	giveUp := time.NewTimer(2 * time.Minute)
	defer giveUp.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-giveUp.C:
			t.Fatalf("gave up waiting: %s", reason)
		case <-again.C:
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// newLayout is a data directory with the directories that a plane has.
func newLayout(t *testing.T) plane.Layout {
	t.Helper()
	l := plane.NewLayout(filepath.Join(t.TempDir(), "data"), "")
	if err := makeDirs(l); err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
