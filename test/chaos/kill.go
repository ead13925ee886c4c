package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// InitSteps are the steps of init in order, as the lines on its standard error begin.
func InitSteps() []string {
	return []string{"preflight", "configuration", "certificates", "component files", "start", "kubeconfig", "namespaces", "access rules", "cluster API", "API types", "webhooks", "cluster-info", "clusters"}
}

// A Point is a moment in the life of an init. The zero Point is the moment it has been started.
type Point struct {
	// Line is the beginning of the line that has just appeared on standard error.
	Line string
	// File is the file or directory below the data directory that has just appeared.
	File string
	// After is the time since the process was started.
	After time.Duration
}

func (p Point) String() string {
	switch {
	case p.Line != "":
		return fmt.Sprintf("when it says %q", p.Line)
	case p.File != "":
		return fmt.Sprintf("when %s appears", p.File)
	}
	return fmt.Sprintf("after %s", p.After.Round(time.Millisecond))
}

// A Strike is what hitting an init came to.
type Strike struct {
	// Finished says that init had ended before the signal came.
	Finished bool
	// Ended is how it ended: nil for exit code 0.
	Ended error
	// LastLine is the last line on standard error.
	LastLine string
	// Output is all of standard error.
	Output string
}

func (s Strike) String() string {
	if s.Finished {
		return fmt.Sprintf("it had ended already (%v)", s.Ended)
	}
	if s.LastLine == "" {
		return "it had said nothing"
	}
	return fmt.Sprintf("its last line: %s", s.LastLine)
}

// StrikeInit starts init and sends it sig at a point. It returns when init has ended; an error means that the fault
// could not be made, and tells nothing about init.
func StrikeInit(ctx context.Context, p rig.Plane, at Point, sig syscall.Signal) (Strike, error) {
	cmd := p.Command(ctx, p.InitArgs()...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return Strike{}, fmt.Errorf("strike init: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Strike{}, fmt.Errorf("strike init: %w", err)
	}
	ended := make(chan struct{})
	hit := func() error { return strike(cmd.Process, sig) }

	watched := make(chan error, 1)
	switch {
	case at.Line != "":
		watched <- nil // the reader below strikes
	case at.File != "":
		go func() { watched <- onFile(filepath.Join(p.Dir, at.File), ended, hit) }()
	default:
		go func() { watched <- onTime(at.After, ended, hit) }()
	}

	lines, readErr := readLines(stderr, func(line string) error {
		if at.Line != "" && strings.HasPrefix(line, at.Line) {
			return hit()
		}
		return nil
	})
	close(ended)
	err = cmd.Wait()
	if err := errors.Join(readErr, <-watched); err != nil {
		return Strike{}, fmt.Errorf("strike init: %w", err)
	}
	s := Strike{Ended: err, Output: strings.Join(lines, "\n")}
	if len(lines) > 0 {
		s.LastLine = lines[len(lines)-1]
	}
	s.Finished = !endedBy(err, sig)
	return s, nil
}

func strike(p *os.Process, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s: %w", sig, err)
	}
	return nil
}

// endedBy reports whether a process ended by sig. One that handles the signal ends with a code of its own.
func endedBy(err error, sig syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == sig || sig != syscall.SIGKILL)
}

func readLines(r io.Reader, each func(string) error) ([]string, error) {
	var lines []string
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if err := each(scanner.Text()); err != nil {
			return lines, err
		}
	}
	return lines, scanner.Err()
}

func onTime(after time.Duration, ended <-chan struct{}, hit func() error) error {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return hit()
	}
}

// fileInterval is short: what is looked for is the moment between two files.
const fileInterval = 100 * time.Microsecond

func onFile(path string, ended <-chan struct{}, hit func() error) error {
	ticker := time.NewTicker(fileInterval)
	defer ticker.Stop()
	for {
		_, err := os.Lstat(path)
		if err == nil {
			return hit()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ended:
			return nil
		case <-ticker.C:
		}
	}
}
