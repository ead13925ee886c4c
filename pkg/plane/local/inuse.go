package local

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

const (
	// kernelLocks lists the file locks of the host.
	kernelLocks = "/proc/locks"
	// exitTime is how long a process that was killed may take until all its locks are gone; they go one by one.
	exitTime = 3 * time.Second
)

// A DataInUseError says that a process has the data of a plane open although it does not hold the plane's lock: the
// lock file was removed under it. Nothing may be started on that data, nor may it be removed.
type DataInUseError struct {
	Dir string
	PID int
}

func (e *DataInUseError) Error() string {
	return fmt.Sprintf("process %d has the data in %s open, but its lock file in %s is gone: stop that process and its parent (kill %d), then run this again",
		e.PID, e.Dir, filepath.Join(e.Dir, "run"), e.PID)
}

// checkUnlockedData returns a *DataInUseError when a process uses the data of a plane that no process has locked.
func checkUnlockedData(l plane.Layout) error {
	giveUp := time.Now().Add(exitTime)
	for {
		pid, err := databaseUser(l)
		if err != nil || pid == 0 {
			return err
		}
		if time.Now().After(giveUp) {
			return &DataInUseError{Dir: l.Dir, PID: pid}
		}
		time.Sleep(pollInterval)
	}
}

// databaseUser returns the process that has locked etcd's database, 0 when there is none. It asks the kernel and takes
// no lock itself, which would be in the way of an etcd that is starting.
func databaseUser(l plane.Layout) (int, error) {
	info, err := os.Stat(filepath.Join(l.EtcdData(), "member", "snap", "db"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the data: %w", err)
	}
	id, ok := lockID(info)
	if !ok {
		return 0, nil
	}
	file, err := os.Open(kernelLocks)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find out who uses the data: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if pid, ok := lockHolder(lines.Text(), id); ok {
			return pid, nil
		}
	}
	return 0, lines.Err()
}

// lockHolder reads a line of /proc/locks, such as "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF". It returns the
// process when the line is of a lock on the file id; one that waits for the lock ("1: -> FLOCK …") does not have it.
func lockHolder(line, id string) (int, bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != id {
		return 0, false
	}
	pid, err := strconv.Atoi(fields[4])
	return pid, err == nil && pid > 0
}
