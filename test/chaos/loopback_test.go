package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// insideEnv tells the test binary that it runs in a network namespace of its own.
const insideEnv = "KARMADA_CHAOS_LOOPBACK_ONLY"

// TestLoopbackOnly runs a control plane from init to deinit on a host that has no network but loopback. The test runs
// itself in a network namespace of its own; where the kernel does not permit that it is skipped, and says so.
func TestLoopbackOnly(t *testing.T) {
	if os.Getenv(insideEnv) != "" {
		loopbackOnly(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := exec.CommandContext(t.Context(), self, "-test.run=^TestLoopbackOnly$", "-test.v", "-test.timeout=10m")
	inside.Env = append(os.Environ(), insideEnv+"=1")
	inside.SysProcAttr = networkNamespace()
	inside.Cancel = func() error { return inside.Process.Signal(syscall.SIGTERM) }
	out, err := inside.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		notice := fmt.Sprintf("NOT TESTED: a host with nothing but loopback. This needs a network namespace, which is not permitted here: %v", err)
		fmt.Fprintln(os.Stderr, notice)
		t.Skip(notice)
	}
	t.Logf("in a network namespace:\n%s", out)
	if err != nil {
		t.Fatalf("A host without a network gets a control plane, too: %v", err)
	}
}

// networkNamespace asks for a new network namespace; those who are not root get a user namespace to be root in.
func networkNamespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

func loopbackOnly(t *testing.T) {
	if err := raiseLoopback(); err != nil {
		t.Fatalf("bring loopback up: %v", err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(interfaces, func(i net.Interface) bool { return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 }) {
		t.Fatalf("this is no host with nothing but loopback: %v", interfaces)
	}
	p := newPlane(t)
	// The default bind address is the case in point: there is no route to take an address from.
	p.BindAddress = ""
	if err := Survives(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// raiseLoopback does `ip link set lo up` without needing that program.
func raiseLoopback() (err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { err = errors.Join(err, syscall.Close(socket)) }()
	// struct ifreq: a name of 16 bytes, and a union of 24, here of flags.
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
