// Package start implements karmadactl start: it starts the control plane that init installed on this host.
package start

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

const long = `
	Start the control plane that init installed on this host, and wait until it is ready.

	A control plane that runs already is left alone.`

// NewCmd returns the start command.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	var dataDir string
	timeout := 2 * time.Minute
	cmd := &cobra.Command{
		Use:                   "start",
		Short:                 "Start the control plane of this host",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf("\n\t# Start the control plane\n\t%[1]s start", program)),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), s, program, dataDir, timeout)
		},
	}
	host.AddDataDir(cmd.Flags(), &dataDir)
	cmd.Flags().Var(host.Seconds{D: &timeout}, "wait-component-ready-timeout", "Seconds (or a duration) to wait until the components are ready. 0 waits for ever.")
	return cmd
}

func run(ctx context.Context, s genericiooptions.IOStreams, program, dataDir string, timeout time.Duration) error {
	p, err := host.Load(dataDir, program)
	if err != nil {
		return err
	}
	supervisor, err := host.Supervisor(p.Layout.Dir)
	if err != nil {
		return err
	}
	did, err := local.Start(ctx, local.Request{DataDir: p.Layout.Dir, Supervisor: supervisor, Timeout: timeout}, host.NewProgress(s.ErrOut, host.IsTerminal(s.ErrOut)))
	if err != nil {
		return fmt.Errorf("start the control plane in %s: %w", p.Layout.Dir, err)
	}
	if err := local.ServeClusters(ctx, p, timeout); err != nil {
		return fmt.Errorf("the control plane in %s runs, but %w; %s has the reason", p.Layout.Dir, err, p.Layout.LogFile())
	}
	text := "The control plane in %s is running.\n"
	if !did {
		text = "The control plane in %s was running already.\n"
	}
	_, err = io.WriteString(s.Out, fmt.Sprintf(text, p.Layout.Dir))
	return err
}
