package preflight

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryWrite finds out whether files can be made in dir by making one without a
// name: it is never seen, and gone even if we are killed. Where the filesystem
// does not know such files a directory is made and removed. Looking at the mode
// would not do: it says nothing to root, nor about filesystems mounted read-only.
func tryWrite(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return unix.Close(fd)
	}
	return tryWriteDir(dir)
}

func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

func getOpenFiles() (soft, hard uint64, err error) {
	var l syscall.Rlimit
	err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return l.Cur, l.Max, err
}

// setOpenFiles goes through package syscall, which then hands the limit on to
// children; else they get the one this process was started with.
func setOpenFiles(soft, hard uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: soft, Max: hard})
}

// listener names the process that keeps others from listening on host and port.
func listener(host string, port int) (string, bool) {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return "", false
	}
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		inodes = append(inodes, listeningInodes(table, addr, port)...)
	}
	pid, ok := socketOwner("/proc", inodes)
	if !ok {
		return "", false
	}
	comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return fmt.Sprintf("process %d", pid), true
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(comm))), true
}

// Columns of /proc/net/tcp, and its name for a listening socket; see proc(5).
const (
	columnLocal    = 1
	columnState    = 3
	columnInode    = 9
	stateListening = "0A"
)

// listeningInodes returns the sockets in a table of the kernel's that are in the
// way of a listener on addr and port.
func listeningInodes(table string, addr netip.Addr, port int) []string {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // read only
	var inodes []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) <= columnInode || fields[columnState] != stateListening {
			continue
		}
		local, err := parseSocketAddress(fields[columnLocal])
		if err != nil || int(local.Port()) != port {
			continue
		}
		if has := local.Addr(); has == addr.Unmap() || has.IsUnspecified() || addr.IsUnspecified() {
			inodes = append(inodes, fields[columnInode])
		}
	}
	return inodes
}

// parseSocketAddress reads "0100007F:1F90", which is 127.0.0.1:8080: the address
// in words of four bytes, each turned round on the little-endian machines that
// this is built for.
func parseSocketAddress(s string) (netip.AddrPort, error) {
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return netip.AddrPort{}, errors.New("no port")
	}
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, errors.New("no address")
	}
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), nil
}

// socketOwner finds a process with one of the sockets among those we may look at.
func socketOwner(proc string, inodes []string) (int, bool) {
	if len(inodes) == 0 {
		return 0, false
	}
	links, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return 0, false
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // closed, or gone, meanwhile
		}
		inode := strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")
		if inode == target || !slices.Contains(inodes, inode) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		return pid, err == nil
	}
	return 0, false
}
