//go:build !linux

package pidlock

import (
	"errors"
	"fmt"
	"os"
)

// Acquire is for Linux.
func Acquire(path string) (*Lock, error) {
	return nil, fmt.Errorf("acquire lock %s: running a control plane on this host needs Linux: %w", path, errors.ErrUnsupported)
}

// Holder is for Linux.
func Holder(path string) (pid int, held bool, err error) {
	return 0, false, fmt.Errorf("find the holder of lock %s: running a control plane on this host needs Linux: %w", path, errors.ErrUnsupported)
}

// Signal is for Linux.
func Signal(path string, _ os.Signal) error {
	return fmt.Errorf("signal the holder of lock %s: running a control plane on this host needs Linux: %w", path, errors.ErrUnsupported)
}
