package cmd

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/examples"
)

// readme returns the examples of the first page that a user reads.
func readme(t *testing.T) []examples.Example {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return examples.InMarkdown("README.md", string(text), "karmadactl")
}

// An example that does not run is worse than none. What needs a control plane is run by test/cli.
func TestExamplesParse(t *testing.T) {
	for _, program := range []string{"karmadactl", "kubectl karmada"} {
		root := newRoot(t, strings.ReplaceAll(program, " ", "-"))
		all := examples.InHelp(root)
		if program == "karmadactl" {
			all = append(all, readme(t)...)
		}
		if len(all) == 0 {
			t.Fatalf("%s has no examples at all", program)
		}
		for _, e := range all {
			for _, line := range e.Lines {
				calls := examples.Calls(line, program)
				if len(calls) == 0 {
					t.Errorf("example %q of %s does not call %q", line, e.Of, program)
				}
				for _, args := range calls {
					parse(t, root, e.Of, line, args)
				}
			}
		}
	}
}

// parse goes as far with a call as possible without running it.
func parse(t *testing.T, root *cobra.Command, of, line string, args []string) {
	t.Helper()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || !cmd.Runnable() {
		t.Errorf("example %q of %s: there is no such command: %v", line, of, err)
		return
	}
	// What another example of the command has given, this one has not.
	cmd.Flags().VisitAll(forget)
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("example %q of %s: %v", line, of, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("example %q of %s: %v", line, of, err)
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		t.Errorf("example %q of %s: %v", line, of, err)
	}
}

// forget makes a flag look as if nobody had given it.
func forget(f *pflag.Flag) {
	f.Changed = false
	if list, ok := f.Value.(pflag.SliceValue); ok {
		_ = list.Replace(nil) // some cannot take nothing, and are not read by what checks arguments
		return
	}
	_ = f.Value.Set(f.DefValue) // some show a default that they do not take
}

// An example of a command is an example of that command.
func TestExamplesAreOfTheirCommand(t *testing.T) {
	elsewhere := []string{"playground"} // shows what a member may be used for
	root := newRoot(t, "karmadactl")
	for _, e := range examples.InHelp(root) {
		name := strings.TrimPrefix(e.Of, "karmadactl ")
		shown := slices.ContainsFunc(e.Lines, func(line string) bool {
			return slices.ContainsFunc(examples.Calls(line, "karmadactl"), func(args []string) bool {
				cmd, _, err := root.Find(args)
				return err == nil && (cmd.CommandPath() == e.Of || strings.HasPrefix(cmd.CommandPath(), e.Of+" "))
			})
		})
		if !shown && !slices.Contains(elsewhere, name) {
			t.Errorf("the example %q of %q does not show that command", e.Lines, e.Of)
		}
	}
}

// Who needs help with a command needs an example of it first.
func TestCommandsHaveExamples(t *testing.T) {
	have := make(map[string]bool)
	for _, e := range examples.InHelp(newRoot(t, "karmadactl")) {
		have[e.Of] = true
	}
	walk(newRoot(t, "karmadactl"), func(cmd *cobra.Command) {
		// Those of a parent without an own action are its children's, and the other way round.
		if cmd.Hidden || cmd.HasSubCommands() || cmd.Name() == "options" || cmd.Parent() != nil && have[cmd.Parent().CommandPath()] {
			return
		}
		if !have[cmd.CommandPath()] {
			t.Errorf("%q has no example", cmd.CommandPath())
		}
	})
}

// These need neither a server nor anything of this host.
func TestExamplesThatNeedNoServerRun(t *testing.T) {
	local := []string{"karmadactl completion", "karmadactl version"}
	ran := 0
	for _, e := range examples.InHelp(newRoot(t, "karmadactl")) {
		if !slices.Contains(local, e.Of) {
			continue
		}
		for _, line := range e.Lines {
			for _, args := range examples.Calls(line, "karmadactl") {
				var out, errOut bytes.Buffer
				code := Main(append([]string{"karmadactl"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
				if code != 0 || out.Len() == 0 || errOut.Len() > 0 {
					t.Errorf("example %q exits with %d, prints %d bytes, and says %q", line, code, out.Len(), errOut.String())
				}
				ran++
			}
		}
	}
	if ran < len(local) {
		t.Errorf("%d examples ran, want some of each of %q", ran, local)
	}
}
