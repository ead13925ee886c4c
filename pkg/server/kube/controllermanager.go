package kube

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// NewControllerManagerCommand returns the unmodified kube-controller-manager command.
func NewControllerManagerCommand() *cobra.Command {
	return controllermanager.NewControllerManagerCommand()
}

// RunControllerManager runs kube-controller-manager with the flags of its command until ctx is done and its
// controllers have stopped.
func RunControllerManager(ctx context.Context, args []string) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("make kube-controller-manager options: %w", err)
	}
	known, disabled, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	if err := parse("kube-controller-manager", o.Flags(known, disabled, aliases), args); err != nil {
		return err
	}
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set the feature gates of kube-controller-manager: %w", err)
	}
	c, err := o.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	return controllermanager.Run(ctx, c.Complete())
}
