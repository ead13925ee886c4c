package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The rest of spec cli/commands.md Appendix B: commands below commands, and those whose words are ours to choose.
func TestUsageLinesOfOwnCommands(t *testing.T) {
	root := newRoot(t, "karmadactl")
	for path, want := range map[string]string{
		"attach":       "attach (POD | TYPE/NAME) -c CONTAINER",
		"deinit":       "deinit",
		"init":         "init",
		"logs":         "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)",
		"promote":      "promote <RESOURCE_TYPE> <RESOURCE_NAME> -n <NAME_SPACE> -C <CLUSTER_NAME>",
		"register":     "register [karmada-apiserver-endpoint]",
		"token create": "token create",
		"token delete": "token delete [token-value] ...",
		"token list":   "token list",
		"top node":     "top node [NAME | -l label]",
		"top pod":      "top pod [NAME | -l label]",
		"unregister":   "unregister CLUSTER_NAME",
	} {
		cmd := find(root, path)
		if cmd == nil {
			t.Errorf("there is no command %q", path)
			continue
		}
		if got := cmd.UseLine(); got != "karmadactl "+want {
			t.Errorf("usage line of %s is %q, want %q", path, got, "karmadactl "+want)
		}
	}
}

// Other names of a command are few: people who read each other's scripts must know them.
func TestAliases(t *testing.T) {
	want := map[string][]string{
		"karmadactl top node": {"nodes", "no"}, "karmadactl top pod": {"pods", "po"},
	}
	got := make(map[string][]string)
	walk(newRoot(t, "karmadactl"), func(cmd *cobra.Command) {
		// Those of create are kubectl's.
		if len(cmd.Aliases) > 0 && !strings.HasPrefix(cmd.CommandPath(), "karmadactl create ") {
			got[cmd.CommandPath()] = cmd.Aliases
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aliases (-contract +ours):\n%s", diff)
	}
}

// Every help has the same order (spec: cli/commands.md 1.4): what it is for comes first, how to ask for more last.
func TestHelpHasOneOrder(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root, _, err := New("karmadactl", streams)
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"Aliases:", "Examples:", "Available Commands:", "Options:", "Usage:"}
	walk(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.Hidden || cmd.Name() == "options" {
			return
		}
		out.Reset()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if slices.Contains(order, lines[0]) {
			t.Errorf("help of %q begins with %q, not with what it is for", cmd.CommandPath(), lines[0])
		}
		var headings []string
		for _, line := range lines {
			if slices.Contains(order, line) {
				headings = append(headings, line)
			}
		}
		want := slices.DeleteFunc(slices.Clone(order), func(h string) bool { return !slices.Contains(headings, h) })
		if !slices.Equal(headings, want) || !slices.Contains(headings, "Usage:") {
			t.Errorf("help of %q has the parts %q, want the order %q", cmd.CommandPath(), headings, order)
		}
		if slices.Contains(headings, "Available Commands:") != slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return !c.Hidden }) {
			t.Errorf("help of %q has the parts %q: commands are those of parents", cmd.CommandPath(), headings)
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, `Use "karmadactl options" for a list of global command-line options`) {
			t.Errorf("help of %q ends with %q, want the tip on options", cmd.CommandPath(), last)
		}
	})
}

// The groups of the contract, in its order, with its commands in its order; what is ours stands among them.
func TestRootHelpGroups(t *testing.T) {
	contract := []struct {
		heading  string
		commands []string
	}{
		{"Basic Commands:", []string{"explain", "get", "create", "delete", "edit"}},
		{"Cluster Registration Commands:", []string{"init", "deinit", "addons", "join", "unjoin", "token", "register", "unregister"}},
		{"Control Plane Commands:", []string{"start", "stop", "status"}}, // ours
		{"Cluster Management Commands:", []string{"cordon", "uncordon", "taint"}},
		{"Troubleshooting and Debugging Commands:", []string{"attach", "logs", "exec", "describe", "interpret", "why", "tree"}},
		{"Advanced Commands:", []string{"apply", "promote", "demote", "top", "patch"}},
		{"Settings Commands:", []string{"label", "annotate", "completion"}},
		{"Other Commands:", []string{"api-resources", "api-versions", "playground", "version"}},
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root, _, err := New("karmadactl", streams)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	heading := ""
	for _, line := range strings.Split(out.String(), "\n") {
		switch fields := strings.Fields(line); {
		case strings.HasSuffix(line, "Commands:"):
			heading = line
		case line == "Usage:":
			heading = ""
		case heading != "" && len(fields) > 0:
			got[heading] = append(got[heading], fields[0])
		}
	}
	want := make(map[string][]string)
	for _, g := range contract {
		want[g.heading] = slices.DeleteFunc(g.commands, func(name string) bool { c := find(root, name); return c == nil || c.Hidden })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups of root help (-contract +ours):\n%s", diff)
	}
}

// Who has not what a verb promises is told so, with exit code 1.
func TestAbsentVerbsSaySo(t *testing.T) {
	root := newRoot(t, "karmadactl")
	for _, name := range promised() {
		cmd := find(root, name)
		if cmd == nil {
			t.Errorf("%q is unknown", name)
			continue
		}
		if !cmd.Hidden {
			continue
		}
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		if code := Main([]string{"karmadactl", name, "--some-flag"}, streams); code != 1 || !strings.Contains(errOut.String(), "not available in this version") {
			t.Errorf("%s: exit code %d, %q; want 1, and that it is not there yet", name, code, errOut)
		}
	}
}

// Colours are for terminals of people who have not said no.
func TestNoColour(t *testing.T) {
	p := aFleetToComplete(t)
	t.Setenv("NO_COLOR", "1")
	t.Setenv("CLICOLOR_FORCE", "")
	for _, args := range [][]string{
		{"--help"}, {"get", "deployments"}, {"get", "deployments", "-s", "all"}, {"describe", "namespace", "default"}, {"why", "deployment/web"}, {"tree", "deployment/web"},
		{"cordon", "absent"}, {"get", "nothing"}, {"version"}, {"demote", "deployment/web", "--dry-run"},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		Main(append([]string{"karmadactl", "--kubeconfig=" + p.Kubeconfig}, args...), streams)
		if strings.ContainsRune(out.String()+errOut.String(), '\x1b') {
			t.Errorf("%q writes colours:\n%q\n%q", args, out, errOut)
		}
	}
}
