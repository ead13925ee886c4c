// Package promote implements karmadactl promote: what runs in a member cluster becomes managed by the control plane, as it
// is and where it is. The work is done by package promotion; here flags become a request.
package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

const long = `
	Promote resources from legacy clusters to Karmada control plane.

	The object stays in the cluster as it is and goes on running. The control plane gets a copy of it, and a policy that
	places it in that cluster, and from then on it is managed there: change it in the control plane, and it changes in the
	cluster. When it is deleted in the control plane, it stays in the cluster, unless the policy is changed first.

	Everything is looked at before anything is made, also what the cluster would make of what it is sent: an object whose
	pods would be started anew by that is refused. --dry-run shows what would be made, and what would change in the cluster.
	The command can be repeated: what an interrupted run began is taken up. %[1]s demote undoes it.

	With --all or --selector, all objects of the TYPEs that are given are promoted, separated by commas, or everything in
	the namespace without a TYPE. If one cannot be promoted then none is, unless --keep-going says so. What a cluster makes
	by itself, and what belongs to other objects, is left out.`

const example = `
	# Promote deployment web of namespace shop from cluster member1
	%[1]s promote deployment web -n shop -C member1

	# Promote it with the ConfigMaps, Secrets and so on that it refers to
	%[1]s promote deployment web -n shop -C member1 -d

	# See what would be made, without making it
	%[1]s promote deployment web -n shop -C member1 -o yaml

	# See what would change in the cluster
	%[1]s promote deployment web -n shop -C member1 --dry-run

	# Promote everything in namespace shop
	%[1]s promote --all -n shop -C member1

	# Promote the deployments and services with a label
	%[1]s promote deployments,services -l app=web -n shop -C member1

	# Promote a custom resource, after the definition of its kind
	%[1]s promote crd gadgets.example.com -C member1
	%[1]s promote gadget one -n shop -C member1

	# Promote it from a cluster that the control plane cannot be asked about, by a kubeconfig of that
	%[1]s promote deployment web -n shop -C member1 --cluster-kubeconfig=member1.config

	# Leave it to a policy that is there already where it goes
	%[1]s promote deployment web -n shop -C member1 --auto-create-policy=false`

// NewCmd returns the promote command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{}
	cmd := &cobra.Command{
		Use:                   "promote <RESOURCE_TYPE> <RESOURCE_NAME> -n <NAME_SPACE> -C <CLUSTER_NAME>",
		Short:                 "Promote resources from legacy clusters to Karmada control plane",
		Long:                  templates.LongDesc(fmt.Sprintf(long, program)),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  flags.args,
		ValidArgsFunction:     flags.complete(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			o, err := flags.ToOptions(cmd.Context(), f, s, program, args)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddConnectionFlags(cmd.Flags())
	f.AddNamespaceFlag(cmd.Flags())
	flags.AddFlags(cmd.Flags())
	fleet.AddPatienceFlag(cmd.Flags(), &flags.Patience)
	return cmd, errors.Join(f.RegisterCompletions(cmd), cmd.RegisterFlagCompletionFunc("cluster", f.CompleteClusters))
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Cluster                           string
	Patience                          time.Duration // with the cluster, for each request; 0 is for ever
	ClusterKubeconfig, ClusterContext string
	AutoCreatePolicy                  bool
	PolicyName                        string
	Dependencies, DryRun              bool
	Output                            string

	All, AllowRestart, KeepGoing bool
	Selector                     string
}

// many says whether it is not one object that is promoted.
func (f *Flags) many() bool { return f.All || f.Selector != "" }

// args is the Args of promote; the words for one object are the contract's.
func (f *Flags) args(_ *cobra.Command, args []string) error {
	slash := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") })
	switch {
	case f.many() && (len(args) > 1 || slash):
		return errors.New("with --all or --selector at most a TYPE can be given, and no NAME")
	case !f.many() && (len(args) != 2 || slash):
		return errors.New("incorrect command format, please use correct command format")
	}
	return nil
}

// complete completes types and names of the cluster that is given (spec: cli/commands.md 2.5).
func (f *Flags) complete(c *factory.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(validation.NameIsDNSSubdomain(f.Cluster, false)) > 0 || len(args) > 1 || len(args) == 1 && f.many() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		member := c.Through(cmd.Context(), factory.ThroughOptions{Cluster: f.Cluster})
		return completion.ResourceTypeAndNameCompletionFunc(member)(cmd, args, typed)
	}
}

// AddFlags adds the flags (spec: cli/commands.md 8.1). --all, --selector, --keep-going and --allow-restart are ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.All, "all", false, "Promote all objects of a TYPE, or of the namespace.")
	fs.BoolVar(&f.AllowRestart, "allow-restart", false, "Promote objects also if their pods are started anew, or stopped, by that.")
	fs.BoolVar(&f.AutoCreatePolicy, "auto-create-policy", true, "Make a policy that places the object in its cluster.")
	fs.StringVarP(&f.Cluster, "cluster", "C", "", "Name of the cluster that the object is in. Required.")
	fs.StringVar(&f.ClusterContext, "cluster-context", "", "Name of the context in the kubeconfig of the cluster. Default is the one called like the cluster, or else its current one.")
	fs.StringVar(&f.ClusterKubeconfig, "cluster-kubeconfig", "", "Path of a kubeconfig of the cluster. Default is to reach it through the control plane.")
	fs.BoolVarP(&f.Dependencies, "dependencies", "d", false, "Promote what the object refers to as well.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and say what would be made, without making it.")
	fs.BoolVar(&f.KeepGoing, "keep-going", false, "With --all or --selector: promote what can be promoted, also if something cannot. That is an error still.")
	fs.StringVarP(&f.Output, "output", "o", "", "Print what would be made, as json or yaml, without making it.")
	fs.StringVar(&f.PolicyName, "policy-name", "", "Name of the policy that is made. Default is one that is derived from the object.")
	fs.StringVarP(&f.Selector, "selector", "l", "", "Promote all objects with these labels (e.g. -l key1=value1,key2=value2).")
}

// validate checks everything that was typed.
func (f *Flags) validate() error {
	var errs []error
	if f.Cluster == "" {
		errs = append(errs, errors.New("the cluster cannot be empty"))
	}
	if !slices.Contains([]string{"", "json", "yaml"}, f.Output) {
		errs = append(errs, errors.New("invalid output format: supported formats are json and yaml"))
	}
	if f.ClusterContext != "" && f.ClusterKubeconfig == "" {
		errs = append(errs, errors.New("--cluster-context needs --cluster-kubeconfig: without one the cluster is reached through the control plane"))
	}
	if f.PolicyName != "" {
		if problems := validation.NameIsDNSSubdomain(f.PolicyName, false); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--policy-name=%s: %s", f.PolicyName, strings.Join(problems, "; ")))
		}
	}
	if f.many() && f.PolicyName != "" {
		errs = append(errs, errors.New("--policy-name is for one object: with --all or --selector each gets a policy of its own"))
	}
	if f.All && f.Selector != "" {
		errs = append(errs, errors.New("cannot set --all and --selector at the same time"))
	}
	if f.KeepGoing && !f.many() {
		errs = append(errs, errors.New("--keep-going is for --all and --selector"))
	}
	if _, err := labels.Parse(f.Selector); err != nil {
		errs = append(errs, fmt.Errorf("--selector=%s: %w", f.Selector, err))
	}
	return errors.Join(errs...)
}

// ToOptions completes and validates. It looks at the Cluster, which says how the member is reached.
func (f *Flags) ToOptions(ctx context.Context, c *factory.Factory, s genericiooptions.IOStreams, program string, args []string) (*Options, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	plane, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	from, err := f.member(ctx, c, plane)
	if err != nil {
		return nil, err
	}
	mapper, err := c.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	controlPlane, err := newClient(plane, mapper)
	if err != nil {
		return nil, err
	}
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, err
	}
	o := &Options{
		Request: promotion.Request{
			Cluster: f.Cluster, Namespace: namespace,
			Dependencies: f.Dependencies, Policy: f.AutoCreatePolicy, PolicyName: f.PolicyName,
		},
		Many: f.many(), Selector: selector, KeepGoing: f.KeepGoing, DryRun: f.DryRun, Output: f.Output, IOStreams: s,
	}
	if len(args) > 0 {
		o.Request.Type = args[0]
	}
	if len(args) > 1 {
		o.Request.Name = args[1]
	}
	o.Promoter = &promotion.Promoter{
		Member: from.client, Kinds: from.kinds, Cluster: from.cluster, ControlPlane: controlPlane, Program: program, Note: o.note,
		AllowRestart: f.AllowRestart, Interpreter: interpreter.New(interpreter.Options{}),
	}
	return o, nil
}

// A Promoter is what promote needs done.
type Promoter interface {
	Read(ctx context.Context, r promotion.Request) (*promotion.Plan, error)
	ReadAll(ctx context.Context, r promotion.Request, having labels.Selector) ([]*promotion.Plan, error)
	Check(ctx context.Context, plan *promotion.Plan) error
	Make(ctx context.Context, plan *promotion.Plan, made func(client.Object)) error
}

// newClient returns a client for objects of any kind that a mapper knows.
func newClient(cfg *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
	scheme, err := promotion.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return c, nil
}
