package factory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"
)

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
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
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
	names := slices.Sorted(maps.Keys(config.Contexts))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) }), cobra.ShellCompDirectiveNoFileComp
}

func (f *Factory) completeNamespaces(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completion.CompGetResource(f, "namespaces", typed), cobra.ShellCompDirectiveNoFileComp
}

// CompleteClusters completes the names of member clusters.
func (f *Factory) CompleteClusters(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completion.CompGetResource(f, "clusters.cluster.karmada.io", typed), cobra.ShellCompDirectiveNoFileComp
}
