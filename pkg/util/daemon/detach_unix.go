//go:build unix

package daemon

import (
	"os/exec"
	"syscall"
)

// detach puts the process into a session of its own. There is no parent-death
// signal: it is to live on.
func detach(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}
