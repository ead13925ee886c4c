package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// work is a Work with one ConfigMap.
func work(cluster, name, value string) string {
	return fmt.Sprintf(`
apiVersion: work.karmada.io/v1alpha1
kind: Work
metadata: {name: %[2]s, namespace: karmada-es-%[1]s, finalizers: [karmada.io/execution-controller]}
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: %[2]s
        namespace: default
        labels: {karmada.io/managed: "true"}
        annotations: {work.karmada.io/namespace: karmada-es-%[1]s, work.karmada.io/name: %[2]s}
      data: {value: %[3]q}
`, cluster, name, value)
}

func applyWork(t *testing.T, cluster, name, value string) {
	t.Helper()
	if _, err := shared.Kubectl(t.Context(), work(cluster, name, value), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// onMember reads the value of the ConfigMap of a Work on a member; "" when it is not there.
func onMember(t *testing.T, member, name string) (string, error) {
	t.Helper()
	return shared.members.Kubectl(t.Context(), member, "", "get", "configmap", name, "-n", "default", "-o", "jsonpath={.data.value}", "--ignore-not-found")
}

func waitOnMember(t *testing.T, reason, member, name, want string) {
	t.Helper()
	eventually(t, reason, func() error {
		got, err := onMember(t, member, name)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("on %s configmap %s has value %q, want %q", member, name, got, want)
		}
		return nil
	})
}

// TestApply checks that a member holds what its Works say, by push and by pull alike.
func TestApply(t *testing.T) {
	for cluster, member := range map[string]string{pushCluster: pushMember, pullCluster: pullMember} {
		t.Run(cluster, func(t *testing.T) {
			applyWork(t, cluster, "stage", "one")
			waitOnMember(t, "a new Work is applied", member, "stage", "one")

			condition := "jsonpath={.status.conditions[?(@.type=='Applied')].reason}"
			eventually(t, "the Work says that it is applied", func() error {
				got, err := shared.Kubectl(t.Context(), "", "get", "work", "stage", "-n", "karmada-es-"+cluster, "-o", condition)
				if err != nil {
					return err
				}
				if got != "AppliedSuccessful" {
					return fmt.Errorf("reason is %q", got)
				}
				return nil
			})

			applyWork(t, cluster, "stage", "two")
			waitOnMember(t, "a changed Work is applied", member, "stage", "two")

			if _, err := shared.members.Kubectl(t.Context(), member, "", "patch", "configmap", "stage", "-n", "default", "--type=merge", "-p", `{"data":{"value":"drift"}}`); err != nil {
				t.Fatal(err)
			}
			waitOnMember(t, "what somebody changes on the member is changed back", member, "stage", "two")
			if _, err := shared.members.Kubectl(t.Context(), member, "", "delete", "configmap", "stage", "-n", "default"); err != nil {
				t.Fatal(err)
			}
			waitOnMember(t, "what somebody deletes on the member comes back", member, "stage", "two")

			if _, err := shared.members.Kubectl(t.Context(), member, "", "create", "configmap", "theirs", "-n", "default", "--from-literal=value=mine"); err != nil {
				t.Fatal(err)
			}
			applyWork(t, cluster, "theirs", "ours")
			eventually(t, "a Work that would take over what is not ours says so", func() error {
				got, err := shared.Kubectl(t.Context(), "", "get", "work", "theirs", "-n", "karmada-es-"+cluster, "-o", "jsonpath={.status.conditions[?(@.type=='Applied')].message}")
				if err != nil {
					return err
				}
				if !strings.Contains(got, "Karmada will not manage this resource") {
					return fmt.Errorf("message is %q", got)
				}
				return nil
			})

			for _, name := range []string{"stage", "theirs"} {
				if _, err := shared.Kubectl(t.Context(), "", "delete", "work", name, "-n", "karmada-es-"+cluster, "--timeout=2m"); err != nil {
					t.Fatal(err)
				}
			}
			waitOnMember(t, "with its Work the object goes", member, "stage", "")
			if got, err := onMember(t, member, "theirs"); err != nil || got != "mine" {
				t.Errorf("what never was ours is %q, %v, want that it stays as it was", got, err)
			}
			if _, err := shared.members.Kubectl(t.Context(), member, "", "delete", "configmap", "theirs", "-n", "default"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNothingIsWritten checks that a fleet in which nothing happens writes nothing but heartbeats.
func TestNothingIsWritten(t *testing.T) {
	for cluster, member := range map[string]string{pushCluster: pushMember, pullCluster: pullMember} {
		applyWork(t, cluster, "still", "still")
		waitOnMember(t, "a new Work is applied", member, "still", "still")
	}
	versions := func() string {
		t.Helper()
		out, err := shared.Kubectl(t.Context(), "", "get", "clusters,works", "-A", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// Three renewals of the agent's lease are as many rounds of looking at every member.
	before, renewed := "", 0
	eventually(t, "three heartbeats pass in which no object is written", func() error {
		lease, err := shared.Kubectl(t.Context(), "", "get", "lease", pullCluster, "-n", "karmada-cluster", "-o", "jsonpath={.spec.renewTime}")
		if err != nil {
			return err
		}
		now := versions() + "|"
		if !strings.HasPrefix(before, now) { // an object was written: begin anew
			before, renewed = now+lease, 0
			return fmt.Errorf("written: %s", now)
		}
		if before != now+lease {
			before = now + lease
			renewed++
		}
		if renewed < 3 {
			return fmt.Errorf("%d heartbeats so far", renewed)
		}
		return nil
	})
	for cluster := range map[string]string{pushCluster: pushMember, pullCluster: pullMember} {
		if _, err := shared.Kubectl(t.Context(), "", "delete", "work", "still", "-n", "karmada-es-"+cluster, "--timeout=2m"); err != nil {
			t.Fatal(err)
		}
	}
}
