// Package daemon starts a process that lives on when its parent ends, and waits
// until it has come up.
//
// A Child is the leader of a session of its own: closing the terminal, or Ctrl-C
// in it, does not reach it. It reads nothing, writes to a log, keeps no directory
// busy, and gets just the environment it is handed. While the parent lives, a
// child that ends is reaped at once and leaves no zombie.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// logMode of a log file made by Start: logs may say more than others should read.
const logMode fs.FileMode = 0o600

// pollInterval is how often WaitFor asks.
const pollInterval = 20 * time.Millisecond

// Command says what to start.
type Command struct {
	// Args are the program, as a path or a name in PATH, and its arguments.
	Args []string
	// Env is the whole environment, as in os.Environ; nothing is added.
	Env []string
	// LogFile gets what the process writes, after what is in it already. It is
	// made with mode 0600; its directory must exist.
	LogFile string
	// Output gets what the process writes instead, when LogFile is empty. The
	// caller keeps it and closes it. Without either, output is thrown away.
	Output *os.File
}

// Child is a started process.
type Child struct {
	pid     int
	process *os.Process
	log     tail
	done    chan struct{}
	exit    string // why it ended; to be read after done is closed
}

// Start starts the process and returns at once.
func Start(c Command) (*Child, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start a process: no program given")
	}
	child, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(c.Args[0]), err)
	}
	return child, nil
}

func start(c Command) (child *Child, err error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append([]string{}, c.Env...) // not nil, which would mean this process's own
	if err := detach(cmd); err != nil {
		return nil, err
	}

	log := tail{path: c.LogFile}
	out := c.Output
	if c.LogFile != "" {
		if out, err = os.OpenFile(c.LogFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, logMode); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		info, err := out.Stat()
		if err != nil {
			return nil, err
		}
		log.from = info.Size()
	}
	if out != nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	child = &Child{pid: cmd.Process.Pid, process: cmd.Process, log: log, done: make(chan struct{})}
	go func() {
		defer close(child.done)
		child.exit = "exit status 0"
		if err := cmd.Wait(); err != nil {
			child.exit = err.Error()
		}
	}()
	return child, nil
}

// PID is the number of the process.
func (c *Child) PID() int { return c.pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Signal sends sig to the process, never to another one that got its number.
// Once it has ended the error is os.ErrProcessDone.
func (c *Child) Signal(sig os.Signal) error {
	if err := c.process.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", c.pid, err)
	}
	return nil
}

// Err is nil while the process runs, then an *ExitError.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return &ExitError{PID: c.pid, Status: c.exit, LogFile: c.log.path, LastLines: c.log.lines()}
	default:
		return nil
	}
}

// WaitFor asks ready until it says yes. It ends at once, with an *ExitError,
// when the process ends, even if it said that it was ready: something else may
// have answered in its place. It ends with ready's error when there is one, and
// with the error of ctx when that is done. The process is left running.
//
// The context that ready gets is done when the process ends.
func (c *Child) WaitFor(ctx context.Context, ready func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()

	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := ready(ctx)
		if exit := c.Err(); exit != nil {
			return exit
		}
		if ok && err == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for process %d: %w", c.pid, err)
		}
		select {
		case <-c.done:
			return c.Err()
		case <-ctx.Done():
			if exit := c.Err(); exit != nil {
				return exit
			}
			return fmt.Errorf("wait for process %d: %w", c.pid, ctx.Err())
		case <-tick.C:
		}
	}
}

// An ExitError says that a process ended, and with what last words.
type ExitError struct {
	PID     int
	Status  string // such as "exit status 1" or "signal: killed"
	LogFile string // where there is more; empty when the output went elsewhere
	// LastLines of what the process itself logged, 20 at most, with what looks
	// like a secret taken out.
	LastLines []string
}

// Error has the last lines, one to a line.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("process %d ended: %s", e.PID, e.Status)
	if len(e.LastLines) == 0 {
		return text
	}
	return text + "; it last said:\n  " + strings.Join(e.LastLines, "\n  ")
}
