package role_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

var errBoom = errors.New("boom")

func TestCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		run    func(context.Context) error
		out    string // what stdout contains
		err    string // what the error contains
		is     error
	}{
		"Run":            {reason: "Without arguments the role runs.", run: func(context.Context) error { return nil }},
		"Error":          {reason: "Its error is returned as it is, for whoever executes the command to print.", run: func(context.Context) error { return errBoom }, is: errBoom},
		"Version":        {reason: "The line is one that scripts know.", args: []string{"version"}, out: "some-role version: " + version.Get().String() + "\n"},
		"VersionYAML":    {reason: "Versions can be read by programs.", args: []string{"version", "-o", "yaml"}, out: "gitVersion: " + version.Get().GitVersion},
		"VersionUnknown": {reason: "A format that there is not is refused.", args: []string{"version", "-o", "xml"}, err: "xml"},
		"VersionArgs":    {reason: "Arguments are refused.", args: []string{"version", "now"}, err: "now"},
		"Help":           {reason: "Help shows flags in sections.", args: []string{"--help"}, out: "\nGeneric flags:\n"},
		"HelpCommand":    {reason: "Help is a command as well.", args: []string{"help"}, out: "\nGeneric flags:\n"},
		"HelpAbout":      {reason: "Help knows the commands of the role.", args: []string{"help", "version"}, out: "some-role version [flags]"},
		"HelpUnknown":    {reason: "Help on what there is not is an error.", args: []string{"help", "nope"}, err: "nope"},
		"Completion":     {reason: "There is a script for every shell.", args: []string{"completion", "bash"}, out: "bash completion"},
		"CompletionBad":  {reason: "Other shells are refused.", args: []string{"completion", "csh"}, err: "csh"},
		"UnknownCommand": {reason: "Arguments are refused.", args: []string{"nope"}, err: "nope"},
		"UnknownFlag":    {reason: "The error says where to look.", args: []string{"--nope"}, err: "some-role --help' for usage"},
		"Underscore":     {reason: "Flags may be typed with underscores.", args: []string{"--some_name=x"}, run: func(context.Context) error { return nil }},
	}
	for _, parent := range []string{"", "karmada"} {
		for name, tc := range cases {
			t.Run(name+parent, func(t *testing.T) {
				var out, errOut bytes.Buffer
				cmd := command(tc.run, &out, &errOut)
				args := tc.args
				if parent != "" {
					root := &cobra.Command{Use: parent, SilenceErrors: true, SilenceUsage: true}
					root.AddCommand(cmd)
					cmd, args = root, append([]string{"some-role"}, args...)
				}
				cmd.SetArgs(args)
				err := cmd.ExecuteContext(t.Context())

				switch {
				case tc.is != nil:
					if !errors.Is(err, tc.is) {
						t.Errorf("error %v, want %v\n%s", err, tc.is, tc.reason)
					}
				case tc.err != "":
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("error %v does not say %q\n%s", err, tc.err, tc.reason)
					}
				case err != nil:
					t.Errorf("%v\n%s", err, tc.reason)
				}
				if !strings.Contains(out.String(), tc.out) {
					t.Errorf("output does not contain %q\n%s\n%s", tc.out, tc.reason, out.String())
				}
				if errOut.Len() > 0 {
					t.Errorf("printed to stderr: %s", errOut.String())
				}
			})
		}
	}
}

func TestVersionJSON(t *testing.T) {
	var out bytes.Buffer
	cmd := command(nil, &out, &bytes.Buffer{})
	cmd.SetArgs([]string{"version", "--output=json"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var got version.Info
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(version.Get(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSignalEndsTheRun(t *testing.T) {
	running := make(chan struct{})
	cmd := command(func(ctx context.Context) error {
		close(running)
		<-ctx.Done()
		return nil
	}, &bytes.Buffer{}, &bytes.Buffer{})
	cmd.SetArgs(nil)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(t.Context()) }()
	<-running
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a graceful stop is no error, got: %v", err)
	}
}

func command(run func(context.Context) error, out, errOut *bytes.Buffer) *cobra.Command {
	sets := flags.NewSets()
	sets.FlagSet(flags.GenericSet).String("some-name", "", "a name")
	return role.NewCommand(role.Role{
		Name: "some-role", Short: "Do something", Long: "Does something.", Sets: sets, Run: run,
	}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut})
}
