// Package version implements karmadactl version. It touches no file and no
// server, and answers at once.
package version

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// NewCmd returns the version command of program (spec: cli/commands.md 9;
// --output is ours).
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:                   "version",
		Short:                 "Print the version information",
		Long:                  "Print the version information of this program.",
		DisableFlagsInUseLine: true,
		Example: templates.Examples(`
			# Print the version
			` + program + ` version

			# Print it for a script
			` + program + ` version -o json`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmdutil.UsageErrorf(cmd, "unexpected arguments: %v", args)
			}
			text, err := version.Get().Text(program, output)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(s.Out, text)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "One of 'yaml' or 'json'.")
	return cmd
}
