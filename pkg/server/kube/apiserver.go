package kube

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	utilversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// NewAPIServerCommand returns the unmodified kube-apiserver command.
func NewAPIServerCommand() *cobra.Command { return apiserver.NewAPIServerCommand() }

// RunAPIServer runs kube-apiserver with the flags of its command until ctx is done and the requests in flight are
// answered.
func RunAPIServer(ctx context.Context, args []string) error {
	o := options.NewServerRunOptions()
	if err := parse("kube-apiserver", o.Flags(), args); err != nil {
		return err
	}
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("set the feature gates of kube-apiserver: %w", err)
	}
	// The loopback clients of the API server would warn the log about their own use of old versions.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := o.Complete(ctx)
	if err != nil {
		return fmt.Errorf("complete kube-apiserver options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("check kube-apiserver options: %w", utilerrors.NewAggregate(errs))
	}
	return runAPIServer(ctx, completed)
}

// runAPIServer does what apiserver.Run does, with lean storage of custom resources.
func runAPIServer(ctx context.Context, o options.CompletedOptions) error {
	klog.FromContext(ctx).Info("Starting kube-apiserver", "version", utilversion.Get().String())
	name, err := cache.NewInformerName("kube-apiserver")
	if err != nil {
		return fmt.Errorf("name the informers of kube-apiserver: %w", err)
	}
	o.InformerName = name
	config, err := apiserver.NewConfig(o)
	if err != nil {
		return fmt.Errorf("configure kube-apiserver: %w", err)
	}
	extra := &config.ApiExtensions.ExtraConfig
	extra.CRDRESTOptionsGetter = lean{extra.CRDRESTOptionsGetter}
	completed, err := config.Complete()
	if err != nil {
		return fmt.Errorf("configure kube-apiserver: %w", err)
	}
	server, err := apiserver.CreateServerChain(completed)
	if err != nil {
		return fmt.Errorf("make kube-apiserver: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare kube-apiserver: %w", err)
	}
	return prepared.Run(ctx)
}

// parse gives args to the named flag sets of an upstream component.
func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	cmd := &cobra.Command{Use: name, SilenceErrors: true, SilenceUsage: true}
	logs.AddFlags(sets.FlagSet("global"), logs.SkipLoggingConfigurationFlags())
	for _, fs := range sets.FlagSets {
		cmd.Flags().AddFlagSet(fs)
	}
	if err := cmd.ParseFlags(args); err != nil {
		return fmt.Errorf("parse %s flags: %w", name, err)
	}
	if extra := cmd.Flags().Args(); len(extra) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q", name, extra)
	}
	return nil
}
