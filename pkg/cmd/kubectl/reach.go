package kubectl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

// A reach says how a verb may leave the control plane for a member cluster
// (spec: cli/commands.md 2.2).
type reach struct {
	// scopes are the values of --operation-scope; none means no such flag.
	scopes []factory.Scope
	// cluster adds --cluster, which scope members then requires.
	cluster bool
	// short is the shorthand of --cluster, "" none.
	short string
	// always is for a verb that has nothing to do in the control plane: it
	// requires --cluster.
	always bool
}

// A target is where a verb is to run, as far as flags have said.
type target struct {
	reach   reach
	scope   factory.Scope
	cluster string
	fleet   fleet.Fleet
	choice  *factory.Choice
}

// addReach gives cmd the flags of r, and chooses by them before it runs, or
// before completions of its flags are asked for.
func (s Set) addReach(cmd *cobra.Command, r reach, choice *factory.Choice, completions map[string]cobra.CompletionFunc) error {
	if !r.cluster {
		return s.register(cmd, completions)
	}
	t := &target{reach: r, fleet: fleet.Fleet{Factory: s.Factory}, choice: choice}
	if len(r.scopes) > 0 {
		if err := factory.AddScopeFlag(cmd, &t.scope, r.scopes...); err != nil {
			return err
		}
	}
	usage := "Name of the member cluster to ask, with operation scope members; that is the scope when a cluster is given and no scope is."
	if r.always {
		usage = "Name of the member cluster to ask. Required."
	}
	cmd.Flags().StringVarP(&t.cluster, "cluster", r.short, "", usage)
	t.fleet.AddPatienceFlag(cmd)
	if err := cmd.RegisterFlagCompletionFunc("cluster", s.Factory.CompleteClusters); err != nil {
		return fmt.Errorf("complete --cluster: %w", err)
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		return t.choose(cmd.Context(), cmd.Flags().Changed("operation-scope"))
	}
	there := func(complete cobra.CompletionFunc) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			// What exists in a member that is not named yet, or is not there, nobody knows.
			if t.choose(cmd.Context(), cmd.Flags().Changed("operation-scope")) != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(cmd, args, typed)
		}
	}
	if complete := cmd.ValidArgsFunction; complete != nil {
		cmd.ValidArgsFunction = there(complete)
	}
	for name, complete := range completions {
		completions[name] = there(complete)
	}
	return s.register(cmd, completions)
}

// register completes flags of cmd, with an end.
func (s Set) register(cmd *cobra.Command, completions map[string]cobra.CompletionFunc) error {
	for name, complete := range completions {
		if cmd.Flags().Lookup(name) == nil {
			continue // it has another name now
		}
		if err := cmd.RegisterFlagCompletionFunc(name, s.Factory.Bounded(complete)); err != nil {
			return fmt.Errorf("complete --%s: %w", name, err)
		}
	}
	return nil
}

// choose points the verb at the member that the flags name, if any.
func (t *target) choose(ctx context.Context, scopeGiven bool) error {
	if len(t.reach.scopes) > 0 {
		if err := t.scope.Check(t.reach.scopes...); err != nil {
			return err
		}
	}
	switch {
	case t.reach.always && t.cluster == "":
		return errors.New("must specify a cluster")
	case t.cluster != "" && !t.reach.always && t.scope == factory.ScopeKarmada && scopeGiven:
		return fmt.Errorf("--operation-scope=%s is the control plane, and --cluster=%s is a member cluster: give one of the two", t.scope, t.cluster)
	case t.scope == factory.ScopeMembers && t.cluster == "":
		return errors.New("must specify a member cluster")
	case t.cluster == "":
		return nil
	}
	member, err := t.fleet.Member(ctx, t.cluster)
	if err != nil {
		return err
	}
	t.choice.Factory = member
	return nil
}

// newChoice returns the factory that a verb gets: the control plane's, until
// its flags say otherwise.
func (s Set) newChoice() *factory.Choice {
	return &factory.Choice{Factory: cmdutil.Factory(s.Factory)}
}
