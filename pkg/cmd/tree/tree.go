// Package tree implements karmadactl tree: what follows from an object of the control
// plane, down to the pods in member clusters. node.go says how objects are, member.go
// looks into one member, grow.go into all of them at once, and draw.go draws.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

const long = `
	Show what follows from an object of the control plane: its binding, the Works that carry it to member clusters, the
	object in each of them, and what belongs to that there, down to the pods, with how each of them is.

	Member clusters are asked through the control plane, all at once. One that does not answer in time is named in the tree
	and on standard error, and the exit code is 1; the others are shown.`

const example = `
	# Show deployment web of namespace shop, in all clusters
	%[1]s tree deployment/web -n shop

	# Show it in one cluster
	%[1]s tree deployment/web -n shop --cluster=member1

	# For programs
	%[1]s tree deployment/web -n shop -o json`

// NewCmd returns the tree command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{Fleet: fleet.Fleet{Factory: f}}
	cmd := &cobra.Command{
		Use:                   "tree (TYPE/NAME | TYPE NAME) [-C CLUSTER]",
		Short:                 "Show what follows from an object, down to the pods in member clusters",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  explanation.OneObject,
		ValidArgsFunction:     completion.ResourceTypeAndNameCompletionFunc(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.ReadWithin(cmd.Context())
			o, err := flags.ToOptions(s, program, args)
			if err == nil {
				err = o.Run(cmd.Context())
			}
			return kubectl.OrInterrupted(cmd.Context(), err)
		},
	}
	f.AddConnectionFlags(cmd.Flags())
	f.AddNamespaceFlag(cmd.Flags())
	flags.AddFlags(cmd.Flags())
	flags.Fleet.AddPatienceFlag(cmd)
	return cmd, errors.Join(f.RegisterCompletions(cmd), cmd.RegisterFlagCompletionFunc("cluster", f.CompleteClusters))
}

// Flags hold what the user typed, and the way to members.
type Flags struct {
	Cluster string
	Output  host.Output
	Fleet   fleet.Fleet
}

// AddFlags adds the flags, but for how long members may take.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Cluster, "cluster", "C", "", "Name of the one member cluster to show. Default is all.")
	host.AddOutput(fs, &f.Output)
}

// ToOptions completes and validates. It reads the object.
func (f *Flags) ToOptions(s genericiooptions.IOStreams, program string, args []string) (*Options, error) {
	if err := f.Output.Validate(); err != nil {
		return nil, err
	}
	object, err := explanation.ReadObject(f.Fleet.Factory, args)
	if err != nil {
		return nil, err
	}
	mapper, err := f.Fleet.Factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return &Options{
		Object: object.Unstructured, Cluster: f.Cluster, Output: f.Output, IOStreams: s, Style: explanation.StyleOf(s.Out),
		Gardener: &Gardener{Reader: object.Client, Mapper: mapper, Patience: f.Fleet.Patience, Program: program, Member: f.member},
	}, nil
}

// member returns the way to a member through the control plane.
func (f *Flags) member(ctx context.Context, cluster string) (dynamic.Interface, error) {
	return f.Fleet.Through(ctx, cluster).DynamicClient()
}

// A Grower is what tree needs done.
type Grower interface {
	Grow(ctx context.Context, template *unstructured.Unstructured, cluster string) (*Node, fleet.Errors, error)
}

// Options are a complete and valid question; only ToOptions makes them.
type Options struct {
	Object   *unstructured.Unstructured
	Cluster  string
	Gardener Grower
	Output   host.Output
	Style    explanation.Style
	genericiooptions.IOStreams
}

// Run shows the tree. A member that is missing from it is an error, after it is shown.
func (o *Options) Run(ctx context.Context) error {
	root, silent, err := o.Gardener.Grow(ctx, o.Object, o.Cluster)
	if err != nil {
		return err
	}
	if err := o.Output.Print(o.Out, root, func(w io.Writer) error { return Draw(w, root, o.Style) }); err != nil {
		return err
	}
	return silent.Err()
}
