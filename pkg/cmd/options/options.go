// Package options implements karmadactl options, which lists the flags that
// every command takes.
package options

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
)

// NewCmd returns the options command of program (spec: cli/commands.md 9).
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "options",
		Short:                 "Print the list of flags inherited by all commands",
		Long:                  "Print the list of flags inherited by all commands.",
		DisableFlagsInUseLine: true,
		Example: templates.Examples(`
			# Print the flags inherited by all commands
			` + program + ` options`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmdutil.UsageErrorf(cmd, "unexpected arguments: %v", args)
			}
			return cmd.Usage()
		},
	}
	// What is asked for is no error output.
	cmd.SetErr(s.Out)
	templates.UseOptionsTemplates(cmd)
	return cmd
}
