package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

const success = "cluster(%s) is joined successfully\n"

func join(name string, more ...string) []string {
	return shared.JoinArgs(shared.members, spareMember, name, more...)
}

func unjoin(name string, more ...string) []string {
	return shared.UnjoinArgs(shared.members, spareMember, name, more...)
}

// onSpare runs a kubectl verb on the spare member.
func onSpare(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shared.members.Kubectl(t.Context(), spareMember, "", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gone fails the test when a Cluster is still there, or anything that was made for it.
func gone(t *testing.T, name string) {
	t.Helper()
	if _, err := shared.Cluster(t.Context(), name); !errors.Is(err, rig.ErrNoCluster) {
		t.Errorf("cluster %s is still there: %v", name, err)
	}
	left, err := shared.Kubectl(t.Context(), "", "get", "namespace/karmada-es-"+name, "-o", "name", "--ignore-not-found")
	if err != nil || left != "" {
		t.Errorf("left in the control plane: %q, %v", left, err)
	}
	eventually(t, "the secrets of the cluster are collected", func() error {
		left, err := shared.Kubectl(t.Context(), "", "get", "secrets/"+name, "secrets/"+name+"-impersonator", "-n", "karmada-cluster", "-o", "name", "--ignore-not-found")
		if err != nil {
			return err
		}
		if left != "" {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})
}

// TestJoinIsRepeatable checks the life of a push cluster: joined, joined again, gone, there again under the same name.
func TestJoinIsRepeatable(t *testing.T) {
	for round := range 2 {
		if out := must(t, join("again")...); out != fmt.Sprintf(success, "again") {
			t.Fatalf("round %d: join printed %q", round, out)
		}
		first := waitReady(t, "again", "True")
		if first.Status.NodeSummary.TotalNum != memberNodes || first.Status.ResourceSummary.Allocatable["cpu"] == "" {
			t.Errorf("join returned, but the capacity is not known: %+v", first.Status)
		}
		if out := must(t, join("again")...); out != fmt.Sprintf(success, "again") {
			t.Errorf("join again printed %q", out)
		}
		second, err := shared.Cluster(t.Context(), "again")
		if err != nil || second.Metadata.UID != first.Metadata.UID {
			t.Errorf("join again has made another Cluster: %v, %v", second.Metadata, err)
		}
		must(t, unjoin("again", "--cascade=delete")...)
		gone(t, "again")
		must(t, unjoin("again", "--cascade=delete")...) // what is gone is gone

		left := onSpare(t, "get", "serviceaccounts,secrets", "-n", "karmada-cluster", "-o", "name", "--ignore-not-found")
		roles := onSpare(t, "get", "clusterroles,clusterrolebindings", "-l", "karmada.io/system=true", "-o", "name")
		if strings.Contains(left, "karmada-again") || strings.Contains(roles, "karmada-again") {
			t.Errorf("left on the member: %s %s", left, roles)
		}
	}
}

// TestJoinRefuses checks what join must not do, and that it leaves nothing behind.
func TestJoinRefuses(t *testing.T) {
	refused(t, "the name belongs to another cluster", join(pushCluster), pushCluster, "has been registered")
	refused(t, "the cluster has a name already",
		shared.JoinArgs(shared.members, pushMember, "second"), pushCluster, "has been registered")
	refused(t, "a control plane is no member of itself",
		[]string{"join", "itself", "--kubeconfig=" + shared.Kubeconfig(), "--cluster-kubeconfig=" + shared.Kubeconfig()}, "control plane")
	refused(t, "without it the default kubeconfig would be joined",
		[]string{"join", "default", "--kubeconfig=" + shared.Kubeconfig()}, "--cluster-kubeconfig")
	refused(t, "a pull cluster has an agent to stop",
		[]string{"unjoin", pullCluster, "--kubeconfig=" + shared.Kubeconfig()}, "unregister")
	for _, name := range []string{"second", "itself", "default"} {
		gone(t, name)
	}
	waitReady(t, pushCluster, "True")
	waitReady(t, pullCluster, "True")
}

// TestJoinDryRun checks that a dry run tells of both sides and writes to none.
func TestJoinDryRun(t *testing.T) {
	out := must(t, join("dry", "--dry-run")...)
	for _, want := range []string{"kind: Cluster", "name: dry", "karmada-controller-manager:karmada-dry", "kind: ServiceAccount", "karmada-impersonator"} {
		if !strings.Contains(out, want) {
			t.Errorf("a dry run does not tell of %q:\n%s", want, out)
		}
	}
	gone(t, "dry")
	if left := onSpare(t, "get", "serviceaccounts", "-A", "-o", "name"); strings.Contains(left, "karmada-dry") {
		t.Errorf("a dry run has written to the member: %s", left)
	}
}

// TestCascade checks what becomes of propagated objects when their cluster leaves.
func TestCascade(t *testing.T) {
	for cascade, want := range map[string]string{"delete": "", "orphan": "kept"} {
		t.Run(cascade, func(t *testing.T) {
			name := "leaving-" + cascade
			must(t, join(name)...)
			applyWork(t, name, name, "kept")
			waitOnMember(t, "the object is there before", spareMember, name, "kept")
			must(t, unjoin(name, "--cascade="+cascade)...)
			gone(t, name)
			waitOnMember(t, "--cascade="+cascade+" says so", spareMember, name, want)
			if cascade == "orphan" {
				labels := onSpare(t, "get", "configmap", name, "-n", "default", "-o", "jsonpath={.metadata.labels}")
				if strings.Contains(labels, "karmada.io/managed") {
					t.Errorf("what stays is not marked as ours any more, but its labels are %s", labels)
				}
				onSpare(t, "delete", "configmap", name, "-n", "default")
			}
		})
	}
}

// TestUnjoinSparesWhatIsTheirs checks that a namespace with things of others stays.
func TestUnjoinSparesWhatIsTheirs(t *testing.T) {
	must(t, join("sparing")...)
	onSpare(t, "create", "configmap", "theirs", "-n", "karmada-cluster", "--from-literal=k=v")
	must(t, unjoin("sparing", "--cascade=delete")...)
	gone(t, "sparing")
	if got := onSpare(t, "get", "configmap", "theirs", "-n", "karmada-cluster", "-o", "jsonpath={.data.k}"); got != "v" {
		t.Errorf("what others put into our namespace is %q, want that it stays", got)
	}
	onSpare(t, "delete", "configmap", "theirs", "-n", "karmada-cluster")
}

// TestCredentialsChange checks that a member whose credentials were replaced is taken up by joining again, without a
// restart of anything.
func TestCredentialsChange(t *testing.T) {
	must(t, join("rotated")...)
	applyWork(t, "rotated", "rotated", "before")
	waitOnMember(t, "the first credentials work", spareMember, "rotated", "before")

	// The service account anew: tokens of the old one are worth nothing.
	onSpare(t, "delete", "serviceaccount", "karmada-rotated", "karmada-impersonator", "-n", "karmada-cluster")
	eventually(t, "the tokens go with their accounts", func() error {
		left := onSpare(t, "get", "secrets", "-n", "karmada-cluster", "-o", "name")
		if strings.Contains(left, "karmada-rotated") {
			return fmt.Errorf("there is still %s", left)
		}
		return nil
	})
	must(t, join("rotated")...)
	applyWork(t, "rotated", "rotated", "after")
	waitOnMember(t, "the new credentials work", spareMember, "rotated", "after")
	onSpare(t, "delete", "configmap", "rotated", "-n", "default")
	waitOnMember(t, "the watch works with the new credentials, too", spareMember, "rotated", "after")
	waitReady(t, "rotated", "True")
	must(t, unjoin("rotated", "--cascade=delete")...)
	gone(t, "rotated")
	waitOnMember(t, "the object goes with its cluster", spareMember, "rotated", "")
}

// TestTaints checks the commands that keep workloads off a cluster.
func TestTaints(t *testing.T) {
	kubeconfig := "--kubeconfig=" + shared.Kubeconfig()
	steps := []struct{ args, want string }{
		{"cordon " + pushCluster, pushCluster + " cluster cordoned\n"},
		{"cordon " + pushCluster, pushCluster + " cluster already cordoned\n"},
		{"uncordon " + pushCluster, pushCluster + " cluster uncordoned\n"},
		{"uncordon " + pushCluster, pushCluster + " cluster already uncordoned\n"},
		{"taint clusters " + pushCluster + " k=v:NoSchedule", "cluster/" + pushCluster + " tainted\n"},
		{"taint clusters " + pushCluster + " k=w:NoSchedule --overwrite", "cluster/" + pushCluster + " modified\n"},
		{"taint clusters " + pushCluster + " k:NoSchedule-", "cluster/" + pushCluster + " untainted\n"},
	}
	for _, s := range steps {
		if got := must(t, append(strings.Fields(s.args), kubeconfig)...); got != s.want {
			t.Errorf("%s: printed %q, want %q", s.args, got, s.want)
		}
	}
	c, err := shared.Cluster(t.Context(), pushCluster)
	if err != nil || len(c.Spec.Taints) != 0 {
		t.Errorf("taints that are left: %v, %v", c.Spec.Taints, err)
	}
}
