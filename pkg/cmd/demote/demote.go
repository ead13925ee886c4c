// Package demote implements karmadactl demote, the undo of promote: the control plane lets go of objects, which go on in
// their clusters as they are. The work is done by package promotion; here flags become a request.
package demote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/promotion"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const long = `
	Let go of resources, which go on in their clusters as they are. It undoes "%[1]s promote", and can be used for everything
	that is propagated.

	The objects stay in all clusters that they are in. No pod is started anew: only the marks of the control plane are taken
	off. Then the template is removed from the control plane, and so is its policy if that was made for it alone.
	With --keep-template it stays, but no policy takes it, until it is promoted again. What is sent along with an object stays
	in the clusters, too; with --dependencies its templates are removed as well, if nothing else needs them.

	With --all or --selector, all objects of the TYPEs that are given, separated by commas, are let go of, or everything in the
	namespace without a TYPE.

	Everything is looked at before anything is changed. Nothing is removed from a cluster, wherever the command is
	interrupted; to repeat it does the rest.`

const example = `
	# Let go of deployment web of namespace shop
	%[1]s demote deployment/web -n shop

	# See what would be done
	%[1]s demote deployment/web -n shop --dry-run

	# Let go of it and of the ConfigMaps, Secrets and so on that it refers to
	%[1]s demote deployment/web -n shop -d

	# Keep it in the control plane
	%[1]s demote deployment/web -n shop --keep-template

	# Let go of everything in namespace shop
	%[1]s demote --all -n shop

	# Let go of the deployments and services with a label
	%[1]s demote deployments,services -l app=web -n shop`

// DefaultTimeout is how long the control plane may take for each part of it.
const DefaultTimeout = time.Minute

// interval is how long the control plane is left alone between two looks.
const interval = 200 * time.Millisecond

// NewCmd returns the demote command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{}
	cmd := &cobra.Command{
		Use:                   "demote (TYPE/NAME | [TYPE] (-l label | --all)) -n <NAME_SPACE>",
		Short:                 "Let go of resources, which go on in their clusters as they are",
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
	return cmd, f.RegisterCompletions(cmd)
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	All, Dependencies, DryRun, KeepTemplate bool
	Selector                                string
	Timeout                                 time.Duration
}

// AddFlags adds the flags. The command is ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.All, "all", false, "Let go of all objects of a TYPE, or of the namespace.")
	fs.BoolVarP(&f.Dependencies, "dependencies", "d", false, "Let go of what the object refers to as well, if nothing else needs it.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and say what would be done, without doing it.")
	fs.BoolVar(&f.KeepTemplate, "keep-template", false, "Leave the object in the control plane, where it goes nowhere.")
	fs.StringVarP(&f.Selector, "selector", "l", "", "Let go of all objects with these labels (e.g. -l key1=value1,key2=value2).")
	fs.DurationVar(&f.Timeout, "timeout", DefaultTimeout, "How long to wait for the control plane at each step, and at last for the clusters.")
}

func (f *Flags) many() bool { return f.All || f.Selector != "" }

// args is the Args of demote.
func (f *Flags) args(_ *cobra.Command, args []string) error {
	switch {
	case f.many() && (len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")):
		return errors.New("with --all or --selector at most a TYPE can be given, and no NAME")
	case f.many():
		return nil
	case len(args) == 0:
		return errors.New("say what to let go of: TYPE/NAME, or --all or --selector")
	}
	_, _, err := typeAndName(args)
	return err
}

// typeAndName reads TYPE/NAME, or the two apart as promote takes them.
func typeAndName(args []string) (kind, name string, err error) {
	kind, name, both := strings.Cut(args[0], "/")
	switch {
	case both && len(args) == 1:
	case !both && len(args) == 2:
		name = args[1]
	default:
		return "", "", errors.New("one object is let go of at a time: TYPE/NAME; for several there are --all and --selector")
	}
	if kind == "" || name == "" || strings.Contains(name, "/") || strings.Contains(kind, ",") {
		return "", "", fmt.Errorf("%q is not of the form TYPE/NAME", strings.Join(args, " "))
	}
	return kind, name, nil
}

// complete completes types and names of the control plane.
func (f *Flags) complete(c *factory.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 1 || len(args) == 1 && (f.many() || strings.Contains(args[0], "/")) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.ResourceTypeAndNameCompletionFunc(c)(cmd, args, typed)
	}
}

// validate checks everything that was typed.
func (f *Flags) validate() error {
	var errs []error
	if f.All && f.Selector != "" {
		errs = append(errs, errors.New("cannot set --all and --selector at the same time"))
	}
	if _, err := labels.Parse(f.Selector); err != nil {
		errs = append(errs, fmt.Errorf("--selector=%s: %w", f.Selector, err))
	}
	if f.Timeout <= 0 {
		errs = append(errs, errors.New("--timeout must be more than 0"))
	}
	return errors.Join(errs...)
}

// ToOptions completes and validates. It makes sure that what answers is a control plane.
func (f *Flags) ToOptions(ctx context.Context, c *factory.Factory, s genericiooptions.IOStreams, program string, args []string) (*Options, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
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
	if err := api.Client.List(ctx, &clusterv1alpha1.ClusterList{}, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	mapper, err := c.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme, err := promotion.NewScheme()
	if err != nil {
		return nil, err
	}
	controlPlane, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, err
	}
	o := &Options{
		Request: promotion.Farewell{Namespace: namespace, Dependencies: f.Dependencies, KeepTemplate: f.KeepTemplate},
		Many:    f.many(), Selector: selector, DryRun: f.DryRun, IOStreams: s,
	}
	switch {
	case !o.Many:
		if o.Request.Type, o.Request.Name, err = typeAndName(args); err != nil {
			return nil, err
		}
	case len(args) > 0:
		o.Request.Type = args[0]
	}
	o.Demoter = &promotion.Demoter{
		ControlPlane: controlPlane, Program: program, Note: o.note, Patience: f.Timeout, Interval: interval,
		Interpreter: interpreter.New(interpreter.Options{}),
		Kinds: func(context.Context) ([]*metav1.APIResourceList, error) {
			d, err := c.ToDiscoveryClient()
			if err != nil {
				return nil, err
			}
			d.Invalidate() // a kind that came a moment ago counts, too
			return discovery.ServerPreferredNamespacedResources(d)
		},
	}
	o.Elsewhere = elsewhere{factory: c, plane: api.Client, mapper: mapper, patience: f.Timeout}.find
	return o, nil
}
