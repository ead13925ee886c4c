// Package playground implements karmadactl playground: complete local member clusters with simulated nodes.
package playground

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

const long = `
	Run member clusters on this host, to try things out.

	Each member is a complete Kubernetes cluster in one process, with etcd, API server, controllers and scheduler. Its
	nodes are simulated: Deployments, StatefulSets and DaemonSets become ready and Jobs complete, but no container
	runs. Images whose name starts with fake/ never become ready.`

const example = `
	# Start three members with four nodes each, in the directory playground
	%[1]s playground up --members=3 --nodes=4 --dir=playground

	# Use one of them
	%[1]s get nodes --kubeconfig=playground/member1.config

	# Stop them, or remove them with their data
	%[1]s playground down --dir=playground
	%[1]s playground down --dir=playground --purge`

// NewCmd returns the playground command.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "playground",
		Short:                 "Run local member clusters with simulated nodes",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q: it knows up, list and down", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newUp(s), newList(s), newDown(s))
	return cmd
}

// options are what the sub-commands have in common.
type options struct {
	dir     string
	timeout time.Duration
	output  host.Output
	genericiooptions.IOStreams
}

func (o *options) command(use, short string, run func(ctx context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   use,
		Short:                 short,
		Long:                  templates.LongDesc(short + "."),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.output.Validate(); err != nil {
				return err
			}
			ctx := cmd.Context()
			if o.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, o.timeout)
				defer cancel()
			}
			return run(ctx)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", filepath.Join(host.DefaultDataDir(), "playground"), "Directory of the playground.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long the command may take. 0 is for ever.")
	host.AddOutput(cmd.Flags(), &o.output)
	return cmd
}

func newUp(s genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: s}
	members, nodes := 3, 4
	cmd := o.command("up", "Start local member clusters, or more of them", func(ctx context.Context) error {
		if nodes < 0 || nodes > 5000 {
			return fmt.Errorf("--nodes=%d: want 0 to 5000", nodes)
		}
		karmada, err := host.FindKarmada()
		if err != nil {
			return err
		}
		p := local.Playground{Dir: o.dir, Karmada: karmada}
		all, err := p.Up(ctx, members, nodes, func(m local.MemberStatus) {
			took := "was running"
			if m.StartedIn > 0 {
				took = fmt.Sprintf("ready in %.2fs", m.StartedIn.Seconds())
			}
			fmt.Fprintf(o.ErrOut, "%s %s\n", m.Name, took)
		})
		if err != nil {
			return fmt.Errorf("start the playground in %s: %w", o.dir, err)
		}
		return o.output.Print(o.Out, all, func(w io.Writer) error {
			if err := printTable(w, all); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "\nkubeconfig of all: %s\n", p.AllKubeconfig())
			return err
		})
	})
	cmd.Flags().IntVar(&members, "members", members, "How many members there shall be. Members beyond that number are left alone.")
	cmd.Flags().IntVar(&nodes, "nodes", nodes, "How many simulated nodes each member shall have at least.")
	return cmd
}

func newList(s genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: s}
	return o.command("list", "List the local member clusters", func(ctx context.Context) error {
		all, err := local.Playground{Dir: o.dir}.List(ctx)
		if err != nil {
			return fmt.Errorf("list the playground in %s: %w", o.dir, err)
		}
		return o.output.Print(o.Out, all, func(w io.Writer) error {
			if len(all) == 0 {
				_, err := fmt.Fprintf(o.ErrOut, "No member clusters in %s.\n", o.dir)
				return err
			}
			return printTable(w, all)
		})
	})
}

func newDown(s genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: s}
	purge := false
	cmd := o.command("down", "Stop the local member clusters", func(ctx context.Context) error {
		stopped, err := local.Playground{Dir: o.dir}.Down(ctx, purge)
		if err != nil {
			return fmt.Errorf("stop the playground in %s: %w", o.dir, err)
		}
		return o.output.Print(o.Out, map[string][]string{"stopped": stopped}, func(w io.Writer) error {
			text := "No member cluster was running."
			if len(stopped) > 0 {
				text = "Stopped " + strings.Join(stopped, ", ") + "."
			}
			if purge {
				text += " Removed their data."
			}
			_, err := fmt.Fprintln(w, text)
			return err
		})
	})
	cmd.Flags().BoolVar(&purge, "purge", purge, "Remove the members with their data, too.")
	return cmd
}

func printTable(w io.Writer, members []local.MemberStatus) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tREADY\tPROCESS\tNODES\tSERVER\tKUBECONFIG\tMESSAGE")
	for _, m := range members {
		pid := "-"
		if m.Running {
			pid = fmt.Sprint(m.PID)
		}
		fmt.Fprintf(table, "%s\t%t\t%s\t%d\t%s\t%s\t%s\n", m.Name, m.Ready, pid, m.Nodes, m.Server, m.Kubeconfig, m.Message)
	}
	return table.Flush()
}
