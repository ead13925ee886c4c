// Package stop implements karmadactl stop: it stops the control plane of this host.
package stop

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

const long = `
	Stop the control plane of this host: requests in flight are answered, and everything that was acknowledged is on
	disk. Member clusters keep running what they run.`

// NewCmd returns the stop command.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	var dataDir string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:                   "stop",
		Short:                 "Stop the control plane of this host",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf("\n\t# Stop the control plane\n\t%[1]s stop", program)),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return run(ctx, s, program, dataDir)
		},
	}
	host.AddDataDir(cmd.Flags(), &dataDir)
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "How long to wait until it has stopped.")
	return cmd
}

func run(ctx context.Context, s genericiooptions.IOStreams, program, dataDir string) error {
	p, err := host.Load(dataDir, program)
	if err != nil {
		return err
	}
	lock, err := local.LockCommands(p.Layout)
	if err != nil {
		return err
	}
	did, err := local.Stop(ctx, p.Layout)
	if releaseErr := lock.Release(); err == nil {
		err = releaseErr
	}
	if err != nil {
		return fmt.Errorf("stop the control plane in %s: %w", p.Layout.Dir, err)
	}
	text := "The control plane in %s is stopped.\n"
	if !did {
		text = "The control plane in %s was not running.\n"
	}
	_, err = fmt.Fprintf(s.Out, text, p.Layout.Dir)
	return err
}
