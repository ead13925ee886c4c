// Package pidlock answers with authority which process runs on a directory.
//
// A process that Acquires a lock file holds a POSIX record lock on it. The
// kernel drops the lock when the process ends, however it ends, and tells
// everybody who asks which process holds it. So there is no stale lock, and no
// process that happens to have got the number of a dead one is ever mistaken
// for it. The number is also in the file as text, but only for people to read.
//
// What the kernel's record locks ask of their users:
//
//   - A process loses its lock as soon as it closes ANY descriptor of the file.
//     While a Lock is held the file must not be opened by anything else in the
//     same process, not even to read it; the functions here see to that
//     themselves, as long as one process does not Acquire a path in one
//     goroutine while it asks about it in another.
//   - A child does not inherit the lock. A supervisor and what it supervises
//     have a lock file each.
//   - The file stays when the lock is released. Removing it is for whoever holds
//     the lock (Remove): else two processes may hold locks on two files that
//     had the same name.
//
// Linux only; on other systems every function returns errors.ErrUnsupported.
package pidlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrNotHeld is what Signal returns when no process holds the lock. It is an
// os.ErrProcessDone, like that of signalling any other process that has ended.
var ErrNotHeld = fmt.Errorf("no process holds the lock: %w", os.ErrProcessDone)

// A HeldError is what Acquire returns when another process holds the lock.
type HeldError struct {
	Path string
	PID  int // 0 when the kernel does not tell, as for a process in another container
}

// Error names the process.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is held by a process that cannot be seen from here (in another container or on another host?)", e.Path)
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.PID)
}

// A Lock is a lock file that this process holds until Release, Remove or its end.
type Lock struct {
	path string
	file *os.File // the only descriptor of the file in this process
}

// Release gives the lock up. The file stays, empty. A second call does nothing.
func (l *Lock) Release() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Truncate(0), l.file.Close())
	l.file = nil
	if err != nil {
		return fmt.Errorf("release lock %s: %w", l.path, err)
	}
	return nil
}

// Remove removes the file, then gives the lock up.
func (l *Lock) Remove() error {
	if l.file == nil {
		return fmt.Errorf("remove lock %s: it was released before", l.path)
	}
	err := errors.Join(os.Remove(l.path), l.file.Close())
	l.file = nil
	if err != nil {
		return fmt.Errorf("remove lock %s: %w", l.path, err)
	}
	return nil
}

// pollInterval is how often WaitReleased looks: there is nothing to be told by.
const pollInterval = 50 * time.Millisecond

// WaitReleased returns when no process holds the lock at path any more, or with
// the error of ctx.
func WaitReleased(ctx context.Context, path string) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		pid, held, err := Holder(path)
		if err != nil || !held {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for process %d to release %s: %w", pid, path, ctx.Err())
		case <-tick.C:
		}
	}
}
