package factory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// someNames is how many names are offered at most: nobody reads more at a prompt.
const someNames = 500

// LimitTime ends all that completes the command line after d from now, and requests before that, so that one member that
// is silent costs its own names only: a user waits at the prompt (spec: cli/commands.md 2.5).
func (f *Factory) LimitTime(d time.Duration) {
	f.conn.until = time.Now().Add(d)
	f.conn.timeout = d * 3 / 4
}

// Bounded returns complete with an end: what is not known when LimitTime is over is not offered. Without this a
// kubeconfig that is a pipe, or a credential plugin, could take for ever.
func (f *Factory) Bounded(complete cobra.CompletionFunc) cobra.CompletionFunc {
	type answer struct {
		names     []cobra.Completion
		directive cobra.ShellCompDirective
	}
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if f.conn.until.IsZero() {
			return complete(cmd, args, typed)
		}
		answers := make(chan answer, 1)
		go func() {
			names, directive := complete(cmd, args, typed)
			answers <- answer{names, directive}
		}()
		end := time.NewTimer(time.Until(f.conn.until))
		defer end.Stop()
		select {
		case a := <-answers:
			return a.names, a.directive
		case <-end.C:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// RegisterCompletions completes the values of the flags that AddConnectionFlags
// and AddNamespaceFlag gave cmd (spec: cli/commands.md 2.5).
func (f *Factory) RegisterCompletions(cmd *cobra.Command) error {
	for name, complete := range map[string]cobra.CompletionFunc{
		"karmada-context": f.completeContexts,
		"namespace":       f.completeNamespaces,
	} {
		if cmd.Flag(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, f.Bounded(complete)); err != nil {
			return fmt.Errorf("complete --%s of %s: %w", name, cmd.Name(), err)
		}
	}
	return nil
}

func (f *Factory) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := f.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginWith(typed, maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeContextsIn completes the contexts of the kubeconfig that another flag names, or of the one that users of
// kubectl expect.
func (f *Factory) completeContextsIn(flag string) cobra.CompletionFunc {
	return f.Bounded(func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = cmd.Flag(flag).Value.String()
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginWith(typed, maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *Factory) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return beginWith(typed, slices.Values(f.names(cmd.Context(), schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}))), cobra.ShellCompDirectiveNoFileComp
}

// CompleteClusters completes the names of member clusters, as a value or as the last of a list with commas, or as one
// more argument.
func (f *Factory) CompleteClusters(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.Bounded(f.completeClusters)(cmd, args, typed)
}

func (f *Factory) completeClusters(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before, last := "", typed
	if at := strings.LastIndex(typed, ","); at >= 0 {
		before, last = typed[:at+1], typed[at+1:]
	}
	given := append(strings.Split(before, ","), args...)
	var offered []cobra.Completion
	for _, name := range beginWith(last, slices.Values(f.names(cmd.Context(), clusterv1alpha1.GroupVersion.WithResource("clusters")))) {
		if !slices.Contains(given, name) {
			offered = append(offered, before+name)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// CompleteOneCluster completes the name of a member cluster as the one argument.
func (f *Factory) CompleteOneCluster(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.CompleteClusters(cmd, args, typed)
}

// CompleteOneClusterAt does so for a command that has flags of other names for the way to the control plane.
func (f *Factory) CompleteOneClusterAt(kubeconfigFlag, contextFlag string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		f.conn.kubeconfig, f.conn.context = cmd.Flag(kubeconfigFlag).Value.String(), cmd.Flag(contextFlag).Value.String()
		return f.CompleteOneCluster(cmd, args, typed)
	}
}

// names returns those of objects of the control plane. It asks for nothing else, and knows the type: a prompt cannot wait
// until all types are learnt.
func (f *Factory) names(ctx context.Context, resource schema.GroupVersionResource) []string {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return nil
	}
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: someNames})
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// beginWith returns, sorted, the names that begin with what was typed.
func beginWith(typed string, names func(func(string) bool)) []cobra.Completion {
	all := slices.Sorted(names)
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, typed) })
}
