// Package role is what the roles of the server binary have in common besides
// flags: the shape of their commands, how flags are parsed without one, the
// controller-runtime manager that most of them are made of, and the table of
// controllers that --controllers chooses from.
package role

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/server/signals"
	"github.com/karmadactl/karmadactl/pkg/util/help"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// A Role describes one role of the server binary.
type Role struct {
	Name string
	// Short is one line, Long the text of its help.
	Short, Long string
	// Sets are its flags, grouped as its help shows them.
	Sets *cliflag.NamedFlagSets
	// Run does the work until its context ends, which SIGINT and SIGTERM make
	// it do. An error ends the process with code 1.
	Run func(ctx context.Context) error
}

// NewCommand returns the command of a role, with the sub-commands that every
// role has. It works as a root command and as a sub-command of one. Errors are
// returned, not printed: that is for whoever executes it.
func NewCommand(r Role, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:           r.Name,
		Short:         r.Short,
		Long:          r.Long,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := signals.Context(cmd.Context(), func(code int) {
				klog.Flush()
				os.Exit(code)
			})
			defer release()
			defer klog.Flush()
			return r.Run(ctx)
		},
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(func(failed *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, failed.CommandPath())
	})

	fs := cmd.Flags()
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, name := range r.Sets.Order {
		fs.AddFlagSet(r.Sets.FlagSets[name])
	}
	help.SetSections(cmd, r.Sets)

	cmd.AddCommand(NewVersion(r.Name), newCompletion(r.Name))
	helper := newHelp()
	cmd.SetHelpCommand(helper)
	// cobra adds it to a root command by itself, to others it does not; it
	// removes the one that is there first.
	cmd.AddCommand(helper)
	return cmd
}

// NewVersion returns the command that prints which build of a program this is.
func NewVersion(name string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version information",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := version.Get().Text(name, output)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "One of 'yaml' or 'json'.")
	return cmd
}

func newCompletion(name string) *cobra.Command {
	return &cobra.Command{
		Use:                   "completion (bash|zsh|fish|powershell)",
		Short:                 "Generate the autocompletion script for the specified shell",
		Long:                  "Generate the autocompletion script of " + name + " for the specified shell. Source it to load completions, e.g. source <(" + name + " completion bash).",
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// A script is for a program as it is called, so for the root.
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(out)
			}
		},
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			// Not the root's commands: the role may be a sub-command itself.
			target, rest, err := cmd.Parent().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("no help for %q: see '%s --help' for the commands", args, cmd.Parent().CommandPath())
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}
