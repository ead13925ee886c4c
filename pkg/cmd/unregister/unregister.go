// Package unregister implements karmadactl unregister: a cluster in pull mode leaves its control plane, and its agent goes.
package unregister

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/cmd/agentprocess"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

const long = `
	Remove a cluster from Karmada control plane that was registered with Pull mode.

	While its agent still runs, what was propagated to the cluster is deleted there or, with --cascade=orphan, left. Then
	the agent and what it made in the cluster are removed. Nothing is removed that somebody else made.

	The control plane is reached with the agent's own credentials, unless --karmada-config names others. The command can be
	repeated: it goes on where it was interrupted.`

const example = `
	# Remove a cluster whose agent is a process of this host
	%[1]s unregister member3

	# The same, and leave what was propagated to it
	%[1]s unregister member3 --cascade=orphan

	# Remove a cluster whose agent runs in it
	%[1]s unregister member3 --cluster-kubeconfig=<KUBECONFIG> --karmada-config=<KUBECONFIG>`

// Values of --cascade.
const (
	cascadeDelete = "delete"
	cascadeOrphan = "orphan"
)

// NewCmd returns the unregister command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &Flags{Program: program}
	cmd := &cobra.Command{
		Use:                   "unregister CLUSTER_NAME",
		Short:                 "Remove a cluster from Karmada control plane that was registered with Pull mode",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  oneClusterName,
		ValidArgsFunction:     f.CompleteOneClusterAt("karmada-config", "karmada-context"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.ToOptions(f, s, args[0])
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

func oneClusterName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return errors.New("cluster name is required")
	case len(args) > 1:
		return errors.New("only the cluster name is allowed as an argument")
	}
	return registration.ValidateClusterName(args[0])
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Program string

	ClusterKubeconfig, ClusterContext, ClusterNamespace string
	KarmadaConfig, KarmadaContext                       string
	AgentName, Namespace                                string
	AgentDir                                            string
	Cascade                                             string
	DryRun, Force                                       bool
	Wait                                                time.Duration
}

// AddFlags adds the flags (spec: cli/commands.md 3.5); --agent-dir, --cascade and --force are ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.ClusterKubeconfig, "cluster-kubeconfig", "", "Path of the cluster's kubeconfig. Not needed for an agent that is a process of this host.")
	fs.StringVar(&f.ClusterContext, "cluster-context", "", "Name of the cluster's context in its kubeconfig. Default is the current one.")
	fs.StringVar(&f.ClusterNamespace, "cluster-namespace", names.ClusterNamespace, "Namespace in the cluster of what was made for the control plane.")
	fs.StringVar(&f.KarmadaConfig, "karmada-config", "", "Path of a kubeconfig of the control plane. Default are the agent's own credentials.")
	fs.StringVar(&f.KarmadaContext, "karmada-context", "", "Name of the context in the kubeconfig of the control plane.")
	fs.StringVar(&f.AgentName, "agent-name", names.Agent, "Name of the Deployment of an agent that runs in the cluster.")
	fs.StringVarP(&f.Namespace, "namespace", "n", names.SystemNamespace, "Namespace of that Deployment.")
	agentprocess.AddDirFlag(fs, &f.AgentDir)
	fs.StringVar(&f.Cascade, "cascade", "", "What becomes of what was propagated to the cluster: delete or orphan, which leaves it. On a terminal the default is to ask, elsewhere it is delete.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and say what would be removed, without removing anything.")
	fs.BoolVar(&f.Force, "force", false, "Go on when the control plane cannot be reached, or does not let the cluster go in time. What holds it back there is removed, which needs --karmada-config.")
	fs.DurationVar(&f.Wait, "wait", time.Minute, "How long to wait until the control plane has let the cluster go.")
}

// ToOptions completes and validates: every mistake that can be seen without asking a server is reported here.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, name string) (*Options, error) {
	o := &Options{
		Program: f.Program, Cluster: name, Namespace: f.ClusterNamespace, Cascade: f.Cascade, DryRun: f.DryRun, Force: f.Force, Wait: f.Wait,
		AgentName: f.AgentName, AgentNamespace: f.Namespace, Explain: c.Explain, Connect: connect, IOStreams: s,
	}
	if f.Wait <= 0 {
		return nil, fmt.Errorf("--wait %s must be longer than zero", f.Wait)
	}
	if f.Cascade != "" && f.Cascade != cascadeDelete && f.Cascade != cascadeOrphan {
		return nil, fmt.Errorf("--cascade=%s: want %s or %s", f.Cascade, cascadeDelete, cascadeOrphan)
	}
	if f.KarmadaContext != "" && f.KarmadaConfig == "" {
		return nil, errors.New("--karmada-context chooses a context of --karmada-config, which is missing")
	}
	layout, err := agentprocess.Layout(f.AgentDir, name)
	if err != nil {
		return nil, err
	}
	cfg, err := localagent.Load(layout)
	switch {
	case err == nil && cfg.Cluster != name:
		return nil, fmt.Errorf("directory %s holds the agent of cluster %s, not of %s: choose another with --agent-dir", layout.Dir, cfg.Cluster, name)
	case err == nil:
		o.Layout, o.Agent = layout, &cfg
	case !errors.Is(err, localagent.ErrNoAgent):
		return nil, err
	default:
		o.Layout, o.DirGiven = layout, f.AgentDir != ""
	}
	if err := f.controlPlane(o); err != nil {
		return nil, err
	}
	if o.Agent == nil && f.ClusterKubeconfig == "" {
		return o, nil // there may be nothing to clean up
	}
	return o, f.member(c, o)
}

// member finds the cluster.
func (f *Flags) member(c *factory.Factory, o *Options) error {
	kubeconfig, context := f.ClusterKubeconfig, f.ClusterContext
	if kubeconfig == "" {
		kubeconfig, context = o.Layout.MemberKubeconfig(), ""
	}
	cfg, err := c.Member(factory.MemberOptions{
		Name: o.Cluster, Kubeconfig: kubeconfig, Context: context, KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
	}).ToRESTConfig()
	if err != nil {
		return err // says already what is wrong with which kubeconfig
	}
	if o.Member, err = registration.NewMember(cfg); err != nil {
		return err
	}
	if o.MemberClient, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	return nil
}

// controlPlane finds the other side, unless only the cluster can say where it is.
func (f *Flags) controlPlane(o *Options) error {
	switch {
	case f.KarmadaConfig != "":
		cfg, err := load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.KarmadaConfig}, f.KarmadaContext)
		if err != nil {
			return fmt.Errorf("read --karmada-config: %w", err)
		}
		o.ControlPlane, o.Administrator = cfg, true
	case o.Agent != nil:
		cfg, err := load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Layout.Kubeconfig()}, "")
		if err != nil {
			// Its registration was interrupted before it had any.
			return nil
		}
		o.ControlPlane = cfg
	}
	return nil
}

// connect returns a client of the control plane that finds out where each kind is served: access rules are among them.
func connect(cfg *rest.Config) (client.Client, error) {
	scheme, err := registration.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return c, nil
}

func load(rules *clientcmd.ClientConfigLoadingRules, context string) (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.Timeout = requestTimeout
	return cfg, nil
}
