// Package status implements karmadactl status: what the control plane of this host is doing.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

// Exit codes, for scripts.
const (
	exitUnhealthy    = 1
	exitNotInstalled = 2
)

const pollInterval = 100 * time.Millisecond

const long = `
	Show the control plane of this host: its components and their health, versions, certificates, the size of its
	data, and the address of its API server.

	The exit code is 0 when all of it is healthy, 1 when something is not, and 2 when nothing is installed.`

const example = `
	# Show the control plane
	%[1]s status

	# Wait until it is healthy, for a minute at most
	%[1]s status --wait --timeout=1m

	# For programs
	%[1]s status -o json`

// NewCmd returns the status command.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	o := &options{program: program, IOStreams: s}
	cmd := &cobra.Command{
		Use:                   "status",
		Short:                 "Show the control plane of this host",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.output.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	host.AddDataDir(fs, &o.dataDir)
	fs.BoolVar(&o.wait, "wait", false, "Wait until the control plane is healthy.")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Minute, "How long --wait waits. 0 waits for ever.")
	host.AddOutput(fs, &o.output)
	return cmd
}

type options struct {
	program string
	dataDir string
	wait    bool
	timeout time.Duration
	output  host.Output
	genericiooptions.IOStreams
}

func (o *options) run(ctx context.Context) error {
	p, err := host.Load(o.dataDir, o.program)
	if errors.Is(err, plane.ErrNotInstalled) {
		missing := local.Status{DataDir: o.dataDir, Components: []local.ComponentStatus{}}
		if err := o.output.Print(o.Out, missing, func(io.Writer) error { return nil }); err != nil {
			return err
		}
		return exec.CodeExitError{Err: err, Code: exitNotInstalled}
	}
	if err != nil {
		return err
	}
	status, err := o.get(ctx, p)
	if err != nil {
		return fmt.Errorf("look at the control plane in %s: %w", p.Layout.Dir, err)
	}
	if err := o.output.Print(o.Out, status, func(w io.Writer) error { return print(w, status) }); err != nil {
		return err
	}
	if !status.Healthy {
		return exec.CodeExitError{Err: errors.New(diagnose(status, o.program)), Code: exitUnhealthy}
	}
	return nil
}

// get asks once, or until everything is healthy.
func (o *options) get(ctx context.Context, p plane.Plane) (local.Status, error) {
	status, err := local.GetStatus(ctx, p)
	if err != nil || !o.wait || status.Healthy {
		return status, err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !status.Healthy {
		select {
		case <-ctx.Done():
			return status, nil
		case <-ticker.C:
		}
		latest, err := local.GetStatus(ctx, p)
		if err != nil {
			return status, err
		}
		if ctx.Err() == nil {
			status = latest
		}
	}
	return status, nil
}

// diagnose says in one line what is wrong and what to do.
func diagnose(s local.Status, program string) string {
	switch {
	case s.Supervisor != nil && !s.Supervisor.NextStart.IsZero():
		return fmt.Sprintf("the control plane does not stay up (%d restarts): %s; it is started again at %s, or run `%s stop`; its log is %s",
			s.Supervisor.Restarts, s.Supervisor.LastError, s.Supervisor.NextStart.Format(time.TimeOnly), program, s.Log)
	case s.PID == 0:
		return fmt.Sprintf("the control plane is not running: run `%s start --data-dir=%s`", program, s.DataDir)
	}
	for _, c := range s.Components {
		if !c.Healthy {
			return fmt.Sprintf("component %s is not healthy: %s; the log is %s", c.Name, or(c.Message, string(c.Phase)), s.Log)
		}
	}
	return "the control plane is not healthy; the log is " + s.Log
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func print(w io.Writer, s local.Status) error {
	var b strings.Builder
	state := "stopped"
	if s.PID != 0 {
		state = fmt.Sprintf("running since %s (process %d)", s.Started.Format(time.DateTime), s.PID)
	}
	fmt.Fprintf(&b, "control plane  %s\n", state)
	fmt.Fprintf(&b, "API server     %s\n", s.Server)
	fmt.Fprintf(&b, "version        %s, Kubernetes %s\n", or(s.Version, "unknown while stopped"), s.KubernetesVersion)
	fmt.Fprintf(&b, "data           %s in %s\n", host.Size(s.DataBytes), s.DataDir)
	fmt.Fprintf(&b, "certificates   %d days left (%s ends first)\n", s.Certificates.DaysLeft, or(s.Certificates.NextToEnd, "none"))
	for _, broken := range s.Certificates.Broken {
		fmt.Fprintf(&b, "               %s\n", broken)
	}
	if s.Supervisor != nil {
		fmt.Fprintf(&b, "supervisor     process %d, %d restarts\n", s.Supervisor.PID, s.Supervisor.Restarts)
		if s.Supervisor.LastError != "" {
			fmt.Fprintf(&b, "               last at %s: %s\n", s.Supervisor.LastExit.Format(time.DateTime), s.Supervisor.LastError)
		}
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tHEALTHY\tPHASE\tADDRESS\tMESSAGE")
	for _, c := range s.Components {
		fmt.Fprintf(table, "%s\t%t\t%s\t%s\t%s\n", c.Name, c.Healthy, c.Phase, c.Address, c.Message)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
