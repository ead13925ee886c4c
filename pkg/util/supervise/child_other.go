//go:build !linux

package supervise

import "syscall"

func tiedToParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
