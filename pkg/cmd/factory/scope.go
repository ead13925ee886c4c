package factory

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Scope says which clusters a command looks at (spec: cli/commands.md 2.2).
type Scope string

const (
	// ScopeKarmada is the control plane.
	ScopeKarmada Scope = "karmada"
	// ScopeMembers is one or more member clusters.
	ScopeMembers Scope = "members"
	// ScopeAll is both.
	ScopeAll Scope = "all"
)

var _ pflag.Value = (*Scope)(nil)

func (s *Scope) String() string { return string(*s) }

// Set takes one of the three values; the empty one changes nothing.
func (s *Scope) Set(v string) error {
	switch Scope(v) {
	case "":
	case ScopeKarmada, ScopeMembers, ScopeAll:
		*s = Scope(v)
	default:
		return fmt.Errorf("not support OperationScope: %s", v)
	}
	return nil
}

// Type is what help calls the value.
func (s *Scope) Type() string { return "operationScope" }

// Check fails when the command does not work in that scope.
func (s *Scope) Check(allowed ...Scope) error {
	if !slices.Contains(allowed, *s) {
		return fmt.Errorf("not support operation scope: %s", *s)
	}
	return nil
}

// AddScopeFlag adds -s, --operation-scope to cmd, for the allowed scopes.
func AddScopeFlag(cmd *cobra.Command, s *Scope, allowed ...Scope) error {
	if *s == "" {
		*s = ScopeKarmada
	}
	cmd.Flags().VarP(s, "operation-scope", "s", fmt.Sprintf("Used to control the operation scope of the command. The optional values are %s. Defaults to %s.", list(allowed), *s))
	names := make([]string, 0, len(allowed))
	for _, a := range allowed {
		names = append(names, string(a))
	}
	err := cmd.RegisterFlagCompletionFunc("operation-scope", values(names...))
	if err != nil {
		return fmt.Errorf("complete --operation-scope of %s: %w", cmd.Name(), err)
	}
	return nil
}

func list(scopes []Scope) string {
	text := ""
	for i, s := range scopes {
		switch {
		case i > 0 && i == len(scopes)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += string(s)
	}
	return text
}

// CheckClusterFlags refuses flags that are to name member clusters, and are empty:
// what an unset variable of a script leaves must not mean the control plane, or all.
func CheckClusterFlags(fs *pflag.FlagSet) error {
	for _, name := range []string{"cluster", "clusters"} {
		f := fs.Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		named := []string{f.Value.String()}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			named = many.GetSlice()
		}
		if len(named) == 0 || slices.Contains(named, "") {
			return fmt.Errorf("the cluster cannot be empty: --%s needs names of member clusters", name)
		}
	}
	return nil
}
