// Package completion implements karmadactl completion, which prints the code
// that makes a shell complete karmadactl's commands.
package completion

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
)

const licence = `
# Copyright The karmadactl Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

`

// A shell prints its completion code for root.
type shell func(w io.Writer, root *cobra.Command) error

func shells() map[string]shell {
	return map[string]shell{
		"bash": func(w io.Writer, root *cobra.Command) error { return root.GenBashCompletionV2(w, true) },
		"zsh":  func(w io.Writer, root *cobra.Command) error { return root.GenZshCompletion(w) },
		"fish": func(w io.Writer, root *cobra.Command) error { return root.GenFishCompletion(w, true) },
		"powershell": func(w io.Writer, root *cobra.Command) error {
			return root.GenPowerShellCompletionWithDesc(w)
		},
	}
}

// NewCmd returns the completion command of program (spec: cli/commands.md 9;
// powershell is ours).
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	known := shells()
	return &cobra.Command{
		Use:                   "completion SHELL",
		Short:                 "Output shell completion code for the specified shell (bash, zsh, fish, powershell)",
		DisableFlagsInUseLine: true,
		Long: templates.LongDesc(`
			Output shell completion code for the specified shell (bash, zsh, fish or powershell).

			The shell code must be evaluated to provide interactive completion of commands, for
			example by sourcing it from the shell's start-up file. Completion in bash needs the
			bash-completion package.

			Called as a plugin, this program is completed through kubectl_complete-karmada, which
			must be in PATH beside it.

			Names come from the control plane and from members. What is not known after 250 ms is not
			offered; KARMADACTL_COMPLETION_TIMEOUT=1s allows for more, over a long line.`),
		Example: templates.Examples(`
			# Load completion into the current bash
			source <(` + program + ` completion bash)

			# Load completion into the current zsh
			source <(` + program + ` completion zsh)

			# Load completion into the current fish
			` + program + ` completion fish | source

			# Load completion into the current PowerShell
			` + program + ` completion powershell | Out-String | Invoke-Expression`),
		ValidArgs: slices.Sorted(maps.Keys(known)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cmdutil.UsageErrorf(cmd, "Shell not specified.")
			case len(args) > 1:
				return cmdutil.UsageErrorf(cmd, "Too many arguments. Expected only the shell type.")
			}
			generate, ok := known[args[0]]
			if !ok {
				return cmdutil.UsageErrorf(cmd, "Unsupported shell type %q.", args[0])
			}
			if err := write(s.Out, cmd.Root(), args[0], generate); err != nil {
				return fmt.Errorf("print %s completion: %w", args[0], err)
			}
			return nil
		},
	}
}

func write(w io.Writer, root *cobra.Command, name string, generate shell) error {
	head := licence
	if name == "zsh" {
		// zsh looks for this in the first line of the file.
		head = fmt.Sprintf("#compdef %[1]s\ncompdef _%[1]s %[1]s\n", root.Name()) + head
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	return generate(w, root)
}
