//go:build unix

package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Who reads only the first lines ("| head -1") gets no complaint, and the exit code that shells know of other programs:
// 141, which is death by SIGPIPE.
func TestBrokenPipeIsQuiet(t *testing.T) {
	aFleetToComplete(t)
	for _, args := range [][]string{
		{"--help"}, {"options"}, {"version"}, {"completion", "bash"}, {"get", "deployments"}, {"get", "pods", "-s", "members"}, {"get", "deployments", "-o", "yaml"},
		{"api-versions"}, {"api-resources"}, {"describe", "namespace", "default"}, {"why", "deployment/web"}, {"tree", "deployment/web"},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		var errOut bytes.Buffer
		c := exec.Command(os.Args[0], args...)
		c.Args[0] = "karmadactl" // the test binary is it, by that name
		c.Stdout, c.Stderr = writer, &errOut
		err = c.Run()
		if closeErr := writer.Close(); closeErr != nil {
			t.Fatal(closeErr)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("%q: %v, want it ended by the pipe", args, err)
			continue
		}
		status, ok := exit.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE {
			t.Errorf("%q: %v, want it ended by SIGPIPE", args, err)
		}
		if errOut.Len() > 0 {
			t.Errorf("%q complains of a pipe that its reader has closed:\n%s", args, errOut.String())
		}
	}
}
