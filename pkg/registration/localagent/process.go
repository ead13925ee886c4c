package localagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
	"github.com/karmadactl/karmadactl/pkg/util/daemon"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
	"github.com/karmadactl/karmadactl/pkg/util/supervise"
)

// stopGrace is how long an agent may take to stop before it is killed. It gives its lease back and ends requests.
const stopGrace = 20 * time.Second

// Supervise keeps the agent of a directory running, with the karmada binary at that path, until ctx is done.
func Supervise(ctx context.Context, l Layout, karmada string) (err error) {
	lock, err := pidlock.Acquire(l.SupervisorLock())
	if err != nil {
		return fmt.Errorf("become the supervisor of the agent in %s: %w", l.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	cfg, err := Load(l)
	if err != nil {
		return err
	}
	return supervise.Run(ctx, supervise.Process{
		Args: append([]string{karmada}, cfg.Args(l)...), LogFile: l.LogFile(), StateFile: l.SupervisorState(), Grace: stopGrace,
	})
}

// Running returns the process that keeps the agent running, 0 if there is none.
func Running(l Layout) (int, error) {
	pid, held, err := pidlock.Holder(l.SupervisorLock())
	switch {
	case err != nil:
		return 0, fmt.Errorf("find the agent's process: %w", err)
	case !held:
		return 0, nil
	case pid == 0:
		return 0, fmt.Errorf("the agent in %s is run by a process that cannot be seen from here (in another container or on another host?)", l.Dir)
	}
	return pid, nil
}

// Start starts a supervisor, which is the command, in the background, unless one runs. With anew one that runs is stopped
// first. It returns the supervisor's number once it is there.
func Start(ctx context.Context, l Layout, command []string, anew bool) (pid int, err error) {
	pid, err = Running(l)
	if err != nil {
		return 0, err
	}
	if pid != 0 {
		if !anew {
			return pid, nil
		}
		if err := Stop(ctx, l); err != nil {
			return 0, err
		}
	}
	child, err := daemon.Start(daemon.Command{Args: command, Env: os.Environ(), LogFile: l.SupervisorLog()})
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	err = child.WaitFor(ctx, func(context.Context) (bool, error) {
		holder, err := Running(l)
		return holder == child.PID(), err
	})
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	return child.PID(), nil
}

// Stop stops the agent and what keeps it running, and waits until both have ended. An agent that does not run is fine.
func Stop(ctx context.Context, l Layout) error {
	err := pidlock.Signal(l.SupervisorLock(), syscall.SIGTERM)
	if errors.Is(err, pidlock.ErrNotHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop the agent: %w", err)
	}
	if err := pidlock.WaitReleased(ctx, l.SupervisorLock()); err != nil {
		return fmt.Errorf("wait for the agent to stop: %w", err)
	}
	return nil
}

// LastFailure returns how the agent last ended by itself since its supervisor started, with the end of its log; "" if it
// has not.
func LastFailure(l Layout) (string, error) {
	state, err := supervise.ReadState(l.SupervisorState())
	if err != nil || state.Restarts == 0 {
		return "", err
	}
	pid, err := Running(l)
	if err != nil || pid != state.PID {
		return "", err // it tells of another life
	}
	return state.LastError + lastWords(l.LogFile()), nil
}

// lastWordsBytes is how far back the log is searched for why the agent ended.
const lastWordsBytes = 64 << 10

// lastWords finds the error with which an agent ended.
func lastWords(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	said := ""
	for line := range strings.Lines(string(data[max(0, len(data)-lastWordsBytes):])) {
		for _, prefix := range []string{"error: ", "panic: ", "fatal error: "} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				said = ": " + rest
			}
		}
	}
	return said
}

// Remove removes the directory with everything that was made in it, settings last. Files of others stay, and so does the
// directory then. An agent that runs is an error. A directory that is not there is fine; one that is not an agent's is
// ErrNoAgent.
func Remove(l Layout) error {
	if _, err := Load(l); err != nil {
		if _, statErr := os.Stat(l.Dir); os.IsNotExist(statErr) {
			return nil
		}
		return err
	}
	pid, err := Running(l)
	if err != nil {
		return err
	}
	if pid != 0 {
		return fmt.Errorf("the agent in %s runs (process %d): it has to be stopped before its files are removed", l.Dir, pid)
	}
	if err := makeDirs(l); err != nil { // the lock has a place in them
		return err
	}
	lock, err := lockCommand(l)
	if err != nil {
		return err
	}
	return errors.Join(lock.Remove(), removeFiles(l))
}

// removeFiles removes what was made in a directory, in an order that lets an interrupted removal go on.
func removeFiles(l Layout) error {
	paths := l.files()
	for _, pattern := range []string{"*.log", "*.log.gz"} {
		logs, err := filepath.Glob(filepath.Join(filepath.Dir(l.LogFile()), pattern))
		if err != nil {
			return fmt.Errorf("find the agent's logs: %w", err)
		}
		paths = append(paths, logs...)
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, remove(path))
	}
	for _, dir := range l.dirs() {
		_, err := atomicfile.Clean(dir)
		errs = append(errs, err, removeEmpty(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the agent's files: %w", err)
	}
	_, err := atomicfile.Clean(l.Dir)
	if err := errors.Join(err, remove(l.ConfigFile()), removeEmpty(l.Dir)); err != nil {
		return fmt.Errorf("remove the agent's files: %w", err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// removeEmpty removes a directory unless somebody has something in it.
func removeEmpty(dir string) error {
	err := remove(dir)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}
