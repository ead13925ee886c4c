// Package register implements karmadactl register: a cluster becomes a member in pull mode. The work is done by packages
// registration and localagent; here flags become a request.
package register

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/agentprocess"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

const long = `
	Register a cluster to Karmada control plane with Pull mode.

	An agent beside the cluster asks the control plane what to do, which need not reach the cluster. With
	--agent=process it is a process of this host, which is kept running; with --print too, its files are made and the
	command that starts it is printed, for the host's service manager to run.

	The command can be repeated: what is right stays, what is missing is made, and what an interrupted run began is
	taken up.`

const example = `
	# Register the cluster of the current context, with what "%[1]s token create --cluster=member3 --print-register-command" printed
	%[1]s register 10.0.0.1:5443 --token <TOKEN> --discovery-token-ca-cert-hash sha256:<HASH> --cluster-name=member3 --agent=process

	# The same, with a service manager in mind
	%[1]s register 10.0.0.1:5443 --token <TOKEN> --discovery-token-ca-cert-hash sha256:<HASH> --cluster-name=member3 --agent=process --print`

// Values of --agent.
const (
	agentProcess    = "process"
	agentDeployment = "deployment"
)

// DefaultWait is how long register waits until the cluster is ready.
const DefaultWait = time.Minute

// NewCmd returns the register command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &Flags{Program: program}
	cmd := &cobra.Command{
		Use:                   "register [karmada-apiserver-endpoint]",
		Short:                 "Register a cluster to Karmada control plane with Pull mode",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  oneEndpoint,
		ValidArgsFunction:     cobra.NoFileCompletions,
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

func oneEndpoint(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("the address of the control plane is required: give it as host:port, such as 10.0.0.1:5443")
	case len(args) > 1:
		return errors.New("only the address of the control plane is allowed as an argument")
	}
	return nil
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Program string

	Kubeconfig, Context string

	Token            string
	CAHashes         []string
	UnsafeSkipCA     bool
	DiscoveryTimeout time.Duration

	ClusterName, ClusterNamespace  string
	ClusterProvider, ClusterRegion string
	ClusterZones                   []string
	Labels                         map[string]string
	ProxyServerAddress             string
	CertExpirationSeconds          int32
	EnableCertRotation             bool
	Namespace, KarmadaAgentImage   string
	KarmadaAgentReplicas           int32
	Agent, AgentDir                string
	Print, DryRun                  bool
	Wait                           time.Duration
	Output                         string

	set *pflag.FlagSet
}

// AddFlags adds the flags (spec: cli/commands.md 3.4); --agent, --agent-dir, --labels, --print, --wait and -o are ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "Path to the kubeconfig file of the cluster to register.")
	fs.StringVar(&f.Context, "context", "", "Name of the context in the kubeconfig file of the cluster. Default is its current one.")
	fs.StringVar(&f.Token, "token", "", "The bootstrap token: what the control plane is recognised with, and asked for a certificate.")
	fs.StringSliceVar(&f.CAHashes, "discovery-token-ca-cert-hash", nil, "The control plane's CA has to have one of these hashes (form: \"sha256:<hex>\").")
	fs.BoolVar(&f.UnsafeSkipCA, "discovery-token-unsafe-skip-ca-verification", false, "Recognise the control plane by the token alone: whoever has seen that can pass for it.")
	fs.DurationVar(&f.DiscoveryTimeout, "discovery-timeout", 5*time.Minute, "How long the control plane may take to be found, and then to approve the agent's certificate.")
	fs.StringVar(&f.ClusterName, "cluster-name", "", "The name of the cluster at the control plane. Default is the one in its kubeconfig.")
	fs.StringVar(&f.ClusterNamespace, "cluster-namespace", names.ClusterNamespace, "Namespace, on both sides, of the credentials of the cluster.")
	fs.StringVar(&f.ClusterProvider, "cluster-provider", "", "Provider of the cluster.")
	fs.StringVar(&f.ClusterRegion, "cluster-region", "", "Region of the cluster.")
	fs.StringSliceVar(&f.ClusterZones, "cluster-zones", nil, "Zones of the cluster.")
	fs.StringToStringVar(&f.Labels, "labels", nil, "Labels that the Cluster gets when it is made (key=value, several by commas).")
	fs.StringVar(&f.ProxyServerAddress, "proxy-server-address", "", "URL of a proxy by which the control plane reaches the cluster.")
	fs.Int32Var(&f.CertExpirationSeconds, "cert-expiration-seconds", 31536000, "How long the agent's certificate lives, in seconds.")
	fs.BoolVar(&f.EnableCertRotation, "enable-cert-rotation", true, "Have the agent renew its certificate in time.")
	fs.StringVarP(&f.Namespace, "namespace", "n", names.SystemNamespace, "Namespace of the agent in the cluster, with --agent=deployment.")
	fs.StringVar(&f.KarmadaAgentImage, "karmada-agent-image", "docker.io/karmada/karmada-agent:v0.0.0-master", "Image of the agent, with --agent=deployment.")
	fs.Int32Var(&f.KarmadaAgentReplicas, "karmada-agent-replicas", 1, "How many agents there are, with --agent=deployment.")
	fs.StringVar(&f.Agent, "agent", agentDeployment, fmt.Sprintf("What the agent is: %s, a process of this host, or %s, in the cluster, which is not available in this version.", agentProcess, agentDeployment))
	agentprocess.AddDirFlag(fs, &f.AgentDir)
	fs.BoolVar(&f.Print, "print", false, "With --agent=process: make the agent's files, and print the command that starts it instead of starting it.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and print what would be made, without making anything.")
	fs.DurationVar(&f.Wait, "wait", DefaultWait, "How long to wait, once the cluster is registered, until it is ready with its capacity known. 0 does not wait.")
	fs.StringVarP(&f.Output, "output", "o", "", "Output format: json, yaml or name. Default is text for people.")
}

// ToOptions completes and validates: every mistake that can be seen without asking anybody is reported here.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, endpoint string) (*Options, error) {
	member := c.Member(factory.MemberOptions{Name: f.ClusterName, Kubeconfig: f.Kubeconfig, Context: f.Context, KubeconfigFlag: "--kubeconfig", ContextFlag: "--context"})
	o := &Options{
		Program: f.Program, Print: f.Print, DryRun: f.DryRun, Wait: f.Wait, Output: f.Output, IOStreams: s,
		Explain: c.Explain, Source: member.Source,
	}
	if !slices.Contains([]string{"", "json", "yaml", "name"}, f.Output) {
		return nil, fmt.Errorf("output format %q: want json, yaml or name", f.Output)
	}
	if err := f.validate(); err != nil {
		return nil, err
	}
	o.Enrolment = registration.Enrolment{
		Bootstrap: registration.Bootstrap{Endpoint: endpoint, Token: f.Token, CAHashes: f.CAHashes, SkipCAVerification: f.UnsafeSkipCA, Program: f.Program},
		Cluster:   f.ClusterName,
		Validity:  time.Duration(f.CertExpirationSeconds) * time.Second,
		Timeout:   f.DiscoveryTimeout,
		Notice:    func(line string) { o.say("%s", line) },
	}
	if err := o.Enrolment.Validate(); err != nil {
		return nil, err
	}
	if f.ClusterName != "" { // else it comes from the kubeconfig
		if err := registration.ValidateAgentCluster(f.ClusterName); err != nil {
			return nil, err
		}
	}
	if f.Agent == agentDeployment {
		return nil, fmt.Errorf("--agent=%s, the agent as a Deployment in the cluster, is not available in this version: there is no image of it yet; give --agent=%s for a process of this host", agentDeployment, agentProcess)
	}
	return o, f.complete(member, o)
}

// validate checks what does not depend on the cluster.
func (f *Flags) validate() error {
	var errs []error
	switch f.Agent {
	case agentDeployment:
		if f.Print || f.AgentDir != "" {
			errs = append(errs, fmt.Errorf("--print and --agent-dir are for --agent=%s", agentProcess))
		}
	case agentProcess:
		for _, name := range []string{"namespace", "karmada-agent-image", "karmada-agent-replicas"} {
			if f.set.Changed(name) {
				errs = append(errs, fmt.Errorf("--%s is for --agent=%s: leave it out", name, agentDeployment))
			}
		}
	default:
		errs = append(errs, fmt.Errorf("--agent=%s: want %s or %s", f.Agent, agentProcess, agentDeployment))
	}
	if f.ClusterNamespace != names.ClusterNamespace {
		errs = append(errs, fmt.Errorf("--cluster-namespace=%s: an agent has rights in namespace %s of the control plane alone, so leave it out", f.ClusterNamespace, names.ClusterNamespace))
	}
	if f.Wait < 0 {
		errs = append(errs, fmt.Errorf("--wait %s is negative", f.Wait))
	}
	if problem := registration.ValidateAddress(f.ProxyServerAddress); problem != nil {
		errs = append(errs, fmt.Errorf("--proxy-server-address: %w", problem))
	}
	if invalid := metav1validation.ValidateLabels(f.Labels, field.NewPath("--labels")); len(invalid) > 0 {
		errs = append(errs, invalid.ToAggregate())
	}
	return registration.JoinOnLine(errs...)
}

// complete reads the cluster's kubeconfig for what was not given.
func (f *Flags) complete(member *factory.Member, o *Options) error {
	kubeconfig, err := member.Kubeconfig()
	if err != nil {
		return err // says already what is wrong with which kubeconfig
	}
	cfg, err := member.ToRESTConfig()
	if err != nil {
		return err
	}
	name := f.ClusterName
	if name == "" {
		if c := kubeconfig.Contexts[kubeconfig.CurrentContext]; c != nil {
			name = c.Cluster
		}
		if err := registration.ValidateAgentCluster(name); err != nil {
			return fmt.Errorf("%w: that is what the kubeconfig calls it; give another name with --cluster-name", err)
		}
	}
	if o.Member, err = registration.NewMember(cfg); err != nil {
		return err
	}
	if o.Deployments, err = appsclient.NewForConfig(cfg); err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	proxy := f.ProxyServerAddress
	if o.Member.Endpoint.ProxyURL != "" {
		proxy = o.Member.Endpoint.ProxyURL // spec: behaviour/11 11.1
	}
	layout, err := agentprocess.Layout(f.AgentDir, name)
	if err != nil {
		return err
	}
	o.Kubeconfig, o.Layout, o.Enrolment.Cluster = kubeconfig, layout, name
	o.Config = localagent.Config{
		Cluster: name, Namespace: f.ClusterNamespace, APIEndpoint: o.Member.Endpoint.URL, ProxyURL: proxy,
		Provider: f.ClusterProvider, Region: f.ClusterRegion, Zones: f.ClusterZones, Labels: f.Labels,
		CertRotation: f.EnableCertRotation, External: f.Print,
	}
	return nil
}
