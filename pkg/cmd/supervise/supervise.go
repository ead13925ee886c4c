// Package supervise implements the command that init and start run in the background: the parent of the control
// plane's process. It is not for people.
package supervise

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
	"github.com/karmadactl/karmadactl/pkg/util/memory"
)

// NewCmd returns the supervise command.
func NewCmd() *cobra.Command {
	var dataDir, karmada string
	cmd := &cobra.Command{
		Use:    host.SuperviseCommand,
		Short:  "Keep the control plane of this host running",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := plane.Load(dataDir)
			if err != nil {
				return err
			}
			// What this program has read to get here is not needed while it waits.
			memory.Trim()
			l := plane.NewLayout(dataDir, cfg.PKI)
			if err := local.Supervise(cmd.Context(), l, []string{karmada, "plane", "--data-dir=" + dataDir}); err != nil {
				return fmt.Errorf("supervise the control plane: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "Data directory of the control plane.")
	cmd.Flags().StringVar(&karmada, "karmada", "", "Path of the karmada binary.")
	return cmd
}
