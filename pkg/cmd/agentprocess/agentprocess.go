// Package agentprocess holds what register and unregister share about an agent that is a process of this host: where its
// directory is, and the command that keeps it running. That command is not for people.
package agentprocess

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
	"github.com/karmadactl/karmadactl/pkg/util/memory"
)

// systemDir holds the agents of root, each in a directory by its cluster's name.
const systemDir = "/etc/karmada/agents"

// AddDirFlag adds --agent-dir.
func AddDirFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "agent-dir", "", fmt.Sprintf("Directory that holds everything of an agent that is a process of this host: certificate, kubeconfigs and log. Default is the cluster's name in %s for root, and in karmada-agents of the state directory of others.", systemDir))
}

// Layout returns the layout of the directory given or, with none, of the default for a cluster.
func Layout(dir, cluster string) (localagent.Layout, error) {
	if dir == "" {
		parent := parent(os.Geteuid() == 0, os.Getenv("XDG_STATE_HOME"), os.UserHomeDir)
		if parent == "" {
			return localagent.Layout{}, errors.New("this user has no home directory: name the agent's directory with --agent-dir")
		}
		dir = filepath.Join(parent, cluster)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return localagent.Layout{}, fmt.Errorf("find the agent's directory: %w", err)
	}
	return localagent.Layout{Dir: abs}, nil
}

// parent is where the agents of a user are; "" if there is no place for them.
func parent(root bool, state string, home func() (string, error)) string {
	if root {
		return systemDir
	}
	// A relative path is not valid there, and is to be ignored.
	if filepath.IsAbs(state) {
		return filepath.Join(state, "karmada-agents")
	}
	dir, err := home()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, ".local", "state", "karmada-agents")
}

// commandName is that of the command that Supervisor returns.
const commandName = "keep-agent"

// Supervisor returns the command that runs the agent in a directory and starts it again when it ends.
func Supervisor(l localagent.Layout) ([]string, error) {
	self, err := host.Executable()
	if err != nil {
		return nil, err
	}
	karmada, err := host.FindKarmada()
	if err != nil {
		return nil, err
	}
	return []string{self, commandName, "--agent-dir=" + l.Dir, "--karmada=" + karmada}, nil
}

// NewCmd returns that command.
func NewCmd() *cobra.Command {
	var dir, karmada string
	cmd := &cobra.Command{
		Use:    commandName,
		Short:  "Keep the agent of a member cluster running",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// What this program has read to get here is not needed while it waits.
			memory.Trim()
			return localagent.Supervise(cmd.Context(), localagent.Layout{Dir: dir}, karmada)
		},
	}
	cmd.Flags().StringVar(&dir, "agent-dir", "", "Directory of the agent.")
	cmd.Flags().StringVar(&karmada, "karmada", "", "Path of the karmada binary.")
	return cmd
}
