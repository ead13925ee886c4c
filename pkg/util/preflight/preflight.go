// Package preflight finds out whether a host has what a control plane needs,
// before anything on it is changed.
//
// Each check returns nil or one *Problem: the thing, what is wrong with it, and
// the way out. Run them all and hand the results to All, so that people see
// every problem at once. No check leaves a trace on the host.
package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A Problem is in the way of an installation.
type Problem struct {
	Thing  string // what is wrong, such as `port 32443 on 0.0.0.0`
	Reason string // goes on with a verb: `is in use by process 12 (nginx)`
	WayOut string // what to do
	Err    error  // the cause, if there is one
}

// Error is one sentence with the way out.
func (p *Problem) Error() string { return fmt.Sprintf("%s %s: %s", p.Thing, p.Reason, p.WayOut) }

// Unwrap is the cause.
func (p *Problem) Unwrap() error { return p.Err }

// All joins the problems found. One that two checks ran into is there once.
func All(found ...error) error {
	var kept []error
	seen := map[string]bool{}
	for _, err := range found {
		if err == nil || seen[err.Error()] {
			continue
		}
		seen[err.Error()] = true
		kept = append(kept, err)
	}
	return errors.Join(kept...)
}

const maxPort = 65535

// PortInUse reports whether something listens on the TCP port of host, an IP
// address, so that nothing else can.
func PortInUse(host string, port int) bool {
	return errors.Is(listen(host, port), syscall.EADDRINUSE)
}

// PortFree checks that a server can listen on the TCP port of host, an IP
// address. If another process does, it is named where the kernel lets us see it.
func PortFree(host string, port int) error {
	thing := fmt.Sprintf("port %d on %s", port, host)
	if port < 1 || port > maxPort {
		return &Problem{Thing: thing, Reason: "does not exist", WayOut: fmt.Sprintf("choose a port between 1 and %d", maxPort)}
	}
	err := listen(host, port)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		by := "another process"
		if p, ok := listener(host, port); ok {
			by = p
		}
		return &Problem{Thing: thing, Reason: "is in use by " + by, WayOut: "stop that process, or choose another port", Err: err}
	case errors.Is(err, syscall.EACCES):
		return &Problem{Thing: thing, Reason: "is for privileged users only", WayOut: "choose a port from 1024 upwards, or run this as root", Err: err}
	default:
		return notHere(host, err)
	}
}

// HostAddress checks that a server can listen on addr: an IP address that this
// host has, or the unspecified one.
func HostAddress(addr string) error {
	if err := IPAddress("address to listen on", addr); err != nil {
		return err
	}
	if err := listen(addr, 0); err != nil {
		return notHere(addr, err)
	}
	return nil
}

func notHere(addr string, err error) error {
	p := &Problem{
		Thing: fmt.Sprintf("address %s", addr), Reason: fmt.Sprintf("cannot be listened on (%v)", cause(err)),
		WayOut: "choose an address that this host has, or 0.0.0.0 for all of them", Err: err,
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		p.Reason = "is not one of this host's"
	}
	return p
}

// listen listens for a moment, in the way the servers do.
func listen(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// IPAddress checks that value is an IP address; what says where it came from,
// such as a flag's name.
func IPAddress(what, value string) error {
	if _, err := netip.ParseAddr(value); err != nil {
		return &Problem{
			Thing: fmt.Sprintf("%s %q", what, value), Reason: "is not an IP address",
			WayOut: "give one like 192.0.2.10 or 2001:db8::10", Err: err,
		}
	}
	return nil
}

// DNSName checks that value can be a DNS name in a certificate; its first label
// may be a *. What says where it came from, such as a flag's name.
func DNSName(what, value string) error {
	p := &Problem{Thing: fmt.Sprintf("%s %q", what, value), WayOut: "give a name like karmada.example.org or *.example.org"}
	if _, err := netip.ParseAddr(value); err == nil {
		p.Reason, p.WayOut = "is an IP address, not a DNS name", "give it as an IP address instead"
		return p
	}
	name := strings.TrimPrefix(strings.ToLower(value), "*.")
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		p.Reason = "is not a DNS name"
		return p
	}
	return nil
}

// WritableDir checks that path is a directory in which we can make files, or
// that it can be made.
func WritableDir(path string) error {
	dir, err := nearest(path)
	if err != nil {
		return err
	}
	if err := tryWrite(dir); err != nil {
		reason := fmt.Sprintf("cannot be written to (%v)", cause(err))
		if abs, absErr := filepath.Abs(path); absErr != nil || abs != dir {
			reason = fmt.Sprintf("cannot be made: %s cannot be written to (%v)", dir, cause(err))
		}
		return &Problem{Thing: directory(path), Reason: reason, WayOut: "choose another directory, or run this as a user who may write there", Err: err}
	}
	return nil
}

// FreeSpace checks that the filesystem of path, which may not exist yet, has at
// least this many bytes free for us.
func FreeSpace(path string, bytes uint64) error {
	dir, err := nearest(path)
	if err != nil {
		return err
	}
	free, err := freeBytes(dir)
	if err != nil {
		return &Problem{
			Thing: directory(path), Reason: fmt.Sprintf("does not tell how much space it has (%v)", cause(err)),
			WayOut: "choose a directory on another filesystem", Err: err,
		}
	}
	if free < bytes {
		return &Problem{
			Thing: directory(path), Reason: fmt.Sprintf("has %s free, and %s are needed", mebibytes(free), mebibytes(bytes)),
			WayOut: "free some space, or choose a directory on another filesystem",
		}
	}
	return nil
}

// OpenFiles makes sure that this process, and what it starts, may have this many
// files open: when the soft limit is lower it is raised to the hard one.
func OpenFiles(files uint64) error {
	return openFiles(files, getOpenFiles, setOpenFiles)
}

func openFiles(files uint64, get func() (soft, hard uint64, err error), set func(soft, hard uint64) error) error {
	const thing = "the limit on open files"
	const wayOut = "raise it (ulimit -n, /etc/security/limits.conf, or LimitNOFILE= of the service)"
	soft, hard, err := get()
	if err != nil {
		return &Problem{Thing: thing, Reason: fmt.Sprintf("cannot be read (%v)", err), WayOut: wayOut, Err: err}
	}
	if soft >= files {
		return nil
	}
	if hard < files {
		return &Problem{Thing: thing, Reason: fmt.Sprintf("is %d, and %d are needed", hard, files), WayOut: wayOut}
	}
	if err := set(hard, hard); err != nil {
		return &Problem{Thing: thing, Reason: fmt.Sprintf("is %d, and cannot be raised to %d (%v)", soft, hard, err), WayOut: wayOut, Err: err}
	}
	return nil
}

// nearest returns path, or the nearest directory above it that exists.
func nearest(path string) (string, error) {
	p := &Problem{Thing: directory(path), WayOut: "choose another directory"}
	dir, err := filepath.Abs(path)
	if err != nil {
		p.Reason, p.Err = fmt.Sprintf("cannot be found (%v)", err), err
		return "", p
	}
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			p.Reason = fmt.Sprintf("cannot be used: %s is a file", dir)
			p.WayOut = "choose another directory, or move the file away"
			return "", p
		case errors.Is(err, fs.ErrNotExist):
			if _, lerr := os.Lstat(dir); lerr == nil {
				p.Reason = fmt.Sprintf("cannot be used: %s is a link to something that does not exist", dir)
				p.WayOut = "choose another directory, or put the link right"
				return "", p
			}
		case errors.Is(err, syscall.ENOTDIR):
			// What is in the way is further up.
		default:
			p.Reason, p.Err = fmt.Sprintf("cannot be used: %s cannot be looked at (%v)", dir, cause(err)), err
			return "", p
		}
		dir = filepath.Dir(dir)
	}
}

// tryWriteDir makes a directory in dir and removes it.
func tryWriteDir(dir string) error {
	tmp, err := os.MkdirTemp(dir, ".preflight-")
	if err != nil {
		return err
	}
	return os.Remove(tmp)
}

func directory(path string) string { return "directory " + path }

// cause is the system's own word for what went wrong, without the names of
// temporary files and of system calls.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func mebibytes(n uint64) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%d MiB", n/mebibyte)
}
