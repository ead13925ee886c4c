package fleet

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// TestAgentRestarts checks that a pull cluster survives its agent's sudden end.
func TestAgentRestarts(t *testing.T) {
	before := agents(t)
	if len(before) == 0 {
		t.Fatal("no agent runs")
	}
	for _, p := range before {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	// The command that has registered the cluster starts its agent again.
	args, err := shared.RegisterArgs(t.Context(), shared.members, pullMember, shared.agent)
	if err != nil {
		t.Fatal(err)
	}
	must(t, args...)
	applyWork(t, pullCluster, "after-restart", "there")
	waitOnMember(t, "the agent works again", pullMember, "after-restart", "there")
	if _, err := shared.Kubectl(t.Context(), "", "delete", "work", "after-restart", "-n", "karmada-es-"+pullCluster, "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	waitReady(t, pullCluster, "True")
}

// TestMembersDown checks what the control plane says of members that do not answer, and of an agent that is silent, and
// that all is well when they are back.
func TestMembersDown(t *testing.T) {
	if err := shared.members.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	running := agents(t)
	for _, p := range running {
		// A process that has stopped without having ended is as silent as a network that is gone.
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	resume := func() {
		for _, p := range running {
			if err := p.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
	}
	defer resume()

	down := func(cluster, status, taint string) {
		t.Helper()
		if _, err := shared.WaitCluster(t.Context(), cluster, "is known to be down", func(c rig.Cluster) error {
			if err := rig.IsReady(status)(c); err != nil {
				return err
			}
			if !c.Tainted(taint, "NoSchedule") {
				return fmt.Errorf("it is not tainted %s: %v", taint, c.Spec.Taints)
			}
			if c.Status.NodeSummary.TotalNum != memberNodes {
				return errors.New("what was known of its capacity is gone")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	down(pushCluster, "False", "cluster.karmada.io/not-ready")
	down(pullCluster, "Unknown", "cluster.karmada.io/unreachable")

	if err := shared.members.Up(t.Context(), 3, memberNodes); err != nil {
		t.Fatal(err)
	}
	resume()
	for _, cluster := range []string{pushCluster, pullCluster} {
		if _, err := shared.WaitCluster(t.Context(), cluster, "is well again", func(c rig.Cluster) error {
			if err := rig.IsReady("True")(c); err != nil {
				return err
			}
			if len(c.Spec.Taints) > 0 {
				return fmt.Errorf("it is still tainted: %v", c.Spec.Taints)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	applyWork(t, pushCluster, "back", "push")
	waitOnMember(t, "the push cluster takes Works again", pushMember, "back", "push")
	applyWork(t, pullCluster, "back", "pull")
	waitOnMember(t, "the pull cluster takes Works again", pullMember, "back", "pull")
}

// TestUnjoinOfTheDead checks that a member that does not answer does not keep its cluster from leaving.
func TestUnjoinOfTheDead(t *testing.T) {
	g := rig.Playground{Karmadactl: shared.members.Karmadactl, Dir: t.TempDir()}
	t.Cleanup(func() {
		if err := g.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := g.Up(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	must(t, shared.JoinArgs(g, "member1", "dead", "--wait=2m")...)
	applyWork(t, "dead", "orphan", "x")
	if err := rig.KillAll(t.Context(), g.Dir); err != nil {
		t.Fatal(err)
	}
	must(t, "unjoin", "dead", "--kubeconfig="+shared.Kubeconfig(), "--cascade=delete", "--wait=2m")
	gone(t, "dead")
}
