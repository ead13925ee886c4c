package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// newTop returns the command as a user of p has it.
func newTop(t *testing.T, p *fleettest.Plane) (cmd *cobra.Command, out, errOut *bytes.Buffer) {
	t.Helper()
	s, _, out, errOut := genericiooptions.NewTestIOStreams()
	cmd, err := NewCmd(p.Factory(t, s), s, "karmadactl")
	if err != nil {
		t.Fatal(err)
	}
	cmd.SilenceErrors = true
	return cmd, out, errOut
}

// measured makes a member that has a metrics API with these items, of pods and of nodes.
func measured(m *fleettest.API, pods, nodes []any) {
	m.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		rest, ok := strings.CutPrefix(r.URL.Path, "/apis/metrics.k8s.io/v1beta1/")
		if !ok {
			return false
		}
		kind, items := "NodeMetrics", nodes
		if strings.Contains(rest, "pods") {
			kind, items = "PodMetrics", pods
		}
		namespace := ""
		segments := strings.Split(rest, "/")
		if segments[0] == "namespaces" {
			namespace, segments = segments[1], segments[2:]
		}
		var found []any
		for _, item := range items {
			metadata := item.(map[string]any)["metadata"].(map[string]any)
			if (namespace == "" || metadata["namespace"] == namespace) && (len(segments) == 1 || metadata["name"] == segments[1]) {
				found = append(found, item)
			}
		}
		if len(segments) == 2 && len(found) == 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"podmetrics.metrics.k8s.io \"%[1]s\" not found","details":{"name":%[1]q,"kind":"podmetrics"}}`, segments[1])
			return true
		}
		var answer any = map[string]any{"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind + "List", "metadata": map[string]any{}, "items": found}
		if len(segments) == 2 {
			answer = found[0]
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return true
	})
}

// uses returns the metrics of a pod whose containers use that much: name, CPU, memory.
func uses(namespace, name string, containers ...[3]string) any {
	var all []any
	for _, c := range containers {
		all = append(all, map[string]any{"name": c[0], "usage": map[string]any{"cpu": c[1], "memory": c[2]}})
	}
	return map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "containers": all,
	}
}

func nodeUses(name, cpu, memory string) any {
	return map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics",
		"metadata": map[string]any{"name": name}, "usage": map[string]any{"cpu": cpu, "memory": memory},
	}
}

func aNode(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"capacity":{"cpu":"4","memory":"4Gi"},"allocatable":{"cpu":"2","memory":"2Gi"}}}`, name)
}

func made(name string, age time.Duration) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":%q,"creationTimestamp":%q}}`,
		name, time.Now().Add(-age).UTC().Format(time.RFC3339))
}

func aFleet(t *testing.T) *fleettest.Plane {
	p := fleettest.New(t)
	measured(p.Join("member1", fleettest.Pod("default", "web-1"), fleettest.Pod("other", "job"), aNode("node1"), aNode("node2")),
		[]any{uses("default", "web-1", [3]string{"app", "100m", "64Mi"}, [3]string{"proxy", "20m", "16Mi"}), uses("other", "job", [3]string{"job", "1", "1Gi"})},
		[]any{nodeUses("node1", "500m", "1Gi")})
	measured(p.Join("member2", fleettest.Pod("default", "web-2"), aNode("node1")),
		[]any{uses("default", "web-2", [3]string{"app", "300m", "32Mi"})},
		[]any{nodeUses("node1", "1", "512Mi")})
	return p
}

func TestTop(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		fleet  func(*fleettest.Plane)
		out    string
		errOut string
		err    string
	}{
		"Pods": {
			reason: "CLUSTER says where a pod is, and containers are summed.", args: []string{"pod"},
			out: "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \nweb-2   member2   300m         32Mi            \n",
		},
		"Alias": {
			reason: "Aliases are kubectl's.", args: []string{"po", "-C", "member2", "--no-headers"},
			out: "web-2   member2   300m   32Mi   \n",
		},
		"AllNamespaces": {
			reason: "NAMESPACE comes first.", args: []string{"pods", "-A", "-C", "member1"},
			out: "NAMESPACE   NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \ndefault     web-1   member1   120m         80Mi            \nother       job     member1   1000m        1024Mi          \n",
		},
		"Containers": {
			reason: "POD is the pod, and NAME the container.", args: []string{"pod", "--containers", "-C", "member1"},
			out: "POD     NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   app     member1   100m         64Mi            \nweb-1   proxy   member1   20m          16Mi            \n",
		},
		"Sorted": {
			reason: "Pods of all clusters are sorted together, the most first.", args: []string{"pod", "--sort-by", "cpu"},
			out: "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-2   member2   300m         32Mi            \nweb-1   member1   120m         80Mi            \n",
		},
		"Sum": {
			reason: "The sum is over all clusters.", args: []string{"pod", "--sum"},
			out: "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \nweb-2   member2   300m         32Mi            \n" +
				"                  ________     ________        \n                  420m         112Mi           \n",
		},
		"OneOfMany": {
			reason: "A pod that is in one cluster is shown, and missing in the other.", args: []string{"pod", "web-1"},
			out: "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \n",
			err: `cluster(member2): pods "web-1" not found`,
		},
		"FieldSelector": {
			reason: "Metrics know no fields: pods do.", args: []string{"pod", "--field-selector", "metadata.name=web-1"},
			out: "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \n",
		},
		"NoMetricsYet": {
			reason: "A pod is without metrics for a while.", args: []string{"pod", "-C", "new"},
			fleet: func(p *fleettest.Plane) { measured(p.Join("new", made("young", 0)), nil, nil) },
			err:   "cluster(new): metrics not available yet",
		},
		"NoMetricsForLong": {
			reason: "But not for ever.", args: []string{"pod", "old", "-C", "new"},
			fleet: func(p *fleettest.Plane) { measured(p.Join("new", made("old", time.Hour)), nil, nil) },
			err:   "cluster(new): Metrics not available for pod default/old, age: 1h0m",
		},
		"NoMetricsAPI": {
			reason: "The others are shown.", args: []string{"pod"},
			fleet: func(p *fleettest.Plane) { p.Join("bare") },
			out:   "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \nweb-2   member2   300m         32Mi            \n",
			err:   "cluster(bare): metrics API not available",
		},
		"NoMetricsAPIForOne": {
			reason: "Also when one is asked for.", args: []string{"pod", "x", "-C", "bare"},
			fleet: func(p *fleettest.Plane) { p.Join("bare") }, err: "cluster(bare): metrics API not available",
		},
		"Silent": {
			reason: "So they are when a member does not answer.", args: []string{"pod", "--cluster-timeout", "300ms"},
			fleet: func(p *fleettest.Plane) { p.JoinAs("dead", fleettest.Silent()) },
			out:   "NAME    CLUSTER   CPU(cores)   MEMORY(bytes)   \nweb-1   member1   120m         80Mi            \nweb-2   member2   300m         32Mi            \n",
			err:   "basic connection test to cluster(dead) failed, please check authorization or network: no answer within 300ms",
		},
		"None": {
			reason: "Nothing is no failure.", args: []string{"pod", "-n", "empty"},
			errOut: "No resources found in empty namespace.\n",
		},
		"Nodes": {
			reason: "A node without metrics is shown, last.", args: []string{"node"},
			out: "NAME    CLUSTER   CPU(cores)   CPU%        MEMORY(bytes)   MEMORY%     \n" +
				"node1   member1   500m         25%         1024Mi          50%         \n" +
				"node1   member2   1000m        50%         512Mi           25%         \n" +
				"node2   member1   <unknown>    <unknown>   <unknown>       <unknown>   \n",
		},
		"Capacity": {
			reason: "Percent of what a node has.", args: []string{"no", "node1", "--clusters", "member2", "--show-capacity", "--no-headers"},
			out: "node1   member2   1000m   25%   512Mi   12%   \n",
		},
		"NodesSorted": {
			reason: "The most first.", args: []string{"nodes", "--sort-by", "cpu", "--no-headers"},
			out: "node1   member2   1000m       50%         512Mi       25%         \nnode1   member1   500m        25%         1024Mi      50%         \nnode2   member1   <unknown>   <unknown>   <unknown>   <unknown>   \n",
		},
		"MissingNode":    {reason: "It is named.", args: []string{"node", "node9", "--clusters", "member1"}, err: `cluster(member1): nodes "node9" not found`},
		"UnknownCluster": {reason: "Found before anything is asked.", args: []string{"pod", "-C", "member1,x"}, err: "clusters don't exist: x"},
		"SortBy":         {reason: "Only two are known.", args: []string{"node", "--sort-by", "age"}, err: "--sort-by accepts only cpu or memory"},
		"NameAndLabel":   {reason: "One excludes the other.", args: []string{"pod", "x", "-l", "a=b"}, err: "only one of NAME or selector can be provided"},
		"NodeAndLabel":   {reason: "One excludes the other.", args: []string{"node", "x", "-l", "a=b"}, err: "only one of NAME or --selector can be provided"},
		"NameEverywhere": {reason: "A name is one in a namespace.", args: []string{"pod", "x", "-A"}, err: "a pod cannot be retrieved by name across all namespaces"},
		"BadSelector":    {reason: "It is found here.", args: []string{"pod", "-l", "a=b=c"}, err: "--selector=a=b=c: "},
		"TwoNames":       {reason: "One at a time.", args: []string{"pod", "a", "b"}, err: "pod [NAME | -l label]"},
		"NoShorthand":    {reason: "top node has none, as in the contract.", args: []string{"node", "-C", "member1"}, err: "unknown shorthand flag: 'C'"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			p := aFleet(t)
			if tc.fleet != nil {
				tc.fleet(p)
			}
			cmd, out, errOut := newTop(t, p)
			cmd.SetArgs(append(tc.args, "--kubeconfig", p.Kubeconfig))
			err := cmd.ExecuteContext(t.Context())
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got error %v: %s", err, tc.reason)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want %q: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("output (-want +got): %s\n%s", tc.reason, diff)
			}
			if tc.err == "" {
				if diff := cmp.Diff(tc.errOut, errOut.String()); diff != "" {
					t.Errorf("standard error (-want +got): %s\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// The flags are those of the contract, and --cluster-timeout (spec: cli/commands.md 5.5).
func TestFlags(t *testing.T) {
	cmd, _, _ := newTop(t, fleettest.New(t))
	data, err := os.ReadFile("testdata/contract.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]bool)
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		want[fields[0]+" "+fields[1]] = true
		sub, _, err := cmd.Find(fields[:1])
		if err != nil {
			t.Fatal(err)
		}
		f := sub.Flags().Lookup(fields[1])
		if f == nil {
			t.Errorf("top %s has no --%s", fields[0], fields[1])
			continue
		}
		value := f.DefValue
		if f.Name == "kubeconfig" {
			value = "" // what the test has set
		}
		if got := []string{f.Shorthand, f.Value.Type(), value}; !slices.Equal(got, fields[2:]) {
			t.Errorf("top %s --%s is %q, want %q", fields[0], fields[1], got, fields[2:])
		}
	}
	if len(want) != 22 {
		t.Errorf("the contract has %d flags here, want 22: is the table whole?", len(want))
	}
}

func TestErrorsOfAll(t *testing.T) {
	p := fleettest.New(t)
	for _, name := range []string{"a", "b"} {
		p.Join(name)
	}
	cmd, _, _ := newTop(t, p)
	cmd.SetArgs([]string{"node", "--kubeconfig", p.Kubeconfig})
	err := cmd.ExecuteContext(t.Context())
	want := "cluster(a): metrics API not available\nerror: cluster(b): metrics API not available"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q: a line for each", err, want)
	}
}

func TestCompletion(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"Pods of the cluster.", []string{"pod", "-C", "member1", ""}, "web-1\n"},
		{"Nodes, too.", []string{"node", "--clusters", "member1", "node2"}, "node2\n"},
		{"Without a cluster there is none to ask.", []string{"pod", ""}, ""},
		{"One that does not exist has nothing.", []string{"pod", "-C", "x", ""}, ""},
		{"One name is enough.", []string{"pod", "-C", "member1", "a", ""}, ""},
	} {
		p := aFleet(t)
		cmd, _, _ := newTop(t, p)
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd, tc.args[0], "--kubeconfig", p.Kubeconfig}, tc.args[1:]...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(out.String(), ":"); got != tc.want {
			t.Errorf("%q: got %q, want %q: %s", tc.args, got, tc.want, tc.reason)
		}
	}
}
