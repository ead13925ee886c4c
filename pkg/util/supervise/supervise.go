// Package supervise keeps one process running: it starts it again, with growing
// pauses, whenever it ends by itself. What the process writes goes to a log that
// is rotated. Should the supervisor be killed, the kernel asks the process to
// stop: nothing runs unwatched.
package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

const (
	// The wait before a restart doubles from backoffBase to backoffMax, and starts
	// over once the process has run for backoffReset.
	backoffBase  = time.Second
	backoffMax   = time.Minute
	backoffReset = 10 * time.Minute

	logMegabytes = 16
	logBackups   = 2

	stateMode fs.FileMode = 0o600
)

// A Process says what to keep running.
type Process struct {
	// Args are the program, as a path, and its arguments.
	Args []string
	// LogFile gets what it writes. Its directory must exist.
	LogFile string
	// StateFile is where the supervisor reports, for ReadState.
	StateFile string
	// Grace is how long the process may take to stop before it is killed.
	Grace time.Duration
}

// A State is what a supervisor reports.
type State struct {
	PID     int       `json:"pid"` // of the supervisor
	Started time.Time `json:"started"`
	// Child is the process, 0 while there is none.
	Child    int `json:"child,omitempty"`
	Restarts int `json:"restarts,omitempty"`
	// LastExit and LastError say when and how the process last ended by itself.
	LastExit  time.Time `json:"lastExit,omitzero"`
	LastError string    `json:"lastError,omitempty"`
	// NextStart is when it is started again, zero while it runs.
	NextStart time.Time `json:"nextStart,omitzero"`
}

// ReadState reads what the supervisor that is, or was, running has reported. No
// report is the zero State.
func ReadState(file string) (State, error) {
	var s State
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return State{}, fmt.Errorf("read the supervisor's state %s: %w", file, err)
	}
	return s, nil
}

// Run keeps the process running until ctx is done, then asks it to stop and
// waits for it.
func Run(ctx context.Context, p Process) (err error) {
	// The kernel ties the parent-death signal to the thread that started the
	// child, not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	log := &lumberjack.Logger{Filename: p.LogFile, MaxSize: logMegabytes, MaxBackups: logBackups}
	defer func() { err = errors.Join(err, log.Close()) }()

	state := State{PID: os.Getpid(), Started: time.Now()}
	// A full disk must not end the one process that would start the other again
	// when there is room.
	report := func() {
		if err := write(p.StateFile, state); err != nil {
			_, _ = fmt.Fprintf(log, "supervisor: %v\n", err)
		}
	}
	pause := backoffBase
	for {
		started := time.Now()
		exit := runOnce(ctx, p, log, func(pid int) {
			state.Child, state.NextStart = pid, time.Time{}
			report()
		})
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > backoffReset {
			pause = backoffBase
		}
		state.Child = 0
		state.Restarts++
		state.LastExit, state.LastError = time.Now(), why(p, exit)
		state.NextStart = state.LastExit.Add(pause)
		report()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		pause = min(2*pause, backoffMax)
	}
}

// runOnce runs the process to its end. When ctx is done it is asked to stop, and
// killed when it does not.
func runOnce(ctx context.Context, p Process, log *lumberjack.Logger, started func(pid int)) error {
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = tiedToParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = p.Grace
	if err := cmd.Start(); err != nil {
		return err
	}
	started(cmd.Process.Pid)
	return cmd.Wait()
}

func why(p Process, exit error) string {
	name := filepath.Base(p.Args[0])
	if exit == nil {
		return name + " ended without being asked to"
	}
	return fmt.Sprintf("%s ended: %v", name, exit)
}

func write(file string, s State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the supervisor's state: %w", err)
	}
	return atomicfile.WriteFile(file, append(data, '\n'), stateMode)
}
