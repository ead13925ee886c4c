package kube

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/cache"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// NewSchedulerCommand returns the unmodified kube-scheduler command.
func NewSchedulerCommand() *cobra.Command { return scheduler.NewSchedulerCommand() }

// RunScheduler runs kube-scheduler with the flags of its command until ctx is done.
func RunScheduler(ctx context.Context, args []string) error {
	o := options.NewOptions()
	if err := parse("kube-scheduler", *o.Flags, args); err != nil {
		return err
	}
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set the feature gates of kube-scheduler: %w", err)
	}
	name, err := cache.NewInformerName("kube-scheduler")
	if err != nil {
		return fmt.Errorf("name the informers of kube-scheduler: %w", err)
	}
	o.InformerName = name

	c, s, err := scheduler.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("configure kube-scheduler: %w", err)
	}
	// Without leader election upstream returns an error whenever it ends, a wanted end included.
	if err := scheduler.Run(ctx, c, s); ctx.Err() == nil {
		return err
	}
	return nil
}
