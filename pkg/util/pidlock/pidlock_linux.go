package pidlock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// fileMode keeps the file, though not secret, to its owner: whoever can open it
// can lock it.
const fileMode fs.FileMode = 0o600

// selfFDs lists the open files of this process.
const selfFDs = "/proc/self/fd"

// Acquire takes the lock at path without waiting; the file is made if needed,
// its directory is not. The error is a *HeldError when the lock is taken, by
// this process or another.
func Acquire(path string) (*Lock, error) {
	for {
		l, err := tryAcquire(path)
		if err != nil {
			var held *HeldError
			if errors.As(err, &held) {
				return nil, err
			}
			return nil, fmt.Errorf("acquire lock %s: %w", path, err)
		}
		if l != nil {
			return l, nil
		}
	}
}

// tryAcquire returns neither lock nor error when the file went away under it.
func tryAcquire(path string) (*Lock, error) {
	// Opening the file a second time would be enough to lose the first lock.
	if mine, err := heldHere(path); err != nil {
		return nil, err
	} else if mine {
		return nil, &HeldError{Path: path, PID: os.Getpid()}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	l, err := lock(f, path)
	if l == nil {
		err = errors.Join(err, f.Close())
	}
	return l, err
}

func lock(f *os.File, path string) (*Lock, error) {
	// The last holder may be gone by the time it is asked for, so this takes turns.
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, wholeFile())
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return nil, os.NewSyscallError("fcntl", err)
		}
		pid, held, err := ask(f)
		if err != nil {
			return nil, err
		}
		if held {
			return nil, &HeldError{Path: path, PID: pid}
		}
	}
	// A lock on a file that no longer has this name keeps nobody away.
	locked, err := f.Stat()
	if err != nil {
		return nil, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, named) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The number in the file is for people; a full disk must not keep anybody from stopping what fills it.
	if err := writePID(f); err != nil && !errors.Is(err, unix.ENOSPC) {
		return nil, err
	}
	return &Lock{path: path, file: f}, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Holder says whether a process holds the lock at path, and which one. The
// number is 0 when the kernel does not tell, as for a process in another
// container. A file that does not exist is not held.
func Holder(path string) (pid int, held bool, err error) {
	mine, err := heldHere(path)
	if err != nil {
		return 0, false, fmt.Errorf("find the holder of lock %s: %w", path, err)
	}
	if mine {
		return os.Getpid(), true, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the holder of lock %s: %w", path, err)
	}
	pid, held, err = ask(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, false, fmt.Errorf("find the holder of lock %s: %w", path, err)
	}
	return pid, held, nil
}

// Signal sends sig to the process that holds the lock at path, and to no other:
// the process is pinned first, then the holder is asked for again. ErrNotHeld
// when there is none, or it is gone meanwhile.
func Signal(path string, sig os.Signal) error {
	pid, held, err := Holder(path)
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("signal the holder of lock %s: %w", path, ErrNotHeld)
	}
	if pid == 0 {
		return fmt.Errorf("signal the holder of lock: %w", &HeldError{Path: path})
	}
	// From here on p is this very process, not its number (pidfd).
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("signal process %d, which holds lock %s: %w", pid, path, err)
	}
	err = signalIfHolder(p, path, sig)
	if errors.Is(err, os.ErrProcessDone) {
		err = ErrNotHeld // it ended meanwhile
	}
	if err = errors.Join(err, p.Release()); err != nil {
		return fmt.Errorf("signal process %d, which holds lock %s: %w", pid, path, err)
	}
	return nil
}

func signalIfHolder(p *os.Process, path string, sig os.Signal) error {
	pid, held, err := Holder(path)
	if err != nil {
		return err
	}
	if !held || pid != p.Pid {
		return ErrNotHeld
	}
	return p.Signal(sig)
}

// ask asks the kernel which other process holds a lock on f.
func ask(f *os.File) (pid int, held bool, err error) {
	l := wholeFile()
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, l); err != nil {
		return 0, false, os.NewSyscallError("fcntl", err)
	}
	// Holders out of sight are 0 or negative.
	return max(0, int(l.Pid)), l.Type != unix.F_UNLCK, nil
}

func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}

// heldHere reports whether this process holds a lock on path: then one of its
// descriptors is open on the file for writing, which only Acquire does. The
// kernel does not tell, and the file may not be opened to find out.
func heldHere(path string) (bool, error) {
	want, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(selfFDs)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		got, err := os.Stat(filepath.Join(selfFDs, e.Name()))
		if err != nil || !os.SameFile(want, got) {
			continue // closed meanwhile, or another file
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return false, err
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err == nil && flags&unix.O_ACCMODE == unix.O_RDWR {
			return true, nil
		}
	}
	return false, nil
}
