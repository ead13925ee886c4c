package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Process is one that names a data directory on its command line.
type Process struct {
	PID  int
	Args []string
}

func (p Process) String() string {
	args := slices.Clone(p.Args)
	args[0] = filepath.Base(args[0])
	return fmt.Sprintf("process %d (%s)", p.PID, strings.Join(args, " "))
}

// Role is the server's or command's name: "plane", "supervise", "init".
func (p Process) Role() string {
	if len(p.Args) < 2 {
		return ""
	}
	return p.Args[1]
}

// Signal sends sig, and is content when the process has ended meanwhile or its number has gone to another.
func (p Process) Signal(sig os.Signal) error {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("signal %s: %w", p, err)
	}
	defer handle.Release()
	// From here on handle is one process, not a number: see that it is still the one that was found.
	if args, err := commandLine(p.PID); err != nil || !slices.Equal(args, p.Args) {
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p, err)
	}
	return nil
}

// Listens reports whether the process listens on a TCP port.
func (p Process) Listens() bool {
	sockets := listeningSockets(p.PID)
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
	if err != nil {
		return false
	}
	for _, link := range links {
		// A descriptor that was closed meanwhile is none that listens.
		if target, err := os.Readlink(link); err == nil && sockets[target] {
			return true
		}
	}
	return false
}

// listeningSockets returns the sockets that listen on a TCP port in the network namespace of a process, as the links
// in its fd directory read. A process that has ended has none.
func listeningSockets(pid int) map[string]bool {
	const (
		state, inode = 3, 9 // columns of /proc/PID/net/tcp
		listening    = "0A"
	)
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) > inode && fields[state] == listening {
				sockets["socket:["+fields[inode]+"]"] = true
			}
		}
	}
	return sockets
}

// FindProcesses lists the processes whose command line names dir or something below it, the calling one excepted.
func FindProcesses(dir string) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		args, err := commandLine(pid)
		if err != nil || len(args) == 0 {
			continue // it has ended; a zombie has no command line
		}
		if slices.ContainsFunc(args, func(arg string) bool { return names(arg, dir) }) {
			found = append(found, Process{PID: pid, Args: args})
		}
	}
	return found, nil
}

// names reports whether arg is dir, a path below it, or a flag with such a value.
func names(arg, dir string) bool {
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		arg = value
	}
	return arg == dir || strings.HasPrefix(arg, dir+string(filepath.Separator))
}

func commandLine(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	if len(args) == 1 && args[0] == "" {
		return nil, nil
	}
	return args, nil
}
