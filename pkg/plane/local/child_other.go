//go:build !linux

package local

import "syscall"

func tiedToParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
