package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// A fleet is what the tests share: a control plane; member1, joined as the push cluster "push"; member2, registered as
// the pull cluster "pull"; member3, which is nobody's, for tests that join and unjoin.
type fleet struct {
	rig.Plane
	members rig.Playground
	agent   rig.Agent
}

const (
	pushCluster, pushMember = "push", "member1"
	pullCluster, pullMember = "pull", "member2"
	spareMember             = "member3"
	memberNodes             = 2
)

// shared is set once by TestMain, before any test runs.
var shared *fleet

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	binaries, err := rig.FindBinaries("")
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "karmada-fleet-")
	if err != nil {
		return 1, err
	}
	ctx := context.Background()
	f := &fleet{members: rig.NewPlayground(binaries, filepath.Join(dir, "members")), agent: rig.Agent{Cluster: pullCluster, Dir: filepath.Join(dir, "agent")}}
	if f.Plane, err = rig.NewPlane(binaries, filepath.Join(dir, "plane")); err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintf(os.Stderr, "the end of the control plane's log:\n%s\n", f.LogTail())
		}
		err = errors.Join(err, rig.DestroyDir(ctx, dir))
	}()
	if err := f.start(ctx); err != nil {
		return 1, fmt.Errorf("start the fleet: %w", err)
	}
	shared = f
	return m.Run(), nil
}

func (f *fleet) start(ctx context.Context) error {
	if _, err := f.Init(ctx); err != nil {
		return err
	}
	if err := f.members.Up(ctx, 3, memberNodes); err != nil {
		return err
	}
	if _, err := f.Run(ctx, "", f.JoinArgs(f.members, pushMember, pushCluster, "--wait=2m")...); err != nil {
		return err
	}
	args, err := f.RegisterArgs(ctx, f.members, pullMember, f.agent, "--wait=2m")
	if err != nil {
		return err
	}
	_, err = f.Run(ctx, "", args...)
	return err
}

// must runs a command that has to succeed, and returns what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shared.Run(t.Context(), "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs a command that has to fail with exit code 1 and say all of the texts.
func refused(t *testing.T, reason string, args []string, texts ...string) {
	t.Helper()
	_, err := shared.Run(t.Context(), "", args...)
	if rig.ExitCode(err) != 1 {
		t.Fatalf("exit code %d, want 1: %s\n%v", rig.ExitCode(err), reason, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("want %q in the message: %s\n%v", text, reason, err)
		}
	}
}

// eventually fails the test when check does not come to return nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := rig.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}

func waitReady(t *testing.T, cluster, status string) rig.Cluster {
	t.Helper()
	c, err := shared.WaitCluster(t.Context(), cluster, "is Ready="+status, rig.IsReady(status))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// config is how the administrator of that kubeconfig reaches its API server.
func config(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// proxied is how the control plane's administrator reaches a member through the control plane.
func proxied(t *testing.T, cluster string) *rest.Config {
	t.Helper()
	c := config(t, shared.Kubeconfig())
	c.Host = strings.TrimSuffix(c.Host, "/") + "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/proxy"
	return c
}

func clientFor(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// agents are the processes of the shared agent.
func agents(t *testing.T) []rig.Process {
	t.Helper()
	found, err := rig.FindProcesses(shared.agent.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(p rig.Process) bool { return p.Role() == "register" || p.Role() == "unregister" })
}
