package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

// supervise supervises until the test is over with it.
func supervise(t *testing.T, l plane.Layout, command []string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Supervise(ctx, l, command) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if !stopped {
			_ = stop() // the test has failed already
		}
	})
	return stop
}

func supervisorState(t *testing.T, l plane.Layout) SupervisorState {
	t.Helper()
	s, err := readState[SupervisorState](l.SupervisorState())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuperviseStartsAgain(t *testing.T) {
	l := newLayout(t)
	stop := supervise(t, l, actAs(t, "fails", l))

	var first SupervisorState
	eventually(t, "the first end is counted", func() bool { first = supervisorState(t, l); return first.Restarts > 0 })
	if first.Restarts == 1 { // on a slow machine the second may have come already
		if got := first.NextStart.Sub(first.LastExit); got != backoffBase {
			t.Errorf("the first pause is %s, want %s", got, backoffBase)
		}
	}
	var second SupervisorState
	eventually(t, "it is started again, and ends again", func() bool { second = supervisorState(t, l); return second.Restarts > 1 })
	if second.Restarts == 2 {
		if got := second.NextStart.Sub(second.LastExit); got != 2*backoffBase {
			t.Errorf("the second pause is %s, want %s: one that never starts must not keep the host busy", got, 2*backoffBase)
		}
	}
	if second.PID != os.Getpid() || second.Started.IsZero() || !second.LastExit.After(first.Started) {
		t.Errorf("the state is %+v", second)
	}
	if !strings.Contains(second.LastError, "exit status 1") {
		t.Errorf("the last error is %q, want the exit status", second.LastError)
	}
	if err := stop(); err != nil {
		t.Errorf("got %v, want nil when it was asked to stop during a pause", err)
	}
	log, err := os.ReadFile(l.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(log), "the child fails"); got < 2 {
		t.Errorf("the log has the child's words %d times, want those of every life:\n%s", got, log)
	}
}

func TestSupervisePassesStopOn(t *testing.T) {
	l := newLayout(t)
	write(t, l.PlaneState(), `{"components":[{"name":"etcd","phase":"Failed","message":"of an earlier life"}]}`)
	stop := supervise(t, l, actAs(t, "waits", l))
	eventually(t, "the child runs", func() bool { return exists(filepath.Join(l.Dir, "started")) })
	if exists(l.PlaneState()) {
		t.Error("the state of an earlier life is still there, and would be taken for this one's")
	}
	if err := Supervise(t.Context(), l, []string{"true"}); err == nil {
		t.Error("there are two supervisors")
	}
	if err := stop(); err != nil {
		t.Errorf("got %v, want nil when it was asked to stop", err)
	}
	if !exists(filepath.Join(l.Dir, "stopped")) {
		t.Error("the child was not given the time to stop by itself")
	}
	if s := supervisorState(t, l); s.Restarts != 0 || s.LastError != "" {
		t.Errorf("a stop that was asked for was counted: %+v", s)
	}
}

// When the supervisor is killed nobody would start the plane again, or tell that it runs: the plane stops, too.
func TestSupervisorIsKilled(t *testing.T) {
	l := newLayout(t)
	command := actAs(t, "supervises", l)
	supervisor := exec.Command(command[0])
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the supervisor has started its child", func() bool { return exists(filepath.Join(l.Dir, "started")) })
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := supervisor.Wait(); !errors.As(err, &exit) {
		t.Errorf("the supervisor ended with %v, want a killed one", err)
	}
	eventually(t, "the kernel asks the child to stop", func() bool { return exists(filepath.Join(l.Dir, "stopped")) })
}

func TestSuperviseCannotWrite(t *testing.T) {
	l := plane.NewLayout(filepath.Join(t.TempDir(), "absent"), "")
	if err := Supervise(t.Context(), l, []string{"true"}); err == nil || !strings.Contains(err.Error(), l.Dir) {
		t.Errorf("got %v, want an error that names %s", err, l.Dir)
	}
}

func TestLastError(t *testing.T) {
	failed := &State{Components: []ComponentState{{Name: "etcd", Phase: Ready}, {Name: "kube-apiserver", Phase: Failed, Message: "bind: address in use"}}}
	cases := map[string]struct {
		reason string
		state  *State
		exit   error
		want   string
	}{
		"Reported":      {"What the plane itself says is the best there is.", failed, errBoom, "component kube-apiserver: bind: address in use"},
		"ReportedClean": {"Also when the exit status says nothing.", failed, nil, "component kube-apiserver: bind: address in use"},
		"NoFailure":     {"A state without a failure explains nothing.", &State{Components: []ComponentState{{Name: "etcd", Phase: Ready}}}, errBoom, "the process of the plane ended: boom"},
		"NoState":       {"A process that died at once has not reported.", nil, errBoom, "the process of the plane ended: boom"},
		"NoReason":      {"A clean exit is not clean when nobody asked for it.", nil, nil, "the process of the plane ended without being asked to"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			if c.state != nil {
				if err := writeState(l.PlaneState(), c.state); err != nil {
					t.Fatal(err)
				}
			}
			if got := lastError(l, c.exit); got != c.want {
				t.Errorf("got %q, want %q\nreason: %s", got, c.want, c.reason)
			}
		})
	}
}

// Only a process that is wedged is ever killed: it may take as long as all its components may, one after the other.
func TestKillAfterIsLongerThanStopping(t *testing.T) {
	p := plane.Member(plane.NewConfig(plane.KindMember, "member1"), plane.NewLayout("/data", ""))
	if most := time.Duration(len(p.Components)) * stopTimeout; killAfter < most {
		t.Errorf("killed after %s, but its %d components may take %s", killAfter, len(p.Components), most)
	}
}
