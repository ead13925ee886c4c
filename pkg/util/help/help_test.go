package help_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/karmadactl/karmadactl/pkg/util/help"
)

func TestWidth(t *testing.T) {
	if got := help.Width(&bytes.Buffer{}); got != 80 {
		t.Errorf("what is no terminal is 80 columns wide, got %d", got)
	}
}

func TestWrap(t *testing.T) {
	cases := map[string]struct {
		reason     string
		text, want string
		width      int
	}{
		"Short":     {reason: "What fits stays.", text: "one two", want: "one two", width: 7},
		"Long":      {reason: "What does not fit is broken at a blank.", text: "one two three", want: "one two\nthree", width: 7},
		"LongWord":  {reason: "A word is never broken.", text: "a extraordinary b", want: "a\nextraordinary\nb", width: 5},
		"Rejoined":  {reason: "Line breaks inside a paragraph are not kept.", text: "one\ntwo", want: "one two", width: 80},
		"Paragraph": {reason: "Blank lines separate paragraphs.", text: "one\n\ntwo", want: "one\n\ntwo", width: 80},
		"Indented":  {reason: "What is indented was laid out by hand.", text: "see:\n  a   b\nend", want: "see:\n  a   b\nend", width: 80},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, help.Wrap(tc.text, tc.width)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSections(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Help": {
			reason: "Help is the description, the usage line, the commands, then a block for each flag set.",
			args:   []string{"--help"},
			want: `Does a thing that takes some words to say, and more of them than there is room
for in one line.

Usage:
  role [flags]
  role [command]

Available Commands:
  version     Print the version

Generic flags:

      --list strings   one of:
                       a
                       b (default [x,y])
      --name string    what it is called; this text is long enough that it needs
                       to be wrapped (default "n")

Cluster failover flags:

      --a-name-so-long-that-nothing-fits-beside-it duration
          below it, then; this text is long enough that it needs to be wrapped
          (default 1s)
      --on
          whether
`,
		},
		"SubCommand": {
			reason: "A sub-command shows its own flags, not those of its parent.",
			args:   []string{"version", "--help"},
			want: `Print the version

Usage:
  role version [flags]

Flags:

  -h, --help            help for version
  -o, --output string   json or yaml
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(tc.args)
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUsageGoesToStderr(t *testing.T) {
	cmd := command()
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	if err := cmd.Usage(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errOut.String(), "Cluster failover flags:") || out.Len() > 0 {
		t.Errorf("usage belongs on stderr, got %q there and %q on stdout", errOut.String(), out.String())
	}
}

func command() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	cmd := &cobra.Command{
		Use:  "role",
		Long: "Does a thing that takes some words to say, and more of them than there is room for in one line.",
		Run:  run,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	version := &cobra.Command{Use: "version", Short: "Print the version", Run: run}
	version.Flags().StringP("output", "o", "", "json or yaml")
	cmd.AddCommand(version)

	sets := &cliflag.NamedFlagSets{}
	sets.FlagSet("generic").StringSlice("list", []string{"x", "y"}, "one of:\na\nb")
	sets.FlagSet("generic").String("secret", "", "hidden")
	_ = sets.FlagSet("generic").MarkHidden("secret")
	sets.FlagSet("generic").String("name", "n", "what it is called; this text is long enough that it needs to be wrapped")
	sets.FlagSet("cluster failover").Duration("a-name-so-long-that-nothing-fits-beside-it", time.Second, "below it, then; this text is long enough that it needs to be wrapped")
	sets.FlagSet("cluster failover").Bool("on", false, "whether")
	sets.FlagSet("empty")
	for _, name := range sets.Order {
		cmd.Flags().AddFlagSet(sets.FlagSets[name])
	}
	help.SetSections(cmd, sets)
	return cmd
}
