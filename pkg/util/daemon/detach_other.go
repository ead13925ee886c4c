//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"os/exec"
)

func detach(*exec.Cmd) error {
	return fmt.Errorf("running a control plane on this host needs Linux: %w", errors.ErrUnsupported)
}
