package kubectl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// flagsOf lists the flags of fs, so that fs may change while they are walked.
func flagsOf(fs *pflag.FlagSet) []*pflag.Flag {
	var flags []*pflag.Flag
	fs.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

func (v verb) drops(flag string) bool { return slices.Contains(v.drop, flag) }

// A reach says how a verb may leave the control plane for member clusters
// (spec: cli/commands.md 2.2).
type reach struct {
	// scopes are the values of --operation-scope; none means no such flag.
	scopes []factory.Scope
	// cluster adds --cluster, which scope members then requires; clusters adds
	// -C, --clusters, which it does not.
	cluster, clusters bool
	// propagate adds apply's -C, --cluster and --all-clusters.
	propagate bool
}

// errNoMembers is what every way to a member ends with.
var errNoMembers = errors.New("reaching member clusters is not available in this version; leave --operation-scope at karmada, give no cluster, and use the member's own kubeconfig for what only the member has")

// errNoPropagation is what apply's cluster flags end with.
var errNoPropagation = errors.New("creating policies with -C/--cluster or --all-clusters is not available in this version; apply the object without it, together with a PropagationPolicy or ClusterPropagationPolicy that selects it")

// addReach gives cmd the flags of r, and a check of them before it runs.
func (s Set) addReach(cmd *cobra.Command, r reach) error {
	var (
		scope    factory.Scope
		cluster  string
		clusters []string
		all      bool
		checks   []func() error
	)
	if len(r.scopes) > 0 {
		if err := factory.AddScopeFlag(cmd, &scope, r.scopes...); err != nil {
			return err
		}
		checks = append(checks, func() error { return scope.Check(r.scopes...) })
	}
	switch {
	case r.cluster:
		cmd.Flags().StringVar(&cluster, "cluster", "", "Used to specify a target member cluster and only takes effect when the command's operation scope is members, for example: --operation-scope=members --cluster=member1")
		checks = append(checks, func() error {
			if scope == factory.ScopeMembers && cluster == "" {
				return errors.New("must specify a member cluster")
			}
			return nil
		})
	case r.clusters:
		cmd.Flags().StringSliceVarP(&clusters, "clusters", "C", nil, "Used to specify target member clusters and only takes effect when the command's operation scope is members or all, for example: --operation-scope=all --clusters=member1,member2")
	case r.propagate:
		cmd.Flags().BoolVar(&all, "all-clusters", false, "If present, propagates a group of resources to all member clusters.")
		cmd.Flags().StringSliceVarP(&clusters, "cluster", "C", nil, "If present, propagates a group of resources to specified clusters.")
		checks = append(checks, func() error {
			switch {
			case all && len(clusters) > 0:
				return errors.New("--all-clusters and --cluster cannot be used together")
			case all || len(clusters) > 0:
				return errNoPropagation
			}
			return nil
		})
	}
	checks = append(checks, func() error {
		if (scope != "" && scope != factory.ScopeKarmada) || cluster != "" || len(clusters) > 0 {
			return errNoMembers
		}
		return nil
	})

	for _, name := range []string{"cluster", "clusters"} {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, s.Factory.CompleteClusters); err != nil {
			return fmt.Errorf("complete --%s: %w", name, err)
		}
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
