package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// env is what the tests of this package share: the binaries, one control plane and one member cluster, each started
// when the first test asks for it and removed when all are done.
type env struct {
	bin string
	dir string

	controlPlane func() (string, error) // its data directory
	member       func() (string, error) // the playground's directory
}

// shared is set once by TestMain, before any test runs.
var shared *env

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	e := &env{bin: os.Getenv("KARMADA_BIN")}
	if e.bin == "" {
		e.bin = filepath.Join("..", "..", "_output", "bin")
	}
	if e.bin, err = filepath.Abs(e.bin); err != nil {
		return 1, err
	}
	for _, name := range []string{"karmadactl", "karmada"} {
		if _, err := os.Stat(filepath.Join(e.bin, name)); err != nil {
			return 1, fmt.Errorf("%w: run `make build` first", err)
		}
	}
	if e.dir, err = os.MkdirTemp("", "karmada-e2e-"); err != nil {
		return 1, err
	}
	started := map[string]bool{}
	once := func(name string, args ...string) func() (string, error) {
		return sync.OnceValues(func() (string, error) {
			dir := filepath.Join(e.dir, name)
			started[name] = true
			r := e.run(context.Background(), nil, append(args, dir)...)
			if r.code != 0 {
				return "", fmt.Errorf("start the shared %s: %s", name, r)
			}
			return dir, nil
		})
	}
	e.controlPlane = once("plane", "init", "--port="+strconv.Itoa(freePort()), "--data-dir")
	e.member = once("playground", "playground", "up", "--members=1", "--nodes=4", "--dir")
	shared = e

	defer func() {
		if started["plane"] {
			r := e.run(context.Background(), nil, "deinit", "--purge", "--yes", "--data-dir", filepath.Join(e.dir, "plane"))
			err = errors.Join(err, r.failure())
		}
		if started["playground"] {
			r := e.run(context.Background(), nil, "playground", "down", "--purge", "--dir", filepath.Join(e.dir, "playground"))
			err = errors.Join(err, r.failure())
		}
		err = errors.Join(err, os.RemoveAll(e.dir))
	}()
	return m.Run(), nil
}

// A result is what a command came to.
type result struct {
	args           []string
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("karmadactl %s: exit code %d\nstdout:\n%s\nstderr:\n%s", strings.Join(r.args, " "), r.code, r.stdout, r.stderr)
}

func (r result) failure() error {
	if r.code == 0 {
		return nil
	}
	return errors.New(r.String())
}

// run runs karmadactl with a clean environment.
func (e *env) run(ctx context.Context, extraEnv []string, args ...string) result {
	cmd := exec.CommandContext(ctx, filepath.Join(e.bin, "karmadactl"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append([]string{"HOME=" + e.dir, "PATH=" + os.Getenv("PATH")}, extraEnv...)
	err := cmd.Run()
	r := result{args: args, stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		r.code, r.stderr = -1, err.Error()
	}
	return r
}

// karmadactl runs a command that has to succeed, and returns what it printed.
func karmadactl(t *testing.T, args ...string) string {
	t.Helper()
	r := shared.run(t.Context(), nil, args...)
	if r.code != 0 {
		t.Fatal(r)
	}
	return r.stdout
}

// refused runs a command that has to fail with that exit code and say all of the texts.
func refused(t *testing.T, code int, texts []string, args ...string) result {
	t.Helper()
	r := shared.run(t.Context(), nil, args...)
	if r.code != code {
		t.Fatalf("want exit code %d: %s", code, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("want %q on stderr: %s", text, r)
		}
	}
	return r
}

// with runs karmadactl against one API server.
func with(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	return karmadactl(t, append(args, "--kubeconfig", kubeconfig)...)
}

// eventually asks until the answer is yes; on failure it tells the last answer.
func eventually(t *testing.T, what string, ask func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, said := ask()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within two minutes; last: %s", what, said)
		case <-tick.C:
		}
	}
}

// status is what `status -o json` says, as far as tests look at it.
type status struct {
	Healthy    bool   `json:"healthy"`
	PID        int    `json:"pid"`
	Server     string `json:"server"`
	Supervisor struct {
		PID      int `json:"pid"`
		Restarts int `json:"restarts"`
	} `json:"supervisor"`
	Components []struct {
		Name    string `json:"name"`
		Healthy bool   `json:"healthy"`
	} `json:"components"`
	Certificates struct {
		DaysLeft int `json:"daysLeft"`
	} `json:"certificates"`
	DataBytes int64 `json:"dataBytes"`
}

func statusOf(t *testing.T, dir string) (status, result) {
	t.Helper()
	r := shared.run(t.Context(), nil, "status", "-o", "json", "--data-dir", dir)
	var s status
	if r.code < 2 {
		if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
			t.Fatalf("status: %v: %s", err, r)
		}
	}
	return s, r
}

// freePort returns a port of loopback with some free ones after it, below the range that the kernel hands out itself.
func freePort() int {
	for port := 23000 + os.Getpid()%400*10; ; port += 20 {
		free := true
		for p := port; p < port+8; p++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
}

// write makes a file of the test.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// processesOf lists the processes whose command line names dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if strings.Contains(line, dir) && !strings.HasPrefix(line, os.Args[0]) {
			found = append(found, line)
		}
	}
	return found
}
