package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd"
	"github.com/karmadactl/karmadactl/pkg/cmd/examples"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

const program = "karmadactl"

// all returns the examples of every command, then those of the README.
func all(t *testing.T) []examples.Example {
	t.Helper()
	root, _, err := cmd.New(program, genericiooptions.IOStreams{In: nil, Out: io.Discard, ErrOut: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := rig.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(examples.InHelp(root), examples.InMarkdown("README.md", string(text), program)...)
}

func TestExamplesRun(t *testing.T) {
	w := newWorld(t)
	for _, e := range all(t) {
		if reason := elsewhere(e); reason != "" {
			continue
		}
		t.Run(e.Of+"/"+strings.Join(e.Lines, "; "), func(t *testing.T) {
			if script := before(e); script != "" {
				// What the last example has left behind may still be on its way.
				fleetrig.Eventually(t, "all is there that the example takes for granted", func() error {
					_, err := w.run(t.Context(), script, "")
					return err
				})
			}
			for _, line := range e.Lines {
				w.check(t, line)
			}
			if script := after(e); script != "" {
				if _, err := w.run(t.Context(), script, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A list of exceptions that speaks of examples that are gone hides those that came.
func TestExceptionsAreOfExamplesThatAreThere(t *testing.T) {
	lines := make(map[string]bool)
	calls := ""
	for _, e := range all(t) {
		for _, line := range e.Lines {
			lines[line] = true
			for _, args := range examples.Calls(line, program) {
				calls += strings.Join(args, " ") + "\n"
			}
		}
	}
	for line := range refusals() {
		if !lines[line] {
			t.Errorf("%q is expected to be refused, but nothing shows it", line)
		}
	}
	for _, x := range exceptions() {
		if !regexp.MustCompile(`(?m)` + x.calls).MatchString(calls) {
			t.Errorf("%q is left out, but nothing shows it", x.calls)
		}
	}
}

// check runs a line of an example, and wants it to end as it should.
func (w *world) check(t *testing.T, line string) {
	t.Helper()
	text := w.translate(line)
	if follows(line) {
		w.follow(t, text)
		return
	}
	_, err := w.run(t.Context(), text, inputFor(line))
	refusal, refused := refusals()[line]
	switch {
	case refused && (err == nil || !refusal.MatchString(err.Error())):
		t.Errorf("%s\ngot %v, want it refused with %q", text, err, refusal)
	case !refused && err != nil:
		t.Error(err)
	}
}

// inputFor is what is typed while an example runs: to a shell what ends it, and to the others that it is meant.
func inputFor(line string) string {
	if strings.Contains(line, " -it ") {
		return "exit\n"
	}
	return "y\n"
}

// command returns a shell that has not been started, in the folder of the world.
func (w *world) command(ctx context.Context, script string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	c.Dir = w.dir
	c.Env = append(os.Environ(),
		"PATH="+filepath.Join(w.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"HOME="+filepath.Join(w.dir, "home"), "KUBECONFIG="+w.kubeconfig, "KUBE_EDITOR=true", "EDITOR=true",
	)
	// One that is asked to stop is asked with all that it has started.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// run runs a script with that input, and returns what it prints. Its error has the words of stderr.
func (w *world) run(ctx context.Context, script, stdin string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var out, errOut bytes.Buffer
	c := w.command(ctx, script)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errOut
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%s\n%w\n%s%s", script, errors.Join(err, ctx.Err()), errOut.String(), out.String())
	}
	return out.String(), nil
}

// follow runs a line that goes on until it is told to stop: it has to say something, and to stop then.
func (w *world) follow(t *testing.T, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	var out, errOut buffer
	c := w.command(ctx, line)
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	fleetrig.Eventually(t, line+" says something", func() error {
		select {
		case err := <-ended:
			t.Fatalf("%s\nends by itself: %v\n%s%s", line, err, errOut.String(), out.String())
		default:
		}
		if out.String() == "" {
			return fmt.Errorf("it says nothing but %q", errOut.String())
		}
		return nil
	})
	if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if ctx.Err() != nil {
		t.Fatalf("%s\ndoes not stop when it is interrupted", line)
	}
	// Killed by the signal, or by itself: kubectl's commands do the one, ours the other, and kubectl's logs a third.
	ends := []int{128 + int(syscall.SIGINT), -1}
	if strings.Contains(line, " logs ") {
		ends = append(ends, 1)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !slices.Contains(ends, exit.ExitCode()) {
		t.Errorf("%s\nends with %v when it is interrupted, want one of the exit codes %v\n%s", line, err, ends, errOut.String())
	}
}

// A buffer may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
