// Package join implements karmadactl join: a cluster becomes a member in push mode. The work is done by package
// registration; here flags become a request.
package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/templates"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const long = `
	Register a cluster to Karmada control plane with Push mode.

	The control plane reaches the API server of the cluster by itself, at the address that the kubeconfig has, with a
	ServiceAccount that this command makes there. The kubeconfig itself is not kept.

	The command can be repeated: what is right stays, what is missing or stale is made anew, credentials among it, and
	what an interrupted run began is taken up. It returns once the cluster is ready and its capacity is known.`

const example = `
	# Register the cluster of the current context of member1.config as member1
	%[1]s join member1 --cluster-kubeconfig=member1.config

	# Register the cluster of another context, and say where it is
	%[1]s join member1 --cluster-kubeconfig=all.config --cluster-context=member1 --cluster-region=eu --labels=stage=test

	# See what would be made on both sides
	%[1]s join member1 --cluster-kubeconfig=member1.config --dry-run`

// DefaultWait is how long join waits until the cluster is ready.
const DefaultWait = time.Minute

// NewCmd returns the join command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{}
	cmd := &cobra.Command{
		Use:                   "join CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		Short:                 "Register a cluster to Karmada control plane with Push mode",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  factory.OneClusterName,
		ValidArgsFunction:     cobra.NoFileCompletions, // the name is a new one
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			o, err := flags.ToOptions(f, s, args[0])
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
	Kubeconfig, Context string
	Namespace           string
	Provider, Region    string
	Zones               []string
	Labels              map[string]string

	As       string
	AsGroups []string
	AsUID    string

	DryRun bool
	Wait   time.Duration
	Output string

	set *pflag.FlagSet
}

// AddFlags adds the flags (spec: cli/commands.md 3.1); --labels, --wait and -o are ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Kubeconfig, "cluster-kubeconfig", "", "Path of the kubeconfig of the cluster to register. Required.")
	fs.StringVar(&f.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster. Default is its current one.")
	fs.StringVar(&f.Namespace, "cluster-namespace", names.ClusterNamespace, "Namespace, on both sides, of the credentials of the cluster. A cluster that is joined keeps the one that it has.")
	fs.StringVar(&f.Provider, "cluster-provider", "", "Provider of the cluster.")
	fs.StringVar(&f.Region, "cluster-region", "", "Region of the cluster.")
	fs.StringSliceVar(&f.Zones, "cluster-zones", nil, "Zones of the cluster.")
	fs.StringToStringVar(&f.Labels, "labels", nil, "Labels that the Cluster gets, beside those that it has (key=value, several by commas).")
	fs.StringVar(&f.As, "karmada-as", "", "User to act as at the control plane.")
	fs.StringArrayVar(&f.AsGroups, "karmada-as-group", nil, "Group to act as at the control plane; can be repeated.")
	fs.StringVar(&f.AsUID, "karmada-as-uid", "", "UID to act as at the control plane.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and print what would be made on both sides, without making anything.")
	fs.DurationVar(&f.Wait, "wait", DefaultWait, "How long to wait, once the cluster is joined, until it is ready with its capacity known. 0 does not wait.")
	fs.StringVarP(&f.Output, "output", "o", "", "Output format: json, yaml or name. Default is text for people.")
}

// ToOptions completes and validates: every mistake that can be seen without asking a server is reported here.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, name string) (*Options, error) {
	if err := f.validate(name); err != nil {
		return nil, err
	}
	plane, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	plane.Impersonate = rest.ImpersonationConfig{UserName: f.As, Groups: f.AsGroups, UID: f.AsUID}
	source := c.Member(factory.MemberOptions{
		Name: name, Kubeconfig: f.Kubeconfig, Context: f.Context,
		KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
	})
	cfg, err := source.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	member, err := registration.NewMember(cfg)
	if err != nil {
		return nil, fmt.Errorf("use %s: %w", source.Source(), err)
	}
	api, err := registration.NewAPI(plane)
	if err != nil {
		return nil, err
	}
	o := &Options{
		Request: registration.Push{
			Name: name, Namespace: f.Namespace, NamespaceGiven: f.set.Changed("cluster-namespace"),
			Provider: f.Provider, Region: f.Region, Zones: f.Zones, Labels: f.Labels, DryRun: f.DryRun,
		},
		Notes: f.notes(plane, cfg, member.Endpoint),
		Wait:  f.Wait, Output: f.Output, IOStreams: s,
	}
	o.Registrar = &registration.Joiner{ControlPlane: api, Member: member, Progress: o.say}
	o.WaitReady = func(ctx context.Context) (*clusterv1alpha1.Cluster, error) {
		return registration.WaitReady(ctx, api.Client, name, f.Wait, o.say)
	}
	return o, nil
}

// validate checks everything that was typed.
func (f *Flags) validate(name string) error {
	errs := []error{registration.ValidateClusterName(name)}
	if f.Kubeconfig == "" {
		errs = append(errs, errors.New("--cluster-kubeconfig is required: it says which cluster is to be joined"))
	}
	if problems := validation.IsDNS1123Label(f.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--cluster-namespace=%s: %s", f.Namespace, strings.Join(problems, "; ")))
	} else if strings.HasPrefix(f.Namespace, names.ExecutionNamespacePrefix) {
		errs = append(errs, fmt.Errorf("--cluster-namespace=%s: such a namespace holds what is propagated to a cluster and goes with it, choose another", f.Namespace))
	}
	for flag, values := range map[string][]string{"--cluster-provider": {f.Provider}, "--cluster-region": {f.Region}, "--cluster-zones": f.Zones} {
		for _, value := range values {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				errs = append(errs, fmt.Errorf("%s=%s: %s", flag, value, strings.Join(problems, "; ")))
			}
		}
	}
	if invalid := metav1validation.ValidateLabels(f.Labels, field.NewPath("--labels")); len(invalid) > 0 {
		errs = append(errs, invalid.ToAggregate())
	}
	if f.As == "" && (len(f.AsGroups) > 0 || f.AsUID != "") {
		errs = append(errs, errors.New("--karmada-as-group and --karmada-as-uid need --karmada-as: there is no group or UID without a user"))
	}
	if f.Wait < 0 {
		errs = append(errs, fmt.Errorf("--wait=%s is negative: give a duration such as 60s, or 0 to not wait", f.Wait))
	}
	if !slices.Contains([]string{"", "json", "yaml", "name"}, f.Output) {
		errs = append(errs, fmt.Errorf("output format %q: want json, yaml or name", f.Output))
	}
	return errors.Join(errs...)
}

// A Registrar is the one thing that join needs done.
type Registrar interface {
	Join(ctx context.Context, p registration.Push) (registration.Plan, error)
}

// Options are a complete and valid request to join; only ToOptions makes them.
type Options struct {
	Request   registration.Push
	Registrar Registrar
	// WaitReady waits until the cluster that was joined is ready.
	WaitReady func(ctx context.Context) (*clusterv1alpha1.Cluster, error)
	// Wait is how long; 0 does not wait.
	Wait time.Duration
	// Notes are what the user should know of a cluster that can be joined.
	Notes  []string
	Output string
	genericiooptions.IOStreams
}

// say tells how things go. Nothing depends on whether it can be written.
func (o *Options) say(line string) { _, _ = fmt.Fprintln(o.ErrOut, line) }

// Run joins the cluster, says so, and waits until it can be used. That it cannot in time is an error, but joined it is.
func (o *Options) Run(ctx context.Context) error {
	plan, err := o.Registrar.Join(ctx, o.Request)
	if err != nil {
		return fmt.Errorf("join cluster %q: %w", o.Request.Name, err)
	}
	for _, n := range o.Notes {
		o.say("note: " + n)
	}
	if o.Request.DryRun {
		return printPlan(o.Out, plan, o.Output)
	}
	// Scripts match this line, and parse the output otherwise.
	to := o.Out
	if o.Output != "" {
		to = o.ErrOut
	}
	if _, err := fmt.Fprintf(to, "cluster(%s) is joined successfully\n", o.Request.Name); err != nil {
		return err
	}
	cluster := plan.Cluster
	if o.Wait > 0 {
		ready, err := o.WaitReady(ctx)
		if err != nil {
			return errors.Join(err, o.print(ready))
		}
		cluster = ready
	}
	return o.print(cluster)
}

// print prints the Cluster in the format that was asked for, if any was.
func (o *Options) print(c *clusterv1alpha1.Cluster) error {
	if o.Output == "" || c == nil {
		return nil
	}
	return printObject(o.Out, c, o.Output)
}
