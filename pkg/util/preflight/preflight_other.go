//go:build !linux

package preflight

import (
	"errors"
	"fmt"
)

func errNeedsLinux() error {
	return fmt.Errorf("running a control plane on this host needs Linux: %w", errors.ErrUnsupported)
}

func tryWrite(dir string) error { return tryWriteDir(dir) }

func freeBytes(string) (uint64, error) { return 0, errNeedsLinux() }

func getOpenFiles() (soft, hard uint64, err error) { return 0, 0, errNeedsLinux() }

func setOpenFiles(uint64, uint64) error { return errNeedsLinux() }

func listener(string, int) (string, bool) { return "", false }
