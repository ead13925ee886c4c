package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/agentprocess"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

// Options are a complete and valid request to register; only ToOptions makes them.
type Options struct {
	Program   string
	Enrolment registration.Enrolment
	Config    localagent.Config
	Layout    localagent.Layout
	// Kubeconfig is the cluster's, and Member what it leads to.
	Kubeconfig clientcmdapi.Config
	Member     registration.Member
	// Deployments are those of the cluster.
	Deployments appsclient.DeploymentsGetter
	// Source names where the kubeconfig is from.
	Source func() string
	// Explain makes an error of the cluster one that a user can act on.
	Explain func(error) error
	Print   bool
	DryRun  bool
	Wait    time.Duration
	Output  string
	genericiooptions.IOStreams
}

// say tells what is going on. Nothing depends on whether it can be written.
func (o *Options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.ErrOut, format+"\n", args...)
}

// Run registers the cluster and says so.
func (o *Options) Run(ctx context.Context) error {
	o.say("[preflight] Running pre-flight checks")
	if err := o.preflight(ctx); err != nil {
		return err
	}
	o.say("[preflight] All pre-flight checks were passed")
	if o.DryRun {
		return o.preview(ctx)
	}
	res, err := localagent.Enrol(ctx, localagent.Request{
		Layout: o.Layout, Config: o.Config, Member: o.Kubeconfig, Enrolment: o.Enrolment,
		Say: func(line string) { o.say("[karmada-agent-start] %s", line) },
	})
	if err != nil {
		return fmt.Errorf("register cluster %s: %w", o.Config.Cluster, err)
	}
	controlPlane, err := o.controlPlane()
	if err != nil {
		return err
	}
	pid, err := o.enter(ctx, controlPlane, res)
	if err != nil {
		return o.undo(ctx, controlPlane, res, err)
	}
	if o.Print {
		return o.printCommand(ctx, res.Config)
	}
	return o.report(ctx, controlPlane, pid)
}

// preflight looks at the cluster and at the agent's directory, and changes nothing.
func (o *Options) preflight(ctx context.Context) error {
	id, err := registration.ClusterID(ctx, o.Member.Client)
	if err != nil {
		return o.Explain(err)
	}
	o.Config.ClusterID = id
	groups, err := o.Member.Groups(ctx)
	if err != nil {
		return o.Explain(err)
	}
	if registration.IsControlPlane(groups) {
		return fmt.Errorf("%s leads to a Karmada control plane, and not to the cluster that is to be registered: give the cluster's with --kubeconfig", o.Source())
	}
	if err := o.refuseDeployment(ctx); err != nil {
		return err
	}
	old, err := localagent.Check(o.Layout, o.Config)
	if err != nil {
		return err
	}
	if old != nil && old.External != o.Config.External {
		pid, err := localagent.Running(o.Layout)
		if err != nil {
			return err
		}
		if o.Config.External && pid != 0 {
			return fmt.Errorf("the agent in %s is kept running already (process %d): leave --print out, or unregister the cluster first", o.Layout.Dir, pid)
		}
	}
	return nil
}

// refuseDeployment makes sure that no agent in the cluster does the same.
func (o *Options) refuseDeployment(ctx context.Context) error {
	_, err := o.Deployments.Deployments(names.SystemNamespace).Get(ctx, names.Agent, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return o.Explain(fmt.Errorf("look for an agent in the cluster: %w", err))
	}
	return fmt.Errorf("the cluster has an agent already, Deployment %s/%s: unregister it first (%s unregister), or delete that Deployment if its control plane is no more", names.SystemNamespace, names.Agent, o.Program)
}

// printCommand prints how the agent is started by somebody else.
func (o *Options) printCommand(ctx context.Context, cfg localagent.Config) error {
	karmada, err := host.FindKarmada()
	if err != nil {
		return err
	}
	command := append([]string{karmada}, cfg.Args(o.Layout)...)
	o.say("[karmada-agent-start] The agent's files are in %s. Have it started by the command below, and started again when it ends.", o.Layout.Dir)
	if o.Output == "" {
		_, err := fmt.Fprintln(o.Out, shellQuoted(command))
		return err
	}
	return o.print(result{Cluster: cfg.Cluster, ID: cfg.ClusterID, AgentDir: o.Layout.Dir, Command: command})
}

// shellQuoted is a command as it can be pasted into a shell.
func shellQuoted(command []string) string {
	var words []string
	for _, w := range command {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("-_=./:,@%+", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// enter starts the agent, unless somebody else does, and waits until it has entered the cluster. It returns the process that
// keeps the agent running.
func (o *Options) enter(ctx context.Context, controlPlane client.Client, res localagent.Result) (pid int, err error) {
	// An agent whose Cluster was deleted does not enter it again by itself.
	cluster, err := registration.CheckPull(ctx, controlPlane, o.entry())
	if registration.IsTaken(err) {
		return 0, err
	}
	gone := err == nil && cluster == nil // the agent finds out about any other error
	if o.Print {
		return 0, ctx.Err()
	}
	supervisor, err := agentprocess.Supervisor(o.Layout)
	if err != nil {
		return 0, err
	}
	if pid, err = localagent.Start(ctx, o.Layout, supervisor, res.Changed || res.Enrolled || gone); err != nil {
		return 0, err
	}
	o.say("[karmada-agent-start] The agent is kept running by process %d; its log is %s", pid, o.Layout.LogFile())
	return pid, o.awaitEntry(ctx, controlPlane)
}

// entry is how the agent is going to enter the cluster.
func (o *Options) entry() registration.Entry {
	return registration.PullEntry(registration.Entry{
		Identity:  registration.Identity{Name: o.Config.Cluster, ID: o.Config.ClusterID, Endpoint: o.Config.APIEndpoint},
		Namespace: o.Config.Namespace, ProxyURL: o.Config.ProxyURL, Insecure: o.Member.Endpoint.Insecure,
		Provider: o.Config.Provider, Region: o.Config.Region, Zones: o.Config.Zones, Labels: o.Config.Labels,
	}, []string{registration.ReportCredentials, registration.ReportImpersonator})
}

// undo takes back what this run made when it failed, or was interrupted: nobody else may find the identity of an agent that
// there is none of. An agent that was there before stays, and so does one that has entered its cluster in the last moment.
// What agents make in a cluster they make after the control plane has let them in. It returns why the run failed.
func (o *Options) undo(ctx context.Context, controlPlane client.Client, res localagent.Result, why error) error {
	if !res.New || errors.Is(why, errStillTrying) {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := localagent.Stop(ctx, o.Layout); err != nil {
		return errors.Join(why, err)
	}
	cluster, err := registration.FindCluster(ctx, controlPlane, o.Config.Cluster)
	if cluster != nil && o.entry().Check(cluster) == nil {
		return fmt.Errorf("%w; the cluster is registered by now, and its agent is stopped: run this again to go on, or %s unregister %s", why, o.Program, o.Config.Cluster)
	}
	why = errors.Join(why, localagent.Remove(o.Layout))
	if err != nil || cluster != nil {
		return why // what is there under that name is not known, or somebody else's
	}
	rights, err := registration.AgentRightsNames(o.Config.Cluster)
	if err != nil {
		return errors.Join(why, err)
	}
	o.say("The control plane has made access rules for the agent, which this command has no right to remove: %s\nAn administrator removes them there: %s unregister %s --karmada-config=<KUBECONFIG OF AN ADMINISTRATOR>",
		strings.Join(rights, ", "), o.Program, o.Config.Cluster)
	return why
}

// report says that the cluster is registered, and waits until it is ready.
func (o *Options) report(ctx context.Context, controlPlane client.Client, pid int) error {
	joined := fmt.Sprintf("cluster(%s) is joined successfully\n", o.Config.Cluster)
	if o.Output == "" {
		if _, err := fmt.Fprint(o.Out, joined); err != nil {
			return err
		}
	} else {
		o.say("%s", strings.TrimSpace(joined))
	}
	r := result{Cluster: o.Config.Cluster, ID: o.Config.ClusterID, AgentDir: o.Layout.Dir, PID: pid}
	if o.Wait > 0 {
		if _, err := registration.WaitReady(ctx, controlPlane, o.Config.Cluster, o.Wait, func(line string) { o.say("%s", line) }); err != nil {
			return err
		}
		r.Ready = true
	}
	if o.Output == "" {
		return nil
	}
	return o.print(r)
}

// controlPlane is the other side as the agent sees it.
func (o *Options) controlPlane() (client.Client, error) {
	return registration.NewClient(&rest.Config{
		Host: o.Enrolment.Server(), Timeout: requestTimeout,
		TLSClientConfig: rest.TLSClientConfig{CAFile: o.Layout.CA(), CertFile: o.Layout.Credential(), KeyFile: o.Layout.Credential()},
	})
}

const (
	// requestTimeout bounds each request to the control plane.
	requestTimeout = 10 * time.Second
	// entryTimeout is how long the agent may take to enter the cluster.
	entryTimeout = 2 * time.Minute
	// entryInterval is how often that is looked at.
	entryInterval = 200 * time.Millisecond
	// undoTimeout is how long a run that failed may take to clean up.
	undoTimeout = 30 * time.Second
)

// errAgentFailed says that an agent ended instead of entering its cluster.
var errAgentFailed = errors.New("its agent failed")

// errStillTrying says that an agent has neither entered its cluster nor ended.
var errStillTrying = errors.New("the agent goes on trying")

// awaitEntry waits until the Cluster is there. An agent that ends instead is stopped, and the reason is its last words: it
// would only be started again to say the same.
func (o *Options) awaitEntry(ctx context.Context, controlPlane client.Client) error {
	limited, cancel := context.WithTimeout(ctx, entryTimeout)
	defer cancel()
	tick := time.NewTicker(entryInterval)
	defer tick.Stop()
	why := "the agent has not entered it yet"
	for {
		cluster, err := registration.FindCluster(limited, controlPlane, o.Config.Cluster)
		switch {
		case err == nil && cluster != nil && cluster.Spec.ID == o.Config.ClusterID && cluster.DeletionTimestamp.IsZero():
			return nil
		case err != nil && limited.Err() == nil:
			why = err.Error() // its rights may be on their way
		}
		failure, err := localagent.LastFailure(o.Layout)
		if err != nil {
			return err
		}
		if failure != "" {
			err := fmt.Errorf("register cluster %s: %w: %s", o.Config.Cluster, errAgentFailed, failure)
			return errors.Join(err, localagent.Stop(ctx, o.Layout))
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("cluster %s is not registered after %s: %s; %w, its log is %s", o.Config.Cluster, entryTimeout, why, errStillTrying, o.Layout.LogFile())
		case <-tick.C:
		}
	}
}

// A result is what programs are told.
type result struct {
	Cluster  string `json:"cluster"`
	ID       string `json:"id"`
	AgentDir string `json:"agentDir"`
	// PID is the process that keeps the agent running.
	PID int `json:"pid,omitempty"`
	// Command starts the agent, with --print.
	Command []string `json:"command,omitempty"`
	Ready   bool     `json:"ready"`
}

func (o *Options) print(r result) error {
	if o.Output == "name" {
		_, err := fmt.Fprintf(o.Out, "cluster.%s/%s\n", clusterv1alpha1.GroupName, r.Cluster)
		return err
	}
	return host.Output(o.Output).Print(o.Out, r, nil)
}
