// Package webhook is the role karmada-webhook: it serves the admission webhooks
// of the control plane (spec: behaviour/08 8.1, cli/components.md 3).
//
// Flags are what was typed; New is the command, Run takes the same flags inside
// a process that somebody else has set up. It has no cache, and asks the API
// server only what a request makes it ask: it is ready as soon as it listens,
// also while the API server is not, and what it costs is its requests.
package webhook

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// New returns the command of the role.
func New(streams genericiooptions.IOStreams) (*cobra.Command, error) {
	f := NewFlags()
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return nil, err
	}
	return role.NewCommand(role.Role{
		Name:  names.Webhook,
		Short: "Serve the admission webhooks of the control plane",
		Long:  "The karmada-webhook is asked by the API server of the control plane when users write objects of Karmada, or delete what is protected. It fills in what they leave out, refuses what is wrong, and translates bindings for old clients.",
		Sets:  sets,
		Run: func(ctx context.Context) error {
			c, err := f.complete(gate)
			if err != nil {
				return err
			}
			if err := f.Logs.Apply(gate); err != nil {
				return err
			}
			return c.Run(ctx)
		},
	}, streams), nil
}

// Run runs the role with the flags of its command until ctx is done and the
// requests in flight are answered. It neither handles signals nor sets up
// logging: flags for logging are accepted and have no effect. Feature gates of
// the process are left alone.
func Run(ctx context.Context, args []string) error {
	c, err := Parse(args)
	if err != nil {
		return fmt.Errorf("%s: %w", names.Webhook, err)
	}
	if err := c.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", names.Webhook, err)
	}
	return nil
}

// Completed is a complete and valid choice of what to serve; only Parse and the
// command make one.
type Completed struct {
	flags *Flags
	gate  featuregate.FeatureGate
}

// Parse completes the flags of the command. All that is wrong is in the one
// error.
func Parse(args []string) (Completed, error) {
	f := NewFlags()
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return Completed{}, err
	}
	if err := role.Parse(names.Webhook, sets, args); err != nil {
		return Completed{}, err
	}
	return f.complete(gate)
}

func (f *Flags) complete(gate featuregate.MutableFeatureGate) (Completed, error) {
	errs := f.Validate(gate)
	errs = append(errs, f.FeatureGates.ApplyValid(gate)...)
	errs = append(errs, f.Logs.Validate(gate)...) // may need gates that were just set
	if err := flags.Error(errs); err != nil {
		return Completed{}, err
	}
	return Completed{flags: f, gate: gate}, nil
}

// Run serves until ctx is done.
func (c Completed) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName(names.Webhook)
	log.Info("Starting", "version", version.Get().String())
	c.flags.FeatureGates.Report(log)
	config, err := c.flags.Kubeconfig.RESTConfig()
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	hooks, err := newHooks(role.ClientConfig(config, names.Webhook, c.flags.API), c.gate, c.flags.AllowNoExecuteTaintPolicy)
	if err != nil {
		return err
	}
	servers, err := c.flags.servers(log, hooks)
	if err != nil {
		return err
	}
	if err := listen(ctx, servers); err != nil {
		return err
	}
	log.Info("Serving webhooks", "address", servers[0].listener.Addr().String())
	if err := serve(ctx, servers); err != nil {
		return err
	}
	log.Info("Stopped")
	return nil
}
