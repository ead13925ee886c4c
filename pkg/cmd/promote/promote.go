// Package promote implements karmadactl promote: what runs in a member cluster becomes managed by the control plane, as it
// is and where it is. The work is done by package promotion; here flags become a request.
package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

const long = `
	Promote resources from legacy clusters to Karmada control plane.

	The object stays in the cluster as it is and goes on running. The control plane gets a copy of it, and a policy that
	places it in that cluster, and from then on it is managed there: change it in the control plane, and it changes in the
	cluster. When it is deleted in the control plane, it stays in the cluster, unless the policy is changed first.

	Everything is looked at before anything is made. The command can be repeated: what an interrupted run began is taken up.`

const example = `
	# Promote deployment web of namespace shop from cluster member1
	%[1]s promote deployment web -n shop -C member1

	# Promote it with the ConfigMaps, Secrets and so on that it refers to
	%[1]s promote deployment web -n shop -C member1 -d

	# See what would be made, without making it
	%[1]s promote deployment web -n shop -C member1 -o yaml

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
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  typeAndName,
		ValidArgsFunction:     cobra.NoFileCompletions,
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
	return cmd, errors.Join(f.RegisterCompletions(cmd), cmd.RegisterFlagCompletionFunc("cluster", f.CompleteClusters))
}

// typeAndName is the Args of promote; the words are the contract's.
func typeAndName(_ *cobra.Command, args []string) error {
	if len(args) != 2 || strings.Contains(args[0], "/") || strings.Contains(args[1], "/") {
		return errors.New("incorrect command format, please use correct command format")
	}
	return nil
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Cluster                           string
	ClusterKubeconfig, ClusterContext string
	AutoCreatePolicy                  bool
	PolicyName                        string
	Dependencies, DryRun              bool
	Output                            string
}

// AddFlags adds the flags (spec: cli/commands.md 8.1).
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.AutoCreatePolicy, "auto-create-policy", true, "Make a policy that places the object in its cluster.")
	fs.StringVarP(&f.Cluster, "cluster", "C", "", "Name of the cluster that the object is in. Required.")
	fs.StringVar(&f.ClusterContext, "cluster-context", "", "Name of the context in the kubeconfig of the cluster. Default is the one called like the cluster, or else its current one.")
	fs.StringVar(&f.ClusterKubeconfig, "cluster-kubeconfig", "", "Path of a kubeconfig of the cluster. Default is to reach it through the control plane.")
	fs.BoolVarP(&f.Dependencies, "dependencies", "d", false, "Promote what the object refers to as well.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and say what would be made, without making it.")
	fs.StringVarP(&f.Output, "output", "o", "", "Print what would be made, as json or yaml, without making it.")
	fs.StringVar(&f.PolicyName, "policy-name", "", "Name of the policy that is made. Default is one that is derived from the object.")
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
	member, err := f.member(ctx, c, plane)
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
	o := &Options{
		Request: promotion.Request{
			Cluster: f.Cluster, Type: args[0], Namespace: namespace, Name: args[1],
			Dependencies: f.Dependencies, Policy: f.AutoCreatePolicy, PolicyName: f.PolicyName,
		},
		DryRun: f.DryRun, Output: f.Output, IOStreams: s,
	}
	o.Promoter = &promotion.Promoter{
		Member: member, ControlPlane: controlPlane, Program: program, Note: o.note,
		Interpreter: interpreter.New(interpreter.Options{}),
	}
	return o, nil
}

// A Promoter is what promote needs done.
type Promoter interface {
	Read(ctx context.Context, r promotion.Request) (*promotion.Plan, error)
	Check(ctx context.Context, plan *promotion.Plan) error
	Make(ctx context.Context, plan *promotion.Plan, made func(client.Object)) error
}

// Options are a complete and valid request to promote; only ToOptions makes them.
type Options struct {
	Request  promotion.Request
	Promoter Promoter
	DryRun   bool
	Output   string
	genericiooptions.IOStreams
}

// note tells what the user should know. Nothing depends on whether it can be written.
func (o *Options) note(text string) { _, _ = fmt.Fprintln(o.ErrOut, "note: "+text) }

// Run promotes the object, or says how that would be.
func (o *Options) Run(ctx context.Context) error {
	plan, err := o.Promoter.Read(ctx, o.Request)
	if err != nil {
		return err
	}
	if o.Output != "" {
		return printPlan(o.Out, plan, o.Output)
	}
	// Scripts match the lines below (spec: cli/commands.md 8.1).
	if plan.Interpreted {
		if _, err := fmt.Fprintln(o.Out, "use default interpreter"); err != nil {
			return err
		}
	}
	if err := o.Promoter.Check(ctx, plan); err != nil {
		return err
	}
	what := fmt.Sprintf("Resource %q(%s)", plan.Template.Resource.String(), promotion.Path(plan.Template.Object))
	if plan.IsDone() {
		_, err := fmt.Fprintf(o.Out, "%s is promoted already\n", what)
		return err
	}
	if o.DryRun {
		return o.preview(plan)
	}
	var printing error
	made := func(c client.Object) {
		_, err := fmt.Fprintln(o.Out, line(plan, c, "created successfully"))
		printing = errors.Join(printing, err)
	}
	if err := o.Promoter.Make(ctx, plan, made); err != nil {
		return fmt.Errorf("promote %s %s: %w; run the command again to go on", o.Request.Type, o.Request.Name, err)
	}
	_, err = fmt.Fprintf(o.Out, "%s is promoted successfully\n", what)
	return errors.Join(printing, err)
}

// preview says what would be made.
func (o *Options) preview(plan *promotion.Plan) error {
	var all []client.Object
	for _, i := range append(slices.Clone(plan.Dependencies), plan.Template) {
		if !i.Exists {
			all = append(all, i.Object)
		}
	}
	if plan.Policy != nil && !plan.Policy.Exists {
		all = append(all, plan.Policy.Object)
	}
	for _, c := range all {
		if _, err := fmt.Fprintln(o.Out, line(plan, c, "created successfully (dry run)")); err != nil {
			return err
		}
	}
	return nil
}

// line tells what happened to an object of a plan, in the words of the contract.
func line(plan *promotion.Plan, o client.Object, what string) string {
	if plan.Policy != nil && o == plan.Policy.Object {
		if o.GetNamespace() == "" {
			return fmt.Sprintf("%s %s is %s", plan.Policy.Kind(), o.GetName(), what)
		}
		return fmt.Sprintf("%s (%s) is %s", plan.Policy.Kind(), promotion.Path(o), what)
	}
	for _, d := range plan.Dependencies {
		if o == d.Object {
			return fmt.Sprintf("Dependency resource %q(%s) is %s", d.Resource.String(), promotion.Path(o), strings.Replace(what, "created", "promoted", 1))
		}
	}
	return fmt.Sprintf("ResourceTemplate (%s) is %s", promotion.Path(o), what)
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
