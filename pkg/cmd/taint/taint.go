// Package taint implements karmadactl taint, and holds how the taints of a Cluster are changed, for cordon too.
package taint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const long = `
	Update the taints on one or more clusters.

	A taint keeps workloads whose placement does not tolerate it out of a cluster. It has a key, may have a value, and has
	an effect: NoSchedule, PreferNoSchedule or NoExecute. Taints are told apart by key and effect.`

const example = `
	# Keep workloads that do not tolerate dedicated=special-user out of cluster foo; one with that key and effect is replaced
	%[1]s taint clusters foo dedicated=special-user:NoSchedule --overwrite

	# Remove the taint with key dedicated and effect NoSchedule from cluster foo, if it exists
	%[1]s taint clusters foo dedicated:NoSchedule-

	# Remove all taints with key dedicated from clusters foo and bar
	%[1]s taint clusters foo bar dedicated-`

// NewCmd returns the taint command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{}
	cmd := &cobra.Command{
		Use:                   "taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short:                 "Update the taints on one or more clusters",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []cobra.Completion{"clusters"}, cobra.ShellCompDirectiveNoFileComp
			}
			return f.CompleteClusters(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.ToOptions(f, s, args)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddConnectionFlags(cmd.Flags())
	flags.AddFlags(cmd.Flags())
	return cmd, f.RegisterCompletions(cmd)
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	DryRun    bool
	Overwrite bool
}

// AddFlags adds the flags (spec: cli/commands.md 4.2).
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and say what would be done, without doing it.")
	fs.BoolVar(&f.Overwrite, "overwrite", false, "Allow taints that exist to be replaced; otherwise that is an error.")
}

// Options are a complete and valid request to change taints; only ToOptions makes them.
type Options struct {
	Clusters  []string
	Change    Change
	Overwrite bool
	DryRun    bool
	Client    client.Client
	genericiooptions.IOStreams
}

// ToOptions completes and validates.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, args []string) (*Options, error) {
	clusters, change, err := parse(args)
	if err != nil {
		return nil, err
	}
	cfg, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	api, err := registration.NewAPI(cfg)
	if err != nil {
		return nil, err
	}
	return &Options{Clusters: clusters, Change: change, Overwrite: f.Overwrite, DryRun: f.DryRun, Client: api.Client, IOStreams: s}, nil
}

// parse takes the arguments apart: what kind, which, and what to change (spec: cli/commands.md 4.2).
func parse(args []string) ([]string, Change, error) {
	var kind string
	var clusters, specs []string
	for i, arg := range args {
		isTaint := strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
		switch {
		case isTaint:
			specs = append(specs, arg)
		case len(specs) > 0:
			return nil, Change{}, fmt.Errorf("all resources must be specified before taint changes: %s", arg)
		case i == 0:
			kind = arg
		default:
			clusters = append(clusters, arg)
		}
	}
	switch {
	case kind != "" && kind != "cluster" && kind != "clusters":
		return nil, Change{}, fmt.Errorf("invalid resource type %s, only cluster types are supported", kind)
	case len(clusters) == 0:
		return nil, Change{}, errors.New("one or more clusters must be specified as clusters <name>")
	case len(specs) == 0:
		return nil, Change{}, errors.New("at least one taint update is required")
	}
	for _, name := range clusters {
		if err := registration.ValidateClusterName(name); err != nil {
			return nil, Change{}, err
		}
	}
	change, err := parseChange(specs)
	return clusters, change, err
}

// Run changes one cluster after the other. One that fails does not keep the others.
func (o *Options) Run(ctx context.Context) error {
	var errs []error
	for _, name := range o.Clusters {
		var done string
		_, err := Update(ctx, o.Client, name, o.DryRun, func(found []corev1.Taint) ([]corev1.Taint, error) {
			taints, operation, err := o.Change.apply(name, found, o.Overwrite)
			done = operation
			return taints, err
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, err := fmt.Fprintf(o.Out, "cluster/%s %s\n", name, done); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
