package supervise

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// modeEnv makes the test binary the process that is supervised.
const modeEnv = "SUPERVISE_TEST_MODE"

func TestMain(m *testing.M) {
	switch os.Getenv(modeEnv) {
	case "fail":
		fmt.Println("cannot listen")
		os.Exit(7)
	case "stay":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("up")
		<-term
		fmt.Println("down")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run supervises the test binary in a mode until until says so.
func run(t *testing.T, mode string, until func(State, string) bool) (State, string) {
	t.Helper()
	t.Setenv(modeEnv, mode)
	dir := t.TempDir()
	p := Process{Args: []string{os.Args[0]}, LogFile: filepath.Join(dir, "log"), StateFile: filepath.Join(dir, "state.json"), Grace: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, p) }()
	look := func() (State, string) {
		s, err := ReadState(p.StateFile)
		if err != nil {
			t.Fatal(err)
		}
		log, _ := os.ReadFile(p.LogFile) // there is none before something is written
		return s, string(log)
	}
	deadline, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for s, log := look(); !until(s, log); s, log = look() {
		select {
		case err := <-done:
			t.Fatalf("the supervisor ended: %v", err)
		case <-deadline.Done():
			t.Fatalf("it does not get there: %+v\n%s", s, log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a supervisor that is stopped has not failed: %v", err)
	}
	return look()
}

func TestStopsTheProcess(t *testing.T) {
	s, log := run(t, "stay", func(s State, log string) bool { return s.Child > 0 && strings.Contains(log, "up") })
	if s.PID != os.Getpid() || s.Restarts != 0 {
		t.Errorf("nothing has failed: %+v", s)
	}
	if log != "up\ndown\n" {
		t.Errorf("the process is asked to stop, and waited for; it said %q", log)
	}
}

func TestStartsAgain(t *testing.T) {
	s, log := run(t, "fail", func(s State, _ string) bool { return s.Restarts >= 1 })
	if s.Child != 0 || !strings.HasSuffix(s.LastError, "ended: exit status 7") || s.LastExit.IsZero() || !s.NextStart.After(s.LastExit) {
		t.Errorf("it is reported how the process ended and when it is started again: %+v", s)
	}
	if !strings.HasPrefix(log, "cannot listen\n") {
		t.Errorf("its words are in the log, which has %q", log)
	}
}

func TestReadState(t *testing.T) {
	dir := t.TempDir()
	if s, err := ReadState(filepath.Join(dir, "none")); err != nil || s != (State{}) {
		t.Errorf("no report is no error: %+v, %v", s, err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadState(bad); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("a report that cannot be read is an error that names it, got %v", err)
	}
}
