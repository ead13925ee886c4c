// Package server puts the roles of the karmada binary together. This file is the only one that knows them all.
package server

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
	"github.com/karmadactl/karmadactl/pkg/server/agent"
	"github.com/karmadactl/karmadactl/pkg/server/aggregatedapiserver"
	"github.com/karmadactl/karmadactl/pkg/server/controllermanager"
	"github.com/karmadactl/karmadactl/pkg/server/kube"
	planerole "github.com/karmadactl/karmadactl/pkg/server/plane"
	"github.com/karmadactl/karmadactl/pkg/server/role"
	"github.com/karmadactl/karmadactl/pkg/server/scheduler"
	"github.com/karmadactl/karmadactl/pkg/server/webhook"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// A roleEntry is one thing that the binary can be.
type roleEntry struct {
	name, short string
	// new makes its command. At most one is made in a process: upstream's constructors install signal handlers.
	new constructor
}

type constructor = func(genericiooptions.IOStreams) (*cobra.Command, error)

func roles() []roleEntry {
	upstream := func(new func() *cobra.Command) constructor {
		return func(genericiooptions.IOStreams) (*cobra.Command, error) { return new(), nil }
	}
	return []roleEntry{
		{"plane", "Run the whole control plane in this process", func(s genericiooptions.IOStreams) (*cobra.Command, error) {
			return planerole.New(s, controlPlaneRunners()), nil
		}},
		{"member", "Run a complete local member cluster in this process", func(s genericiooptions.IOStreams) (*cobra.Command, error) {
			return planerole.NewMember(s, memberRunners()), nil
		}},
		{plane.KarmadaControllerManager, "Run the controllers of Karmada", controllermanager.New},
		{names.Scheduler, "Decide which clusters resources go to", scheduler.New},
		{names.AggregatedAPIServer, "Serve the API of clusters", aggregatedapiserver.New},
		{names.Webhook, "Serve the admission webhooks of the control plane", webhook.New},
		{names.Agent, "Run the agent of a member cluster in pull mode", agent.New},
		{plane.Etcd, "Run etcd, with its own flags", upstream(kube.NewEtcdCommand)},
		{plane.KubeAPIServer, "Run kube-apiserver, with its own flags", upstream(kube.NewAPIServerCommand)},
		{plane.KubeControllerManager, "Run kube-controller-manager, with its own flags", upstream(kube.NewControllerManagerCommand)},
		{plane.KubeScheduler, "Run kube-scheduler, with its own flags", upstream(kube.NewSchedulerCommand)},
	}
}

// controlPlaneRunners are the roles of one control plane. Those that watch the same objects share one manager.
func controlPlaneRunners() map[string]local.Runner {
	shared := newSharedManager()
	return map[string]local.Runner{
		plane.Etcd:                       kube.RunEtcd,
		plane.KubeAPIServer:              kube.RunAPIServer,
		plane.KubeControllerManager:      kube.RunControllerManager,
		plane.KarmadaAggregatedAPIServer: aggregatedapiserver.Run,
		plane.KarmadaControllerManager:   runControllerManager(shared),
		plane.KarmadaScheduler:           runScheduler(shared),
		plane.KarmadaWebhook:             webhook.Run,
	}
}

func memberRunners() map[string]local.Runner {
	return map[string]local.Runner{
		plane.Etcd:                  kube.RunEtcd,
		plane.KubeAPIServer:         kube.RunAPIServer,
		plane.KubeControllerManager: kube.RunControllerManager,
		plane.KubeScheduler:         kube.RunScheduler,
		plane.Nodes:                 planerole.RunNodes,
	}
}

func runControllerManager(shared *sharedManager) local.Runner {
	return func(ctx context.Context, args []string) error {
		return controllermanager.Run(ctx, args, controllermanager.Process{Share: shared.publish})
	}
}

func runScheduler(shared *sharedManager) local.Runner {
	return func(ctx context.Context, args []string) error {
		return scheduler.RunShared(ctx, args, scheduler.Process{}, shared.wait)
	}
}

// A sharedManager is how the controller manager of a process gives its manager to the roles that share its cache. Each
// of them has its own health and its own failures: the process ends with whichever fails.
type sharedManager struct {
	ready   chan struct{}
	manager manager.Manager // read after ready
}

func newSharedManager() *sharedManager { return &sharedManager{ready: make(chan struct{})} }

// publish is called once.
func (s *sharedManager) publish(mgr manager.Manager) {
	s.manager = mgr
	close(s.ready)
}

// wait returns the manager as soon as there is one, or the error of ctx.
func (s *sharedManager) wait(ctx context.Context) (manager.Manager, error) {
	select {
	case <-s.ready:
		return s.manager, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NewCommand returns the command of the karmada binary as it is called by args, the program's name first. Called by
// the name of a role it is that role. Otherwise the role is the first argument, and only that role's command is made.
func NewCommand(args []string, streams genericiooptions.IOStreams) (*cobra.Command, error) {
	program := filepath.Base(args[0])
	for _, r := range roles() {
		if r.name == program {
			return r.new(streams)
		}
	}
	root := &cobra.Command{
		Use:           "karmada",
		Short:         "The servers of Karmada",
		Long:          "The servers of Karmada. Each role is a sub-command; called by the name of a role (by a link, say) this program is that role.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	// A library registers a flag of this name for its own version; ours is the one that is meant.
	ours := root.Flags().Bool("version", false, "Print the version information.")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if !*ours {
			return cmd.Help()
		}
		text, err := version.Get().Text("karmada", "")
		if err != nil {
			return err
		}
		_, err = io.WriteString(streams.Out, text)
		return err
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(role.NewVersion("karmada"))
	for _, r := range roles() {
		if len(args) > 1 && args[1] == r.name {
			cmd, err := r.new(streams)
			if err != nil {
				return nil, err
			}
			root.AddCommand(cmd)
			continue
		}
		root.AddCommand(&cobra.Command{Use: r.name, Short: r.short, RunE: func(*cobra.Command, []string) error { return nil }})
	}
	return root, nil
}
