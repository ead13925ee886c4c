package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

func spareAgent(t *testing.T, cluster string) rig.Agent {
	t.Helper()
	a := rig.Agent{Cluster: cluster, Dir: filepath.Join(t.TempDir(), "agent")}
	t.Cleanup(func() {
		if err := rig.DestroyDir(context.WithoutCancel(t.Context()), a.Dir); err != nil {
			t.Error(err)
		}
	})
	return a
}

func registerArgs(t *testing.T, a rig.Agent, more ...string) []string {
	t.Helper()
	args, err := shared.RegisterArgs(t.Context(), shared.members, spareMember, a, more...)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// TestRegisterIsRepeatable checks the life of a pull cluster: registered, registered again, gone, there again.
func TestRegisterIsRepeatable(t *testing.T) {
	a := spareAgent(t, "puller")
	for round := range 2 {
		if out := must(t, registerArgs(t, a)...); !strings.HasSuffix(out, fmt.Sprintf(success, a.Cluster)) {
			t.Fatalf("round %d: register printed %q", round, out)
		}
		first := waitReady(t, a.Cluster, "True")
		if first.Spec.SyncMode != "Pull" {
			t.Errorf("its mode is %s", first.Spec.SyncMode)
		}
		must(t, registerArgs(t, a)...)
		second, err := shared.Cluster(t.Context(), a.Cluster)
		if err != nil || second.Metadata.UID != first.Metadata.UID {
			t.Errorf("register again has made another Cluster: %v, %v", second.Metadata, err)
		}
		applyWork(t, a.Cluster, a.Cluster, "there")
		waitOnMember(t, "the agent applies Works", spareMember, a.Cluster, "there")

		must(t, shared.UnregisterArgs(shared.members, spareMember, a, "--cascade=delete")...)
		gone(t, a.Cluster)
		waitOnMember(t, "the object goes with its cluster", spareMember, a.Cluster, "")
		if left, err := rig.FindProcesses(a.Dir); err != nil || len(left) > 0 {
			t.Errorf("processes that are left: %v, %v", left, err)
		}
		rights, err := shared.Kubectl(t.Context(), "", "get", "clusterroles,clusterrolebindings,roles,rolebindings", "-A", "-o", "name")
		if err != nil || strings.Contains(rights, "karmada:"+a.Cluster+":") {
			t.Errorf("rights that are left: %s, %v", rights, err)
		}
		must(t, shared.UnregisterArgs(shared.members, spareMember, a, "--cascade=delete")...) // what is gone is gone
	}
}

// TestTokensOfOneCluster checks that a token for a named cluster is good for that cluster and no other, and not for ever.
func TestTokensOfOneCluster(t *testing.T) {
	a := spareAgent(t, "named")
	args := registerArgs(t, a)
	for _, bad := range []struct {
		reason string
		change func([]string) []string
		want   []string
	}{
		{"the token is for another cluster", replace("--cluster-name", "other"), []string{"named"}},
		{"the control plane is not the one that was meant", replace("--discovery-token-ca-cert-hash", "sha256:"+strings.Repeat("0", 64)), []string{"sha256:"}},
		{"there is no such token", replace("--token", "abcdef.0123456789abcdef"), []string{"token"}},
		{"it is no token", replace("--token", "abc"), []string{"token"}},
	} {
		refused(t, bad.reason, append(bad.change(slices.Clone(args)), "--discovery-timeout=20s"), bad.want...)
	}
	for _, name := range []string{"named", "other"} {
		gone(t, name)
	}
	if left, err := rig.FindProcesses(a.Dir); err != nil || len(left) > 0 {
		t.Errorf("processes that are left: %v, %v", left, err)
	}

	must(t, args...)
	waitReady(t, "named", "True")
	id, _, _ := strings.Cut(args[slices.Index(args, "--token")+1], ".")
	eventually(t, "the token is used up once its cluster is ready", func() error {
		left, err := shared.Kubectl(t.Context(), "", "get", "secret", "bootstrap-token-"+id, "-n", "kube-system", "-o", "name", "--ignore-not-found")
		if err != nil {
			return err
		}
		if left != "" {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})
	must(t, shared.UnregisterArgs(shared.members, spareMember, a, "--cascade=delete")...)
	gone(t, "named")
}

// replace changes the value of a flag that stands in an argument of its own.
func replace(flag, value string) func([]string) []string {
	return func(args []string) []string {
		args[slices.Index(args, flag)+1] = value
		return args
	}
}
