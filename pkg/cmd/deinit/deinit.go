// Package deinit implements karmadactl deinit: it takes an installation on this host back.
package deinit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

const long = `
	Remove the control plane from this host.

	The control plane is stopped, and what init made is removed. Its data stays, and with it the certificate
	authorities: the next init in the same directory takes them up again. With --purge the data goes too, for good.
	Member clusters and what runs on them are left alone.`

const example = `
	# Remove the control plane, and keep its data
	%[1]s deinit

	# Remove it with its data, without being asked
	%[1]s deinit --purge --yes

	# See what would be removed
	%[1]s deinit --purge --dry-run`

// NewCmd returns the deinit command.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:                   "deinit",
		Short:                 "Remove the Karmada control plane from this host",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.ToOptions(s, program)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddFlags(cmd.Flags())
	return cmd
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	DataDir string
	Purge   bool
	Yes     bool
	DryRun  bool
	Timeout time.Duration
	Output  host.Output

	set *pflag.FlagSet
}

// AddFlags adds the flags. Those of the contract that address a host cluster are there to be refused (spec:
// cli/init.md 11).
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	host.AddDataDir(fs, &f.DataDir)
	fs.BoolVar(&f.Purge, "purge", false, "Remove the data and the certificate authorities too. They cannot be brought back.")
	fs.BoolVarP(&f.Yes, "yes", "y", false, "Do not ask.")
	fs.BoolVarP(&f.Yes, "force", "f", false, "Alias of --yes.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Print what would be removed, and remove nothing.")
	fs.DurationVar(&f.Timeout, "timeout", 2*time.Minute, "How long to wait until the control plane has stopped.")
	host.AddOutput(fs, &f.Output)
	host.AddRefused(fs, "kubeconfig", "context")
	fs.StringP("namespace", "n", "karmada-system", "")
	host.MarkRefused(fs, "namespace")
	fs.Bool("purge-namespace", false, "")
	host.MarkRefused(fs, "purge-namespace")
}

// Options are a complete and valid request to remove; only ToOptions makes them.
type Options struct {
	// Plane is nil when nothing is installed.
	Plane   *plane.Plane
	DataDir string
	Purge   bool
	Yes     bool
	DryRun  bool
	Timeout time.Duration
	Output  host.Output
	genericiooptions.IOStreams
}

// ToOptions completes and validates; it changes nothing.
func (f *Flags) ToOptions(s genericiooptions.IOStreams, program string) (*Options, error) {
	if err := errors.Join(host.RefuseHostCluster(f.set, "deinit removes what is installed on this host"), f.Output.Validate()); err != nil {
		return nil, err
	}
	o := &Options{DataDir: f.DataDir, Purge: f.Purge, Yes: f.Yes, DryRun: f.DryRun, Timeout: f.Timeout, Output: f.Output, IOStreams: s}
	p, err := host.LoadAny(f.DataDir, program)
	switch {
	case errors.Is(err, plane.ErrNotInstalled):
		return o, nil
	case err != nil:
		return nil, err
	}
	o.Plane = &p
	if !f.Yes && !f.DryRun && !host.IsTerminal(s.In) {
		return nil, fmt.Errorf("deinit asks before it removes anything, and there is no terminal to ask on: add --yes to remove the control plane in %s", p.Layout.Dir)
	}
	return o, nil
}

// Run removes the installation, or says that there is none.
func (o *Options) Run(ctx context.Context) error {
	if o.Plane == nil {
		return o.Output.Print(o.Out, local.Removal{Removed: []string{}}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "No control plane is installed in %s; nothing to do.\n", o.DataDir)
			return err
		})
	}
	if o.DryRun {
		paths, err := local.PreviewRemoval(*o.Plane, o.Purge)
		if err != nil {
			return err
		}
		return o.Output.Print(o.Out, local.Removal{Removed: paths}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Would stop the control plane and remove:\n  %s\n", strings.Join(paths, "\n  "))
			return err
		})
	}
	if !o.Yes {
		agreed, err := o.ask(ctx)
		if err != nil || !agreed {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r, err := local.Remove(ctx, *o.Plane, o.Purge)
	if err != nil {
		return fmt.Errorf("remove the control plane in %s: %w", o.Plane.Layout.Dir, err)
	}
	return o.Output.Print(o.Out, r, func(w io.Writer) error { return o.printResult(w, r) })
}

// ask wants a yes on the terminal. Ctrl-C and the end of input are a no.
func (o *Options) ask(ctx context.Context) (bool, error) {
	what := "Its data and certificate authorities stay"
	if o.Purge {
		what = "Its data and certificate authorities are removed for good"
	}
	if _, err := fmt.Fprintf(o.ErrOut, "Remove the control plane in %s? %s.\nPlease type (y)es or (n)o and then press enter: ", o.Plane.Layout.Dir, what); err != nil {
		return false, err
	}
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(o.In).ReadString('\n')
		if err != nil && line == "" {
			line = "no"
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, errors.New("interrupted; nothing was removed")
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return true, nil
		}
	}
	_, err := fmt.Fprintln(o.ErrOut, "Nothing was removed.")
	return false, err
}

func (o *Options) printResult(w io.Writer, r local.Removal) error {
	var b strings.Builder
	if r.Stopped {
		b.WriteString("The control plane is stopped.\n")
	}
	fmt.Fprintf(&b, "Removed %d files and directories of %s.\n", len(r.Removed), o.Plane.Layout.Dir)
	if !o.Purge {
		fmt.Fprintf(&b, "Its data stays; `deinit --purge` removes it, `init` takes it up again.\n")
	} else if len(r.Kept) > 0 {
		fmt.Fprintf(&b, "Left alone, since init did not make them: %s\n", strings.Join(r.Kept, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
