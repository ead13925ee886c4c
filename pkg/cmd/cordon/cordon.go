// Package cordon implements karmadactl cordon and uncordon: a taint that keeps new workloads out of a cluster.
package cordon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/taint"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const cordonExample = `
	# Mark cluster foo as unschedulable
	%[1]s cordon foo`

const uncordonExample = `
	# Mark cluster foo as schedulable
	%[1]s uncordon foo`

// NewCordonCmd returns the cordon command; program is what users type.
func NewCordonCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	cmd := &cobra.Command{
		Use:     "cordon CLUSTER",
		Short:   "Mark cluster as unschedulable",
		Long:    "Mark cluster as unschedulable: nothing new is scheduled to it, what it has stays.",
		Example: templates.Examples(fmt.Sprintf(cordonExample, program)),
	}
	return complete(cmd, f, s, true)
}

// NewUncordonCmd returns the uncordon command; program is what users type.
func NewUncordonCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	cmd := &cobra.Command{
		Use:     "uncordon CLUSTER",
		Short:   "Mark cluster as schedulable",
		Long:    "Mark cluster as schedulable: take back what cordon did.",
		Example: templates.Examples(fmt.Sprintf(uncordonExample, program)),
	}
	return complete(cmd, f, s, false)
}

// complete adds what the two have in common (spec: cli/commands.md 4.1).
func complete(cmd *cobra.Command, f *factory.Factory, s genericiooptions.IOStreams, cordon bool) (*cobra.Command, error) {
	var dryRun bool
	cmd.SilenceUsage, cmd.DisableFlagsInUseLine = true, true
	cmd.Args = oneCluster
	cmd.ValidArgsFunction = f.CompleteOneCluster
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := toOptions(f, s, args[0], cordon, dryRun)
		if err != nil {
			return err
		}
		return o.Run(cmd.Context())
	}
	f.AddConnectionFlags(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Look, and say what would be done, without doing it.")
	return cmd, f.RegisterCompletions(cmd)
}

func oneCluster(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("cluster name is required")
	case len(args) > 1:
		return errors.New("more than one cluster name is not supported")
	}
	return nil
}

// Options are a complete and valid request to cordon a cluster, or to uncordon it.
type Options struct {
	Cluster string
	Cordon  bool
	DryRun  bool
	Client  client.Client
	genericiooptions.IOStreams
}

func toOptions(f *factory.Factory, s genericiooptions.IOStreams, name string, cordon, dryRun bool) (*Options, error) {
	if err := registration.ValidateClusterName(name); err != nil {
		return nil, err
	}
	cfg, err := f.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	api, err := registration.NewAPI(cfg)
	if err != nil {
		return nil, err
	}
	return &Options{Cluster: name, Cordon: cordon, DryRun: dryRun, Client: api.Client, IOStreams: s}, nil
}

// Run puts the taint on, or takes it off, and says whether there was anything to do.
func (o *Options) Run(ctx context.Context) error {
	changed, err := taint.Update(ctx, o.Client, o.Cluster, o.DryRun, o.change)
	if err != nil {
		return err
	}
	done := "cordoned"
	if !o.Cordon {
		done = "uncordoned"
	}
	if !changed {
		done = "already " + done
	}
	_, err = fmt.Fprintf(o.Out, "%s cluster %s\n", o.Cluster, done)
	return err
}

// change leaves the taints of others alone.
func (o *Options) change(found []corev1.Taint) ([]corev1.Taint, error) {
	ours := corev1.Taint{Key: clusterv1alpha1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	is := func(t corev1.Taint) bool { return t.MatchTaint(&ours) }
	switch {
	case !o.Cordon:
		return slices.DeleteFunc(slices.Clone(found), is), nil
	case slices.ContainsFunc(found, is):
		return found, nil
	}
	return append(slices.Clone(found), ours), nil
}
