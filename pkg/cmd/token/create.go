package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const createLong = `
	Create a bootstrap token and print it.

	With --cluster the token is for that one cluster. Without, it can create the identity of any cluster that is new:
	give it to nobody who may not.`

const createExample = `
	# Make a token for cluster member3, and print the command to run there
	%[1]s token create --cluster=member3 --print-register-command

	# Make a token that is good for two hours
	%[1]s token create --ttl=2h --description="the clusters of May"

	# For programs
	%[1]s token create -o json`

func newCreate(f *factory.Factory, s genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &CreateFlags{Program: program}
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create a bootstrap token",
		Long:    templates.LongDesc(createLong),
		Example: templates.Examples(fmt.Sprintf(createExample, program)),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("token create takes no arguments: a token is made at random, and cannot be chosen")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.ToOptions(f, s)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

// CreateFlags hold what the user typed, and nothing else.
type CreateFlags struct {
	Program              string
	Cluster              string
	Description          string
	Groups               []string
	PrintRegisterCommand bool
	TTL                  time.Duration
	Usages               []string
	Output               host.Output

	set *pflag.FlagSet
}

// AddFlags adds the flags (spec: cli/commands.md 3.3); --cluster and -o are ours.
func (f *CreateFlags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Cluster, "cluster", "", "The only cluster that can be registered with the token.")
	fs.StringVar(&f.Description, "description", "", "What the token is for, for people.")
	fs.StringSliceVar(&f.Groups, "groups", []string{registration.DefaultTokenGroup}, "Groups of whoever authenticates with the token. Each has to begin with system:bootstrappers: . Not with --cluster, which brings its own.")
	fs.BoolVar(&f.PrintRegisterCommand, "print-register-command", false, "Print the command that registers a cluster with the token, instead of the token.")
	fs.DurationVar(&f.TTL, "ttl", registration.DefaultTokenTTL, fmt.Sprintf("How long the token is good for, such as 30m or 2h. 0 is for ever. With --cluster the default is %s.", registration.DefaultClusterTokenTTL))
	fs.StringSliceVar(&f.Usages, "usages", registration.TokenUsages(), fmt.Sprintf("What the token may be used for. Valid options: [%s].", strings.Join(registration.TokenUsages(), ",")))
	host.AddOutput(fs, &f.Output)
}

// request is what the flags ask for. What depends on --cluster is filled in here.
func (f *CreateFlags) request() (registration.TokenRequest, error) {
	r := registration.TokenRequest{Description: f.Description, TTL: f.TTL, Usages: f.Usages, Groups: f.Groups, Cluster: f.Cluster}
	if !f.set.Changed("cluster") {
		return r, nil
	}
	if f.set.Changed("groups") {
		return r, errors.New("--cluster and --groups exclude each other: a token for one cluster has the groups of that cluster and no others")
	}
	r.Groups = nil
	if !f.set.Changed("ttl") {
		r.TTL = registration.DefaultClusterTokenTTL
	}
	// An empty name is a variable that was not set; it must not turn into a token for any cluster.
	return r, registration.ValidateAgentCluster(f.Cluster)
}

// A Creator is the one thing that create needs done.
type Creator interface {
	Create(ctx context.Context, r registration.TokenRequest) (registration.Token, error)
}

// CreateOptions are a complete and valid request to create a token; only ToOptions makes them.
type CreateOptions struct {
	Request registration.TokenRequest
	Creator Creator
	// FindCluster returns the Cluster of a name, nil if there is none.
	FindCluster func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	Program     string
	// Discovery is nil unless the command to register with is wanted.
	Discovery *registration.Discovery
	Output    host.Output
	genericiooptions.IOStreams
}

// ToOptions completes and validates. The kubeconfig is read here for all that is to be printed, so that nothing is left
// behind when it cannot be.
func (f *CreateFlags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams) (*CreateOptions, error) {
	if err := f.Output.Validate(); err != nil {
		return nil, err
	}
	r, err := f.request()
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	o := &CreateOptions{Request: r, Program: f.Program, Output: f.Output, IOStreams: s}
	if f.PrintRegisterCommand {
		for _, usage := range registration.TokenUsages() {
			if !slices.Contains(r.Usages, usage) {
				return nil, fmt.Errorf("a cluster cannot be registered with a token without usage %q: leave --usages out, or --print-register-command", usage)
			}
		}
		if o.Discovery, err = discover(c); err != nil {
			return nil, err
		}
	}
	o.Creator, err = tokens(c, registration.WithRetryNotice(func(err error, in time.Duration) {
		// Nothing depends on whether the note can be written.
		_, _ = fmt.Fprintf(s.ErrOut, "the token cannot be created yet, trying again in %s: %v\n", in, c.Explain(err))
	}))
	if err != nil {
		return nil, err
	}
	cfg, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	api, err := registration.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	o.FindCluster = func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
		return registration.FindCluster(ctx, api, name)
	}
	return o, nil
}

// discover reads the kubeconfig that c resolved.
func discover(c *factory.Factory) (*registration.Discovery, error) {
	cfg, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	d, err := registration.NewDiscovery(cfg)
	if errors.Is(err, registration.ErrNoCA) {
		// There may be no kubeconfig at all. The first request knows.
		client, clientErr := c.ToDiscoveryClient()
		if clientErr != nil {
			return nil, clientErr
		}
		if _, askErr := client.ServerVersion(); askErr != nil {
			return nil, factory.Plain(fmt.Errorf("reach the control plane: %w", askErr))
		}
		return nil, fmt.Errorf("%w, so that a member could not recognise the control plane at %s: use the kubeconfig that init wrote, or leave --print-register-command out", err, cfg.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("find out how to register with this control plane: %w", err)
	}
	return &d, nil
}

// lookPatience bounds the look at the cluster that a token is for: the token does not depend on it.
const lookPatience = 10 * time.Second

// look finds out what there is of the cluster that the token is for: an error if the token would be good for nothing, and
// a warning if it can do more than one might think.
func (o *CreateOptions) look(ctx context.Context) (warning string, err error) {
	name := o.Request.Cluster
	if name == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	c, err := o.FindCluster(ctx, name)
	switch {
	case err != nil:
		return fmt.Sprintf("it cannot be seen whether there is a cluster %s already, whose agent would be replaced by whoever registers with this token: %v", name, factory.Plain(err)), nil
	case c == nil, !c.DeletionTimestamp.IsZero():
		return "", nil
	case c.Spec.SyncMode == clusterv1alpha1.Push:
		return "", fmt.Errorf("cluster %s is a member in push mode, which has no agent: choose another name, or \"%s unjoin %s\" first", name, o.Program, name)
	}
	return fmt.Sprintf("there is a cluster %s already: whoever registers with this token replaces its agent; if that is not meant, \"%s token delete\" it", name, o.Program), nil
}

// Run creates the token and prints it, or the command to register with it.
func (o *CreateOptions) Run(ctx context.Context) error {
	warning, err := o.look(ctx)
	if err != nil {
		return err
	}
	t, err := o.Creator.Create(ctx, o.Request)
	if err != nil {
		return factory.Plain(err) // says already what was tried
	}
	if warning != "" { // of a token that there is
		if _, err := fmt.Fprintln(o.ErrOut, "warning: "+warning); err != nil {
			return err
		}
	}
	v, line := viewOf(t, time.Now()), t.Value()
	v.Token = t.Value()
	if o.Discovery != nil {
		line = o.Discovery.RegisterCommand(o.Program, t)
		v.RegisterCommand = line
	}
	return o.Output.Print(o.Out, v, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
}
