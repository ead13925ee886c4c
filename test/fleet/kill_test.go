package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// kills is how often each command is killed. KARMADA_KILLS makes it more thorough.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KARMADA_KILLS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KARMADA_KILLS=%s: want a number of at least 1", text)
	}
	return n
}

// seed makes the same points come again.
const seed = 3

// killed runs a command and kills it at a point that chance chooses within a time.
func killed(t *testing.T, random *rand.Rand, within time.Duration, args ...string) string {
	t.Helper()
	cmd := shared.Command(t.Context(), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after := time.Duration(random.Int64N(int64(within)))
	timer := time.AfterFunc(after, func() {
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return fmt.Sprintf("killed after %s", after.Round(time.Millisecond))
	}
	if err != nil {
		t.Fatalf("it had ended by itself after %s: %v", after, err)
	}
	return fmt.Sprintf("had ended before %s", after.Round(time.Millisecond))
}

// took runs a command that has to succeed and tells how long it took.
func took(t *testing.T, args ...string) time.Duration {
	t.Helper()
	begin := time.Now()
	must(t, args...)
	return time.Since(begin)
}

// TestPushKilled kills join and unjoin, and runs them again.
func TestPushKilled(t *testing.T) {
	const name = "struck"
	random := rand.New(rand.NewPCG(seed, 1))
	joinTakes := took(t, join(name)...)
	unjoinTakes := took(t, unjoin(name, "--cascade=delete")...)
	for n := range kills(t) {
		t.Logf("join %d %s", n, killed(t, random, joinTakes, join(name)...))
		must(t, join(name)...)
		waitReady(t, name, "True")
		applyWork(t, name, name, "there")
		waitOnMember(t, "a cluster whose join was killed works", spareMember, name, "there")

		t.Logf("unjoin %d %s", n, killed(t, random, unjoinTakes, unjoin(name, "--cascade=delete")...))
		must(t, unjoin(name, "--cascade=delete")...)
		gone(t, name)
		waitOnMember(t, "an unjoin that was killed is completed", spareMember, name, "")
	}
}

// TestPullKilled kills register and unregister, and runs them again.
func TestPullKilled(t *testing.T) {
	const name = "struck-pull"
	random := rand.New(rand.NewPCG(seed, 2))
	a := rig.Agent{Cluster: name, Dir: filepath.Join(t.TempDir(), "agent")}
	t.Cleanup(func() {
		if err := rig.DestroyDir(context.WithoutCancel(t.Context()), a.Dir); err != nil {
			t.Error(err)
		}
	})
	unregister := shared.UnregisterArgs(shared.members, spareMember, a, "--cascade=delete")
	registerTakes := took(t, registerArgs(t, a)...)
	unregisterTakes := took(t, unregister...)
	for n := range kills(t) {
		register := registerArgs(t, a)
		t.Logf("register %d %s", n, killed(t, random, registerTakes, register...))
		must(t, register...)
		waitReady(t, name, "True")
		applyWork(t, name, name, "there")
		waitOnMember(t, "a cluster whose register was killed works", spareMember, name, "there")

		t.Logf("unregister %d %s", n, killed(t, random, unregisterTakes, unregister...))
		must(t, unregister...)
		gone(t, name)
		waitOnMember(t, "an unregister that was killed is completed", spareMember, name, "")
	}
}
