package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// modeEnv makes the test binary a process that behaves in the way it names.
const modeEnv = "DAEMON_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		os.Exit(behave(mode))
	}
	os.Exit(m.Run())
}

func behave(mode string) int {
	switch mode {
	case "fail":
		for i := range 30 {
			fmt.Println("line", i)
		}
		fmt.Fprintln(os.Stderr, "token=hunter2 cannot listen")
		return 7
	case "stay":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("up", len(os.Environ()))
		<-term
		return 0
	default:
		return 99
	}
}

func startChild(t *testing.T, mode string) (*Child, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Start(Command{Args: []string{os.Args[0]}, Env: []string{modeEnv + "=" + mode}, LogFile: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Signal(syscall.SIGKILL)
		<-c.Done()
	})
	return c, log
}

// logged waits until the child has written text.
func logged(log, text string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		data, err := os.ReadFile(log)
		return strings.Contains(string(data), text), err
	}
}

func TestDetached(t *testing.T) {
	c, log := startChild(t, "stay")
	if err := c.WaitFor(t.Context(), logged(log, "up 1\n")); err != nil {
		t.Fatalf("the child should come up with the one variable it was handed: %v", err)
	}
	if sid, err := unix.Getsid(c.PID()); err != nil || sid != c.PID() {
		t.Errorf("a terminal's signals must not reach it: session %d, process %d, %v", sid, c.PID(), err)
	}
	proc := fmt.Sprintf("/proc/%d/", c.PID())
	got := map[string]string{}
	for _, link := range []string{"cwd", "fd/0", "fd/1", "fd/2"} {
		target, err := os.Readlink(proc + link)
		if err != nil {
			t.Fatal(err)
		}
		got[link] = target
	}
	want := map[string]string{"cwd": "/", "fd/0": "/dev/null", "fd/1": log, "fd/2": log}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directory and descriptors (-want +got):\n%s", diff)
	}
	if c.Err() != nil {
		t.Errorf("it runs: %v", c.Err())
	}

	if err := c.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if _, err := os.Stat(proc); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it must not stay as a zombie: %v", err)
	}
	if err := c.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("nobody else may get the signal: %v", err)
	}
	data, err := os.ReadFile(log)
	if err != nil || !strings.HasPrefix(string(data), "an earlier run\n") {
		t.Errorf("the log must go on, not start over: %q, %v", data, err)
	}
}

func TestWaitForFails(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason string
		mode   string
		ctx    func(context.Context) context.Context
		ready  func(ctx context.Context) (bool, error)
		want   func(error) bool
	}{
		"ChildDies": {
			reason: "Nobody waits for the dead.",
			mode:   "fail",
			ready:  func(context.Context) (bool, error) { return false, nil },
			want:   isExit("exit status 7"),
		},
		"ChildDiesWhileAsked": {
			reason: "A question that hangs ends with the child.",
			mode:   "fail",
			ready:  func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() },
			want:   isExit("exit status 7"),
		},
		"AnotherAnswers": {
			reason: "A yes of somebody else, who has the port, is no yes of the child.",
			mode:   "fail",
			ready:  func(ctx context.Context) (bool, error) { <-ctx.Done(); return true, nil },
			want:   isExit("exit status 7"),
		},
		"Hopeless": {
			reason: "An error is final.",
			mode:   "stay",
			ready:  func(context.Context) (bool, error) { return false, errBoom },
			want:   func(err error) bool { return errors.Is(err, errBoom) },
		},
		"Cancelled": {
			reason: "The user's Ctrl-C ends the wait.",
			mode:   "stay",
			ctx: func(ctx context.Context) context.Context {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx
			},
			ready: func(context.Context) (bool, error) { return false, nil },
			want:  func(err error) bool { return errors.Is(err, context.Canceled) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := startChild(t, tc.mode)
			ctx := t.Context()
			if tc.ctx != nil {
				ctx = tc.ctx(ctx)
			}
			if err := c.WaitFor(ctx, tc.ready); !tc.want(err) {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

func isExit(status string) func(error) bool {
	return func(err error) bool {
		var exit *ExitError
		return errors.As(err, &exit) && exit.Status == status
	}
}

func TestExitError(t *testing.T) {
	c, log := startChild(t, "fail")
	<-c.Done()
	var exit *ExitError
	if !errors.As(c.Err(), &exit) {
		t.Fatalf("got %v", c.Err())
	}
	var want []string
	for i := 11; i < 30; i++ {
		want = append(want, fmt.Sprint("line ", i))
	}
	want = append(want, "token="+masked+" cannot listen")
	if diff := cmp.Diff(&ExitError{PID: c.PID(), Status: "exit status 7", LogFile: log, LastLines: want}, exit); diff != "" {
		t.Errorf("the last words, without secrets (-want +got):\n%s", diff)
	}

	killed, _ := startChild(t, "stay")
	if err := killed.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-killed.Done()
	if err := killed.Err(); !isExit("signal: killed")(err) || strings.Contains(err.Error(), "earlier") {
		t.Errorf("words of an earlier run are not its own: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command Command
		want    string
	}{
		"NoArgs":     {reason: "There is nothing to start.", want: "no program"},
		"NoProgram":  {reason: "A program that is not there is named.", command: Command{Args: []string{"/none/karmada"}}, want: "karmada"},
		"NoLogPlace": {reason: "A log that cannot be made is an error before the start.", command: Command{Args: []string{os.Args[0]}, LogFile: "/none/log"}, want: "/none/log"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if c, err := Start(tc.command); c != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot %v, %v", tc.reason, c, err)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c, err := Start(Command{Args: []string{os.Args[0]}, Env: []string{modeEnv + "=fail"}, Output: write})
	if err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Errorf("the output stays the caller's: %v", err)
	}
	buf := make([]byte, 7)
	if _, err := read.Read(buf); err != nil || string(buf) != "line 0\n" {
		t.Errorf("got %q, %v", buf, err)
	}
	<-c.Done()
	if err := c.Err(); !isExit("exit status 7")(err) {
		t.Errorf("got %v", err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("é", 10+maxTailBytes/2)
	if err := os.WriteFile(path, []byte("short\n"+long+"\nend\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"end"}, tail{path: path}.lines()); diff != "" {
		t.Errorf("a line of which only the end was read is left out (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new"}, tail{path: path, from: 1000}.lines()); diff != "" {
		t.Errorf("a rotated log is read from its start (-want +got):\n%s", diff)
	}
	if got := (tail{path: filepath.Join(t.TempDir(), "none")}).lines(); got != nil {
		t.Errorf("no log, no lines: %v", got)
	}
	if got := last([]string{strings.Repeat("x", 2*maxLineBytes)}); len(got) != 1 || len(got[0]) != maxLineBytes+len("…") {
		t.Errorf("a line has a bearable length: %v", got)
	}
}

func TestRedact(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Plain":     {"What is no secret stays.", `E1130 failed to get secret "x": not found`, `E1130 failed to get secret "x": not found`},
		"Words":     {"Words after a colon stay readable.", "invalid bearer token: expired", "invalid bearer token: expired"},
		"Bearer":    {"As in a header.", "Authorization: Bearer abcdefgh12", "Authorization: Bearer […]"},
		"JWT":       {"A service account token, wherever it is.", "got eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln ok", "got […] ok"},
		"Bootstrap": {"A bootstrap token admits a cluster.", "register --token abcdef.0123456789abcdef now", "register --token […] now"},
		"Flag":      {"A flag's value.", "--client-secret=x --v=2", "--client-secret=[…] --v=2"},
		"JSON":      {"A field's value.", `{"password":"a b","user":"x"}`, `{"password":"[…]","user":"x"}`},
		"YAML":      {"As in a kubeconfig.", "client-key-data: LS0tLS1CRUdJTiBFQw==", "client-key-data: […]=="},
		"Escaped":   {"A log line in quotes.", `msg="x" err="token=\"hunter2\""`, `msg="x" err="token=\"[…]\""`},
		"Version":   {"Numbers with dots are no tokens.", "v1.37.2 at 127.0.0.1:32443", "v1.37.2 at 127.0.0.1:32443"},
		"PEM":       {"A key over several lines.", "a\n-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nb", "a\n[…]\nb"},
		"PEMInLine": {"A key in one line.", `key: -----BEGIN PRIVATE KEY-----\nMHc\n-----END PRIVATE KEY-----` + "\nb", "[…]\nb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(redact(strings.Split(tc.in, "\n")), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
