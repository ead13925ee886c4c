package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/daemon"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

// tailLines is how much of a log an error shows.
const tailLines = 10

// pollInterval is how often a command looks at locks and states of processes.
const pollInterval = 20 * time.Millisecond

// Holders names the processes of an installation; 0 where there is none.
type Holders struct {
	Supervisor, Plane int
}

// Running reports whether any process is there.
func (h Holders) Running() bool { return h.Supervisor != 0 || h.Plane != 0 }

// FindProcesses says which processes run on a data directory. It fails with a *DataInUseError when one does that cannot
// be told to be ours.
func FindProcesses(l plane.Layout) (Holders, error) {
	supervisor, err := holder(l.SupervisorLock())
	if err != nil {
		return Holders{}, err
	}
	running, err := holder(l.PlaneLock())
	if err != nil {
		return Holders{}, err
	}
	if running == 0 {
		if err := checkUnlockedData(l); err != nil {
			return Holders{}, err
		}
	}
	return Holders{Supervisor: supervisor, Plane: running}, nil
}

func holder(lock string) (int, error) {
	pid, held, err := pidlock.Holder(lock)
	if err != nil {
		return 0, fmt.Errorf("find out which process runs: %w", err)
	}
	if !held {
		return 0, nil
	}
	return pid, nil
}

// A StartError says that a plane did not become ready.
type StartError struct {
	Why string
	Log string // where to read on
	// Pending says that it only took too long: the plane is left to go on starting.
	Pending bool
	// Tail is the end of the log, when the log itself had to go.
	Tail []string
}

func (e *StartError) Error() string {
	switch {
	case e.Pending:
		return fmt.Sprintf("%s\nIt goes on starting: run this again to wait longer, or look at its log %s", e.Why, e.Log)
	case len(e.Tail) > 0:
		return fmt.Sprintf("%s\nWhat had been made is removed again; the log ended with:\n  %s", e.Why, strings.Join(e.Tail, "\n  "))
	}
	return fmt.Sprintf("%s\nThe log is %s", e.Why, e.Log)
}

// keepTail takes the end of the log into the error, before the log is removed.
func (e *StartError) keepTail() {
	data, err := os.ReadFile(e.Log)
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	e.Tail = lines[max(0, len(lines)-tailLines):]
}

// leaveRunning reports whether what failed is to be left as it is: it was interrupted, or may still succeed.
func leaveRunning(err error) bool {
	var start *StartError
	return errors.Is(err, context.Canceled) || errors.As(err, &start) && start.Pending
}

// start launches command (a supervisor, or a plane itself) detached from this process, with its output in log, and
// waits until the plane is ready. It fails at once when the plane ends by itself.
func start(ctx context.Context, l plane.Layout, command []string, log string, report func(State)) error {
	child, err := daemon.Start(daemon.Command{Args: command, Env: os.Environ(), LogFile: log})
	if err != nil {
		return fmt.Errorf("start the plane: %w", err)
	}
	err = child.WaitFor(ctx, func(ctx context.Context) (bool, error) {
		return readyOrFailed(l, 0, report)
	})
	var exit *daemon.ExitError
	if errors.As(err, &exit) {
		// Another command may have been faster: then its process is the one to wait for.
		if h, findErr := FindProcesses(l); findErr == nil && h.Running() {
			return WaitReady(ctx, l, report)
		}
	}
	return startError(l, err)
}

// WaitReady waits until the plane that is running is ready.
func WaitReady(ctx context.Context, l plane.Layout, report func(State)) error {
	before, err := restarts(l)
	if err != nil {
		return err
	}
	return startError(l, poll(ctx, func() (bool, error) {
		// One restart may be under way: that of a plane which ended a moment ago, and comes back.
		if ok, err := readyOrFailed(l, before+1, report); ok || err != nil {
			return ok, err
		}
		h, err := FindProcesses(l)
		if err == nil && !h.Running() {
			err = errors.New("the processes of the plane ended")
		}
		return false, err
	}))
}

// restarts is how often the supervisor that runs now has started the plane again.
func restarts(l plane.Layout) (int, error) {
	pid, err := holder(l.SupervisorLock())
	if err != nil {
		return 0, err
	}
	state, err := readState[SupervisorState](l.SupervisorState())
	if err != nil || pid == 0 || state.PID != pid {
		return 0, err
	}
	return state.Restarts, nil
}

// readyOrFailed looks once. The state counts only while the process that wrote it lives. allowed is how many restarts
// the supervisor may have counted without the plane being one that does not start.
func readyOrFailed(l plane.Layout, allowed int, report func(State)) (bool, error) {
	supervisor, err := readState[SupervisorState](l.SupervisorState())
	if err != nil {
		return false, err
	}
	h, err := FindProcesses(l)
	if err != nil {
		return false, err
	}
	if supervisor.PID == h.Supervisor && h.Supervisor != 0 && supervisor.Restarts > allowed && h.Plane == 0 {
		return false, fmt.Errorf("the plane does not start: %s", supervisor.LastError)
	}
	state, err := readState[State](l.PlaneState())
	if err != nil || h.Plane == 0 || state.PID != h.Plane {
		return false, err
	}
	report(state)
	if c, failed := state.failure(); failed {
		return false, fmt.Errorf("component %s: %s", c.Name, c.Message)
	}
	return state.AllReady(), nil
}

// startError adds to a failure what the plane itself says about it.
func startError(l plane.Layout, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &StartError{Why: "not ready in time: " + waitedFor(l), Log: l.LogFile(), Pending: true}
	case errors.Is(err, context.Canceled):
		return err
	}
	return &StartError{Why: err.Error(), Log: l.LogFile()}
}

// waitedFor names the components that are not ready, and why.
func waitedFor(l plane.Layout) string {
	state, err := readState[State](l.PlaneState())
	if err != nil || len(state.Components) == 0 {
		return "its process has not reported anything"
	}
	for _, c := range state.Components {
		if c.Phase != Ready && c.Message != "" {
			return fmt.Sprintf("component %s is %s: %s", c.Name, c.Phase, c.Message)
		}
	}
	return "its components are starting"
}

// Stop ends the processes of an installation in order: the supervisor asks the plane to stop, the plane stops its
// components in reverse. It returns when nothing runs any more, and says whether anything did.
func Stop(ctx context.Context, l plane.Layout) (bool, error) {
	h, err := FindProcesses(l)
	if err != nil || !h.Running() {
		return false, err
	}
	lock := l.PlaneLock()
	if h.Supervisor != 0 {
		lock = l.SupervisorLock()
	}
	if err := pidlock.Signal(lock, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false, fmt.Errorf("ask the plane to stop: %w", err)
	}
	err = poll(ctx, func() (bool, error) {
		h, err = FindProcesses(l)
		return !h.Running(), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return false, fmt.Errorf("the plane did not stop in time: process %d still runs; its log is %s", max(h.Plane, h.Supervisor), l.LogFile())
	}
	if err != nil {
		return false, fmt.Errorf("wait until the plane has stopped: %w", err)
	}
	return true, nil
}

// poll asks until the answer is yes, an error, or ctx is done.
func poll(ctx context.Context, ask func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, err := ask()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
