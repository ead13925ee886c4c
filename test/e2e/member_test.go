package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: postgres}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: default}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: busybox}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: never, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: never, image: fake/never}]}
`

// TestMember checks that a local member cluster behaves as a cluster does.
func TestMember(t *testing.T) {
	dir, err := shared.member()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "member1.config")
	with(t, kubeconfig, "apply", "-f", write(t, "workloads.yaml", workloads))

	cases := map[string]struct {
		reason   string
		kind     string
		jsonPath string
		want     string
	}{
		"Nodes":       {"The nodes are ready, for pods to be placed on.", "nodes", "{.items[*].status.conditions[?(@.type=='Ready')].status}", "True True True True"},
		"Deployment":  {"Its replicas become available.", "deployment/web", "{.status.availableReplicas}", "3"},
		"StatefulSet": {"Its replicas become ready, in order.", "statefulset/db", "{.status.readyReplicas}", "2"},
		"DaemonSet":   {"One pod a node becomes ready.", "daemonset/agent", "{.status.numberReady}", "4"},
		"Job":         {"Its pod ends by itself.", "job/once", "{.status.succeeded}", "1"},
		"Never":       {"Images that start with fake/ never become ready.", "pods", "{.items[?(@.metadata.labels.app=='never')].status.containerStatuses[0].state.waiting.reason}", "ImagePullBackOff"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			eventually(t, c.reason, func() (bool, string) {
				r := shared.run(t.Context(), nil, "get", c.kind, "-n", "default", "-o", "jsonpath="+c.jsonPath, "--kubeconfig", kubeconfig)
				return r.stdout == c.want, r.String()
			})
		})
	}
	if got := with(t, kubeconfig, "get", "deployment/never", "-o", "jsonpath={.status.availableReplicas}"); got != "" && got != "0" {
		t.Errorf("a deployment of a fake/ image has %s available replicas", got)
	}

	t.Run("UpAgainChangesNothing", func(t *testing.T) {
		before := karmadactl(t, "playground", "list", "--dir", dir, "-o", "json")
		karmadactl(t, "playground", "up", "--members=1", "--nodes=4", "--dir", dir)
		if after := karmadactl(t, "playground", "list", "--dir", dir, "-o", "json"); after != before {
			t.Errorf("up again changed the playground:\n%s\n%s", before, after)
		}
	})
	t.Run("StoppedAndStarted", func(t *testing.T) {
		karmadactl(t, "playground", "down", "--dir", dir)
		if list := karmadactl(t, "playground", "list", "--dir", dir); !strings.Contains(list, "false") {
			t.Errorf("a member that is down is not listed as such:\n%s", list)
		}
		karmadactl(t, "playground", "up", "--members=1", "--nodes=5", "--dir", dir)
		eventually(t, "the fifth node joins, and the Deployment is still there", func() (bool, string) {
			r := shared.run(t.Context(), nil, "get", "nodes,deployments", "-n", "default", "-o", "name", "--kubeconfig", kubeconfig)
			return strings.Count(r.stdout, "node/") == 5 && strings.Contains(r.stdout, "deployment.apps/web"), r.String()
		})
	})
}

// TestPlaygroundBadInput checks that a playground does not take what is not a playground, and says so.
func TestPlaygroundBadInput(t *testing.T) {
	foreign := filepath.Dir(write(t, "thesis.txt", "mine"))
	fresh := filepath.Join(t.TempDir(), "playground")
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Foreign":    {"The directory belongs to somebody.", []string{"up", "--dir", foreign}, []string{foreign, "thesis.txt"}},
		"NoMembers":  {"None is not a playground.", []string{"up", "--members=0", "--dir", fresh}, []string{"0 members"}},
		"Nodes":      {"There are no fewer than no nodes.", []string{"up", "--nodes=-1", "--dir", fresh}, []string{"--nodes=-1"}},
		"Subcommand": {"A typo is not a wish for help.", []string{"upp"}, []string{"upp"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { refused(t, 1, c.want, append([]string{"playground"}, c.args...)...) })
	}
}
