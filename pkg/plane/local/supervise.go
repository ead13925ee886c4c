package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

const (
	// The wait before a restart doubles from backoffBase to backoffMax, and starts over once the plane has run for
	// backoffReset.
	backoffBase  = time.Second
	backoffMax   = time.Minute
	backoffReset = 10 * time.Minute

	// killAfter is how long the plane's process may take to stop before it is killed. It is longer than all its
	// components may take one by one, so that only a wedged process is ever killed.
	killAfter = 5 * stopTimeout

	// lastWordsBytes is how far back the log is searched for why a process died; a panic is followed by its stacks.
	lastWordsBytes = 256 << 10

	logMegabytes = 64
	logBackups   = 3
)

// Supervise runs command (the process of a plane, whose output becomes its log) until ctx is done, and starts it
// again with growing pauses whenever it ends by itself. When ctx is done it asks the process to stop and waits for
// it. Should the supervisor itself be killed, the kernel asks the process to stop: no plane runs unwatched.
func Supervise(ctx context.Context, l plane.Layout, command []string) (err error) {
	lock, err := pidlock.Acquire(l.SupervisorLock())
	if err != nil {
		return fmt.Errorf("become the supervisor of %s: %w", l.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	// The kernel ties the parent-death signal to the thread that started the child, not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	log := &lumberjack.Logger{Filename: l.LogFile(), MaxSize: logMegabytes, MaxBackups: logBackups}
	defer func() { err = errors.Join(err, log.Close()) }()

	state := SupervisorState{PID: os.Getpid(), Started: time.Now()}
	pause := backoffBase
	// A full disk must not end the one process that would start the plane again when there is room.
	report := func() {
		if err := writeState(l.SupervisorState(), state); err != nil {
			fmt.Fprintf(log, "supervisor: %v\n", err)
		}
	}
	for {
		report()
		// A state of the last life must not be taken for this one's.
		if err := os.Remove(l.PlaneState()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the last state of the plane: %w", err)
		}
		started := time.Now()
		exit := runChild(ctx, command, log)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > backoffReset {
			pause = backoffBase
		}
		state.Restarts++
		state.LastExit, state.LastError = time.Now(), lastError(l, exit)
		state.NextStart = state.LastExit.Add(pause)
		report()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, backoffMax)
		state.NextStart = time.Time{}
	}
}

// runChild runs command once. When ctx is done it is asked to stop, and killed when it does not.
func runChild(ctx context.Context, command []string, log *lumberjack.Logger) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = tiedToParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	return cmd.Run()
}

// lastError says why the plane's process ended: what it reported itself, else what it last wrote before it died, else
// its exit status.
func lastError(l plane.Layout, exit error) string {
	state, err := readState[State](l.PlaneState())
	if err == nil {
		if c, ok := state.failure(); ok {
			return fmt.Sprintf("component %s: %s", c.Name, c.Message)
		}
	}
	if exit == nil {
		return "the process of the plane ended without being asked to"
	}
	why := fmt.Sprintf("the process of the plane ended: %v", exit)
	if last := lastWords(l.LogFile()); last != "" {
		why += ": " + last
	}
	if starting := state.starting(); len(starting) > 0 {
		return fmt.Sprintf("component %s, which was starting: %s", strings.Join(starting, ", "), why)
	}
	return why
}

// lastWords finds what a process that died of a panic or a fatal error said last. Upstream components end the process
// in this way, etcd for one when its database is damaged.
func lastWords(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	said := ""
	for line := range strings.Lines(string(data[max(0, len(data)-lastWordsBytes):])) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "), strings.HasPrefix(line, "error: "):
			said = line
		case strings.Contains(line, `"level":"panic"`), strings.Contains(line, `"level":"fatal"`):
			said = line
		}
	}
	return said
}
