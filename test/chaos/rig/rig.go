// Package rig drives control planes of this host the way a user does: it runs karmadactl as a process and reads what
// it prints. Fault tests and benchmarks stand on it.
//
// It knows the command line and its output, and nothing of the code behind them.
package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Binaries are the programs under test.
type Binaries struct {
	Karmadactl string
	Karmada    string
}

// FindBinaries looks for karmadactl and karmada in dir; when dir is empty, in the directory that KARMADA_BIN names,
// else in _output/bin of the module that the working directory is in.
func FindBinaries(dir string) (Binaries, error) {
	if dir == "" {
		dir = os.Getenv("KARMADA_BIN")
	}
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return Binaries{}, err
		}
		dir = filepath.Join(root, "_output", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("find the binaries: %w", err)
	}
	b := Binaries{Karmadactl: filepath.Join(dir, "karmadactl"), Karmada: filepath.Join(dir, "karmada")}
	for _, path := range []string{b.Karmadactl, b.Karmada} {
		if _, err := os.Stat(path); err != nil {
			return Binaries{}, fmt.Errorf("there is no %s: run make build first, or name the directory of the binaries in KARMADA_BIN", path)
		}
	}
	return b, nil
}

// ModuleRoot is the directory of the go.mod above the working directory.
func ModuleRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s: run this inside the module", wd)
		}
	}
}

// stopWait is how long a command that was interrupted may take to end before it is killed.
const stopWait = 30 * time.Second

// A Karmadactl runs the CLI.
type Karmadactl struct {
	Path string
}

// Command returns a command that has not been started. Nothing of the caller's own configuration reaches it, nor a
// Ctrl-C on the caller's terminal: when ctx is done it is asked to stop, and killed only when it does not.
func (k Karmadactl) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.Path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWait
	return cmd
}

// Run runs a command and returns what it printed.
func (k Karmadactl) Run(ctx context.Context, stdin string, args ...string) (stdout string, err error) {
	var out, errOut bytes.Buffer
	cmd := k.Command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), &CommandError{Args: args, Err: err, Stderr: errOut.String()}
	}
	return out.String(), nil
}

// A CommandError is a command that did not exit with 0.
type CommandError struct {
	Args   []string
	Err    error
	Stderr string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("karmadactl %s: %v\n%s", strings.Join(e.Args, " "), e.Err, strings.TrimSpace(e.Stderr))
}

// Unwrap returns the error of os/exec.
func (e *CommandError) Unwrap() error { return e.Err }

// ExitCode is the exit code that err tells of: 0 for nil, -1 when it tells of none.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// runJSON runs a command and decodes its output, also when it exits with another code than 0.
func runJSON[T any](ctx context.Context, k Karmadactl, args ...string) (T, error) {
	var value T
	out, err := k.Run(ctx, "", args...)
	if out == "" && err != nil {
		return value, err
	}
	if decodeErr := json.Unmarshal([]byte(out), &value); decodeErr != nil {
		return value, errors.Join(err, fmt.Errorf("decode the output of karmadactl %s: %w", strings.Join(args, " "), decodeErr))
	}
	return value, err
}
