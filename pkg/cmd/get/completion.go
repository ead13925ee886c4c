package get

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

// complete offers types and names of what get would ask: the control plane, or members, all at once. One that cannot say
// costs its own names only.
func (f *Flags) complete(c *factory.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		scope := f.Scope
		if len(f.Clusters) > 0 && !cmd.Flags().Changed("operation-scope") {
			scope = factory.ScopeMembers
		}
		if scope == factory.ScopeKarmada || scope == factory.ScopeAll {
			names, directive := completion.ResourceTypeAndNameCompletionFunc(c)(cmd, args, typed)
			if scope == factory.ScopeKarmada || len(args) == 0 && !strings.Contains(typed, "/") {
				return names, directive
			}
			members, _ := f.completeIn(cmd, c, args, typed)
			return union(names, members), directive
		}
		return f.completeIn(cmd, c, args, typed)
	}
}

// completeIn offers what the chosen members have. What types there are is asked of the first one only.
func (f *Flags) completeIn(cmd *cobra.Command, c *factory.Factory, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	types := len(args) == 0 && !strings.Contains(typed, "/")
	members, err := f.Fleet.Names(cmd.Context(), f.Clusters)
	switch {
	case err != nil || len(members) == 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case types && len(f.Clusters) == 0:
		return completion.ResourceTypeAndNameCompletionFunc(c)(cmd, args, typed)
	case types:
		members = []string{f.Clusters[0]}
	}
	var mu sync.Mutex
	var offered []cobra.Completion
	directive := cobra.ShellCompDirectiveNoFileComp
	_ = fleet.Each(cmd.Context(), members, func(ctx context.Context, name string) error {
		var member cmdutil.Factory = c.Through(ctx, factory.ThroughOptions{Cluster: name, PlaneTypes: !types})
		names, said := completion.ResourceTypeAndNameCompletionFunc(member)(cmd, args, typed)
		mu.Lock()
		defer mu.Unlock()
		offered, directive = union(offered, names), said
		return nil
	})
	return offered, directive
}

func union(x, y []cobra.Completion) []cobra.Completion {
	all := slices.Concat(x, y)
	slices.Sort(all)
	return slices.Compact(all)
}
