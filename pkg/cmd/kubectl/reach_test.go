package kubectl

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// Verbs of one member go where the flags say, and nowhere else.
func TestReach(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		out    string // is in the output
		err    string // is in the error
		// member says whether the member must have been asked.
		member bool
	}{
		"ControlPlane":       {reason: "The default is the control plane.", args: []string{"api-versions"}, out: "policy.karmada.io/v1alpha1"},
		"Cluster":            {reason: "A cluster alone is enough.", args: []string{"api-versions", "--cluster", "member1"}, out: "example.io/v1", member: true},
		"ScopeAndCluster":    {reason: "So is it with its scope.", args: []string{"api-versions", "-s", "members", "--cluster", "member1"}, out: "example.io/v1", member: true},
		"Resources":          {reason: "api-resources, too.", args: []string{"api-resources", "--cluster", "member1"}, out: "gadgets", member: true},
		"Describe":           {reason: "describe has -C.", args: []string{"describe", "pod", "web", "-C", "member1"}, out: "Name:         web", member: true},
		"DescribeByPrefix":   {reason: "A prefix will do.", args: []string{"describe", "pod", "we", "-C", "member1"}, out: "Name:         web", member: true},
		"DescribeBySelector": {reason: "A selector, too.", args: []string{"describe", "pods", "-l", "app=web", "-s", "members", "-C", "member1"}, out: "Name:         web", member: true},
		"NoCluster":          {reason: "Scope members needs one.", args: []string{"describe", "pod", "web", "-s", "members"}, err: "must specify a member cluster"},
		"LogsNoCluster":      {reason: "The control plane has no pods that run.", args: []string{"logs", "web"}, err: "must specify a cluster"},
		"WrongScope":         {reason: "All is no single one.", args: []string{"exec", "web", "-s", "all", "--cluster", "member1", "--", "date"}, err: "not support operation scope: all"},
		"Contradiction":      {reason: "One of the two.", args: []string{"explain", "pods", "-s", "karmada", "--cluster", "member1"}, err: "--operation-scope=karmada is the control plane, and --cluster=member1 is a member cluster"},
		"UnknownCluster":     {reason: "Scripts match the server's words.", args: []string{"attach", "web", "-C", "nowhere"}, err: `clusters.cluster.karmada.io "nowhere" not found`},
		"PathAsCluster":      {reason: "A name is no path.", args: []string{"logs", "web", "-C", "../member1"}, err: `"../member1" is no name of a cluster: may not contain '/'`},
		"MissingPod":         {reason: "The member says so.", args: []string{"exec", "nothing", "-C", "member1", "--", "date"}, err: `pods "nothing" not found`, member: true},
		"Silent":             {reason: "Nobody waits for ever.", args: []string{"describe", "pod", "web", "-C", "dead", "--cluster-timeout", "200ms"}, err: "cluster dead did not answer within 200ms"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			p := fleettest.New(t)
			m := p.Join("member1", fleettest.Pod("default", "web", "app", "web"))
			p.JoinAs("dead", fleettest.Silent())
			out, _, err := run(t, p, tc.args...)
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got error %v: %s", err, tc.reason)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want %q: %s", err, tc.err, tc.reason)
			}
			if !strings.Contains(out, tc.out) {
				t.Errorf("output lacks %q: %s\n%s", tc.out, tc.reason, out)
			}
			if asked := len(m.Requests()) > 0; asked != tc.member {
				t.Errorf("the member was asked: %t, want %t: %s", asked, tc.member, tc.reason)
			}
		})
	}
}

// What is in a member is completed from there.
func TestReachCompletes(t *testing.T) {
	p := fleettest.New(t)
	p.Join("member1", fleettest.Pod("default", "web"))
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"Pods of the member.", []string{"logs", "-C", "member1", "we"}, "web\n"},
		{"With its scope.", []string{"describe", "-s", "members", "-C", "member1", "pods", ""}, "web\n"},
		{"There is nothing in no member.", []string{"logs", "we"}, ""},
		{"Nor in one that does not exist.", []string{"logs", "-C", "x", "we"}, ""},
		{"Clusters are completed.", []string{"exec", "--cluster", "mem"}, "member1\n"},
	} {
		s, _, out, _ := genericiooptions.NewTestIOStreams()
		cmds, err := Set{Factory: p.Factory(t, s), Streams: s, Program: "karmadactl"}.Commands(tc.args[0])
		if err != nil {
			t.Fatal(err)
		}
		root := &cobra.Command{Use: "karmadactl"}
		root.AddCommand(cmds...)
		root.SetOut(out)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd, tc.args[0], "--kubeconfig", p.Kubeconfig}, tc.args[1:]...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(out.String(), ":"); got != tc.want {
			t.Errorf("%q: got %q, want %q: %s", tc.args, got, tc.want, tc.reason)
		}
	}
}
