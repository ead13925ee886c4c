package pidlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// holdEnv makes the test binary a process that holds the lock it names until it
// is told to stop.
const holdEnv = "PIDLOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		os.Exit(hold(path))
	}
	os.Exit(m.Run())
}

func hold(path string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	l, err := Acquire(path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	<-term
	if err := l.Release(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 3
}

// startHolder returns a process that holds path.
func startHolder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "held\n" {
		t.Fatalf("the holder says %q (%v)", line, err)
	}
	return cmd
}

func wantHolder(t *testing.T, reason, path string, want int) {
	t.Helper()
	pid, held, err := Holder(path)
	if err != nil || held != (want != 0) || pid != want {
		t.Errorf("%s\nHolder: got %d, %v, %v, want %d", reason, pid, held, err, want)
	}
}

func TestOtherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	wantHolder(t, "A file that is not there is not held.", path, 0)

	holder := startHolder(t, path)
	wantHolder(t, "The kernel names the holder.", path, holder.Process.Pid)
	wantHolder(t, "Asking must not cost the holder its lock.", path, holder.Process.Pid)

	var held *HeldError
	if _, err := Acquire(path); !errors.As(err, &held) || held.PID != holder.Process.Pid {
		t.Errorf("want a HeldError that names %d, got %v", holder.Process.Pid, err)
	}
	if text := readFile(t, path); text != strconv.Itoa(holder.Process.Pid)+"\n" {
		t.Errorf("for people the file has the number of the holder: got %q", text)
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if text := readFile(t, path); text == "" {
		t.Fatal("the test needs the text of the dead process")
	}
	wantHolder(t, "A killed process holds nothing, whatever the text says.", path, 0)
	if err := Signal(path, syscall.SIGTERM); !errors.Is(err, ErrNotHeld) || !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("nobody may be signalled because of the text: %v", err)
	}
	l, err := Acquire(path)
	if err != nil {
		t.Fatalf("the lock of a dead process is free: %v", err)
	}
	if text := readOwn(t, l); text != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("text of the new holder: %q", text)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestReusedNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	bystander := startHolder(t, filepath.Join(t.TempDir(), "other"))
	if err := os.WriteFile(path, []byte(strconv.Itoa(bystander.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantHolder(t, "A living process whose number is in the file is not its holder.", path, 0)
	if err := Signal(path, syscall.SIGKILL); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the bystander must not be signalled: %v", err)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander is gone: %v", err)
	}
}

func TestSignalAndWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := startHolder(t, path)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WaitReleased(ctx, path); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), strconv.Itoa(holder.Process.Pid)) {
		t.Errorf("a wait that ends must say for whom it waited: %v", err)
	}
	if err := Signal(path, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := WaitReleased(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	err := holder.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the holder should have stopped in order: %v", err)
	}
	if text := readFile(t, path); text != "" {
		t.Errorf("a released lock names nobody: %q", text)
	}
}

func TestOwnProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	wantHolder(t, "The kernel does not report one's own lock, Holder must.", path, os.Getpid())
	var held *HeldError
	if _, err := Acquire(path); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("a second lock in one process would be no lock: %v", err)
	}
	if got := secondProcess(t, path); !strings.Contains(got, strconv.Itoa(os.Getpid())) {
		t.Errorf("asking must not have cost this process its lock; another one says: %s", got)
	}
	if got := secondProcess(t, path); !strings.Contains(got, strconv.Itoa(os.Getpid())) {
		t.Errorf("starting a process must not have cost this one its lock; another one says: %s", got)
	}
	if err := Signal(path, syscall.Signal(0)); err != nil {
		t.Errorf("this process is there to be signalled: %v", err)
	}

	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Errorf("a second release does nothing: %v", err)
	}
	wantHolder(t, "Released is free.", path, 0)
	if l, err = Acquire(path); err != nil {
		t.Fatalf("released can be taken again: %v", err)
	}
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if err := l.Remove(); err == nil {
		t.Error("whoever does not hold the lock must not remove the file")
	}
}

func TestRemovedUnderTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	startHolder(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := Acquire(path)
	if err != nil {
		t.Fatalf("the name is free: %v", err)
	}
	wantHolder(t, "The lock is on the file that has the name.", path, os.Getpid())
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestBadPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, path string }{
		"NoDirectory": {"The directory is the caller's to make.", filepath.Join(dir, "none", "lock")},
		"Directory":   {"A directory cannot be a lock.", dir},
		"FileInPath":  {"Nor can something below a file.", filepath.Join(file, "lock")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var held *HeldError
			if l, err := Acquire(tc.path); err == nil || l != nil || errors.As(err, &held) {
				t.Errorf("%s\ngot %v, %v", tc.reason, l, err)
			}
		})
	}
	if _, _, err := Holder(filepath.Join(file, "lock")); err == nil {
		t.Error("failing to find out is not the same as free")
	}
}

// secondProcess is what another process says when it tries to take path.
func secondProcess(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.Output()
	if err == nil {
		t.Fatalf("it should have failed: %s", out)
	}
	return string(out)
}

// readFile must not be used on a lock that this process holds.
func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readOwn(t *testing.T, l *Lock) string {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(l.file, 0, 100))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
