package unregister

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/agentprocess"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/registration/localagent"
)

const (
	// requestTimeout bounds each request.
	requestTimeout = 10 * time.Second
	// stopTimeout is how long the agent may take to stop.
	stopTimeout = 30 * time.Second
)

// Options are a complete and valid request to unregister; only ToOptions makes them.
type Options struct {
	Program string
	Cluster string
	// Namespace is where in the cluster is what was made for the control plane.
	Namespace string
	// Member is the cluster; without a client it is not known where that is.
	Member registration.Member
	// MemberClient is for an agent that runs in the cluster.
	MemberClient              kubernetes.Interface
	AgentName, AgentNamespace string
	// Agent is the one that is a process of this host, nil if there is none, and Layout its directory.
	Agent  *localagent.Config
	Layout localagent.Layout
	// DirGiven says that the user named the directory.
	DirGiven bool
	// ControlPlane is the other side; nil if only the agent in the cluster knows where that is. Administrator says that the
	// credentials are not the agent's.
	ControlPlane  *rest.Config
	Administrator bool
	// Connect makes a client of it.
	Connect func(*rest.Config) (client.Client, error)

	Cascade       string
	DryRun, Force bool
	Wait          time.Duration
	// Explain makes an error of the cluster one that a user can act on.
	Explain func(error) error
	genericiooptions.IOStreams
}

// say tells what is going on. Nothing depends on whether it can be written.
func (o *Options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.ErrOut, format+"\n", args...)
}

// Run takes the cluster out of the control plane, and the agent out of the cluster. It goes on where an earlier run was
// interrupted.
func (o *Options) Run(ctx context.Context) error {
	if o.Member.Client == nil {
		return o.gone(ctx)
	}
	id, err := registration.ClusterID(ctx, o.Member.Client)
	if err != nil {
		return o.Explain(err)
	}
	if o.Agent != nil && o.Agent.ClusterID != id {
		return fmt.Errorf("the kubeconfig leads to a cluster with ID %s, and the agent in %s is that of one with ID %s: nothing was removed; give the right one with --cluster-kubeconfig, or remove that directory if the cluster is no more", id, o.Layout.Dir, o.Agent.ClusterID)
	}
	if o.ControlPlane == nil {
		if o.ControlPlane, err = o.deploymentCredentials(ctx); err != nil {
			return err
		}
	}
	if err := o.leave(ctx, id); err != nil {
		return err
	}
	if o.DryRun {
		return o.preview(ctx)
	}
	return o.cleanUp(ctx)
}

// gone makes sure that there is nothing to take out, as far as that can be known without the cluster: no agent is a process
// of this host, and the control plane, if it can be asked, has no such Cluster.
func (o *Options) gone(ctx context.Context) error {
	const required = "--cluster-kubeconfig is required to specify the cluster"
	if o.ControlPlane == nil {
		if o.DirGiven {
			o.say("there is no agent in %s: cluster %s was unregistered before, or never registered from there; with --karmada-config the control plane is asked, too", o.Layout.Dir, o.Cluster)
			return nil
		}
		return fmt.Errorf("%s: no agent of cluster %s is a process of this host (%s holds none), so that nobody here knows whether the control plane has it; or give --karmada-config to ask that", required, o.Cluster, o.Layout.Dir)
	}
	c, err := o.Connect(o.ControlPlane)
	if err != nil {
		return err
	}
	cluster, err := registration.FindCluster(ctx, c, o.Cluster)
	switch {
	case err != nil:
		return o.unreachable(err)
	case cluster == nil:
		o.say("cluster %s is gone at the control plane already, and no agent of it is a process of this host", o.Cluster)
	case cluster.Spec.SyncMode == clusterv1alpha1.Push:
		return fmt.Errorf("cluster %s is registered in Push mode: use \"%s unjoin %s\"", o.Cluster, o.Program, o.Cluster)
	default:
		return fmt.Errorf("%s: cluster %s is registered, and its agent is no process of this host (%s holds none)", required, o.Cluster, o.Layout.Dir)
	}
	if o.DryRun {
		return nil
	}
	return o.removeRights(ctx, c)
}

// removeRights removes the access rules of the agent. They go with the Cluster, if it ever came.
func (o *Options) removeRights(ctx context.Context, c client.Client) error {
	if err := registration.RemoveAgentRights(ctx, registration.NewWriter(c), o.Cluster); err != nil {
		return fmt.Errorf("remove the rights of the agent of cluster %s: %w", o.Cluster, err)
	}
	return nil
}

// listRights says what has to be removed by somebody else (spec: cli/commands.md 3.5, step 3).
func (o *Options) listRights() error {
	rights, err := registration.AgentRightsNames(o.Cluster)
	if err != nil {
		return err
	}
	o.say("its agent cannot remove its own access rules at the control plane: %s\nan administrator removes them: %s unregister %s --karmada-config=<KUBECONFIG OF AN ADMINISTRATOR>", strings.Join(rights, ", "), o.Program, o.Cluster)
	return nil
}

// leave takes the cluster out of the control plane. Without a way there, there is nothing to leave.
func (o *Options) leave(ctx context.Context, id string) error {
	if o.ControlPlane == nil {
		if !o.Force && o.Agent == nil {
			return fmt.Errorf("no agent is found in the cluster that knows the control plane (Deployment %s/%s and its Secret): give --karmada-config, or --force to clean up the cluster alone", o.AgentNamespace, o.AgentName)
		}
		o.say("the agent of cluster %s has no credentials of a control plane: there is nothing to leave", o.Cluster)
		return nil
	}
	c, err := o.Connect(o.ControlPlane)
	if err != nil {
		return err
	}
	cluster, err := registration.FindCluster(ctx, c, o.Cluster)
	switch {
	case err != nil && o.isOut(err):
		o.say("the control plane at %s gives the agent of cluster %s no rights any more: it is taken for gone there", o.ControlPlane.Host, o.Cluster)
		return nil
	case err != nil && o.Force:
		o.say("the control plane is left as it is, because of --force: %v", registration.ExplainControlPlane(o.ControlPlane.Host, o.Program, err))
		return nil
	case err != nil:
		return o.unreachable(err)
	case cluster == nil:
		o.say("cluster %s is gone at the control plane already", o.Cluster)
		if !o.Administrator {
			return o.listRights() // its agent may ask for it still
		}
	case cluster.Spec.SyncMode == clusterv1alpha1.Push:
		return fmt.Errorf("cluster %s is registered in Push mode: use \"%s unjoin %s\"", o.Cluster, o.Program, o.Cluster)
	case cluster.Spec.ID != "" && cluster.Spec.ID != id:
		return fmt.Errorf("cluster %s of the control plane has ID %s, and the kubeconfig leads to one with ID %s: nothing was removed; give the right one with --cluster-kubeconfig", o.Cluster, cluster.Spec.ID, id)
	case o.DryRun:
		return nil
	default:
		if err := o.remove(ctx, c, cluster); err != nil {
			return err
		}
	}
	if o.Administrator && !o.DryRun {
		return o.removeRights(ctx, c)
	}
	return nil
}

// isOut reports that the agent has lost its rights, which go with its Cluster.
func (o *Options) isOut(err error) bool { return !o.Administrator && apierrors.IsForbidden(err) }

func (o *Options) unreachable(err error) error {
	err = registration.ExplainControlPlane(o.ControlPlane.Host, o.Program, err)
	hint := "repeat this when it answers, or add --force to clean up here alone"
	if apierrors.IsUnauthorized(err) && !o.Administrator {
		hint = "the agent's certificate is not accepted (expired?): give credentials of an administrator with --karmada-config, or add --force to clean up here alone"
	}
	return fmt.Errorf("nothing was removed: %w; %s", err, hint)
}

// remove deletes the Cluster and waits until it is gone. The agent has to live until then: it takes away what was
// propagated.
func (o *Options) remove(ctx context.Context, c client.Client, cluster *clusterv1alpha1.Cluster) error {
	orphan, err := o.orphan(ctx, c)
	if err != nil {
		return err
	}
	if err := o.keepAgentRunning(ctx); err != nil {
		return err
	}
	err = registration.RemoveCluster(ctx, c, registration.Removal{
		Name: cluster.Name, UID: string(cluster.UID), Orphan: orphan, Wait: o.Wait, Force: o.Force && o.Administrator,
		Progress: o.progress,
	})
	var stuck *registration.StuckError
	switch {
	case err == nil, o.isOut(err):
		return nil
	case errors.As(err, &stuck) && o.Force:
		return fmt.Errorf("%w; removing what holds it back needs credentials of an administrator: give them with --karmada-config, too", err)
	case errors.As(err, &stuck):
		return fmt.Errorf("%w; repeat this to wait longer, or remove it by force: %s unregister %s --force --karmada-config=<KUBECONFIG OF AN ADMINISTRATOR>%s", err, o.Program, o.Cluster, o.cascadeFlag(orphan))
	}
	return fmt.Errorf("remove cluster %s: %w", o.Cluster, err)
}

// progress tells what is waited for. That the agent loses its rights is how it ends.
func (o *Options) progress(line string) {
	if o.Administrator || !strings.Contains(line, "is forbidden") {
		o.say("%s", line)
	}
}

func (o *Options) cascadeFlag(orphan bool) string {
	if orphan {
		return " --cascade=" + cascadeOrphan
	}
	return ""
}

// orphan decides what becomes of what was propagated. Who did not say is asked on a terminal.
func (o *Options) orphan(ctx context.Context, c client.Client) (bool, error) {
	if o.Cascade != "" {
		return o.Cascade == cascadeOrphan, nil
	}
	things, err := registration.Propagated(ctx, c, o.Cluster)
	if err != nil {
		return false, err
	}
	if len(things) == 0 {
		return false, nil
	}
	if !host.IsTerminal(o.In) || !host.IsTerminal(o.ErrOut) {
		o.say("what was propagated to cluster %s is deleted there (%d objects); to leave it: %s unregister %s --cascade=%s", o.Cluster, len(things), o.Program, o.Cluster, cascadeOrphan)
		return false, nil
	}
	o.say("These were propagated to cluster %s:\n  %s", o.Cluster, strings.Join(things, "\n  "))
	_, _ = fmt.Fprint(o.ErrOut, "Delete them there, or leave them? [delete/orphan] ")
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	switch strings.TrimSpace(answer) {
	case cascadeDelete:
		return false, nil
	case cascadeOrphan:
		return true, nil
	}
	return false, errors.New("nothing was removed: the answer is neither delete nor orphan")
}

// keepAgentRunning starts the agent of this host if it does not run.
func (o *Options) keepAgentRunning(ctx context.Context) error {
	if o.Agent == nil || o.Agent.External {
		return nil
	}
	supervisor, err := agentprocess.Supervisor(o.Layout)
	if err != nil {
		return err
	}
	_, err = localagent.Start(ctx, o.Layout, supervisor, false)
	return err
}

// cleanUp removes the agent, and what was made in the cluster.
func (o *Options) cleanUp(ctx context.Context) error {
	if o.Agent != nil && !o.Agent.External {
		limited, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if err := localagent.Stop(limited, o.Layout); err != nil {
			return err
		}
	}
	if err := o.removeDeployment(ctx); err != nil {
		return o.Explain(err)
	}
	kept, err := registration.RemoveMemberAccess(ctx, registration.NewWriter(o.Member.Client), o.Member.Contents, o.Cluster, o.Namespace)
	for _, line := range kept {
		o.say("%s", line)
	}
	if err != nil {
		return o.Explain(err)
	}
	if o.Agent == nil {
		return nil
	}
	if o.Agent.External {
		o.say("the agent of cluster %s was started by somebody else (--print): stop it there", o.Cluster)
	}
	return localagent.Remove(o.Layout)
}

// preview says what cleanUp would do.
func (o *Options) preview(ctx context.Context) error {
	w := registration.NewDryWriter(o.Member.Client)
	kept, err := registration.RemoveMemberAccess(ctx, w, o.Member.Contents, o.Cluster, o.Namespace)
	if err != nil {
		return o.Explain(err)
	}
	var lines []string
	for _, c := range w.Changes() {
		if c.Action == registration.Delete {
			lines = append(lines, "cluster: delete "+describe(c.Object))
		}
	}
	for _, line := range kept {
		lines = append(lines, "cluster: "+line)
	}
	if o.Agent != nil {
		lines = append(lines, "host: remove the agent in "+o.Layout.Dir)
	}
	_, err = fmt.Fprintln(o.Out, strings.Join(append([]string{"control plane: delete Cluster " + o.Cluster}, lines...), "\n"))
	return err
}

func describe(obj client.Object) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	kind := fmt.Sprintf("%T", obj)
	return kind[strings.LastIndex(kind, ".")+1:] + " " + name
}
