package supervise

import "syscall"

// tiedToParent puts a child in its own process group, so that a terminal's
// Ctrl-C does not reach it, and has the kernel ask it to stop when its parent
// dies.
func tiedToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
