// Package kubectl offers kubectl's own commands as verbs of karmadactl. What
// differs per verb (its usage line, its flags, the scopes it knows) is a row
// of one table; what is the same for all is done once, here.
package kubectl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// A Set makes the verbs of one root command.
type Set struct {
	// Factory reaches the control plane.
	Factory *factory.Factory
	// Streams are what the commands read and print.
	Streams genericiooptions.IOStreams
	// Program is what users type: "karmadactl" or "kubectl karmada".
	Program string
}

// Commands returns the named verbs, in that order.
func (s Set) Commands(names ...string) ([]*cobra.Command, error) {
	rows := make(map[string]verb)
	for _, v := range s.verbs() {
		rows[v.name] = v
	}
	cmds := make([]*cobra.Command, 0, len(names))
	for _, name := range names {
		v, ok := rows[name]
		if !ok {
			return nil, fmt.Errorf("%q is not one of kubectl's verbs", name)
		}
		cmd, err := s.adapt(v)
		if err != nil {
			return nil, fmt.Errorf("make the %s command: %w", name, err)
		}
		cmds = append(cmds, cmd)
	}
	return cmds, nil
}

// adapt turns kubectl's command into ours.
func (s Set) adapt(v verb) (*cobra.Command, error) {
	choice := s.newChoice()
	cmd := v.command(choice)
	if v.use != "" {
		cmd.Use = v.use
	}
	if v.short != "" {
		cmd.Short = v.short
	}
	if v.long != "" {
		cmd.Long = templates.LongDesc(v.long)
	}
	if v.example != "" {
		cmd.Example = templates.Examples(v.example)
	}
	if v.complete != nil {
		cmd.ValidArgsFunction = v.complete(choice)
	}
	cmd.DisableFlagsInUseLine = true

	completions, err := v.reshape(cmd)
	if err != nil {
		return nil, err
	}
	flags := cmd.Flags()
	if v.inherited {
		flags = cmd.PersistentFlags()
	}
	s.Factory.AddConnectionFlags(flags)
	if v.namespaced {
		s.Factory.AddNamespaceFlag(flags)
	}
	if err := s.Factory.RegisterCompletions(cmd); err != nil {
		return nil, err
	}
	if cmd.Flag("container") != nil {
		completions["container"] = completion.ContainerCompletionFunc(choice)
	}
	if err := s.addReach(cmd, v.reach, choice, completions); err != nil {
		return nil, err
	}
	s.rewrite(cmd)
	returnErrors(cmd)
	return cmd, nil
}

// reshape gives cmd the flags of the contract: those of kubectl without the
// dropped ones, the renamed ones under their new name, with the contract's
// defaults. It returns what completes their values, which is to be registered
// anew.
func (v verb) reshape(cmd *cobra.Command) (map[string]cobra.CompletionFunc, error) {
	had, completions := cmd.Flags(), make(map[string]cobra.CompletionFunc)
	for _, f := range flagsOf(had) {
		if complete, ok := cmd.GetFlagCompletionFunc(f.Name); ok && !v.drops(f.Name) {
			completions[f.Name] = complete
		}
	}
	cmd.ResetFlags()
	for _, theirs := range flagsOf(had) {
		if v.drops(theirs.Name) {
			continue
		}
		// A copy: cobra remembers what completes a flag by its address.
		ours := *theirs
		f := &ours
		if value, ok := v.values[f.Name]; ok {
			if err := f.Value.Set(value); err != nil {
				return nil, fmt.Errorf("set the default of --%s: %w", f.Name, err)
			}
			f.DefValue = value
		}
		if usage, ok := v.usages[f.Name]; ok {
			f.Usage = usage
		}
		if name, ok := v.rename[f.Name]; ok {
			// kubectl's name goes on working, for hands that know it.
			old := *f
			old.Shorthand, old.Hidden = "", true
			cmd.Flags().AddFlag(&old)
			f.Name = name
		}
		cmd.Flags().AddFlag(f)
	}
	return completions, nil
}

// rewrite makes help speak of the program that the user called. Field managers
// and annotations ("kubectl-create", "kubectl.kubernetes.io/…") are no words.
func (s Set) rewrite(cmd *cobra.Command) {
	ours := strings.NewReplacer("kubectl ", s.Program+" ").Replace
	cmd.Short, cmd.Long, cmd.Example = ours(cmd.Short), ours(cmd.Long), ours(cmd.Example)
	for _, f := range flagsOf(cmd.Flags()) {
		f.Usage = ours(f.Usage)
	}
	for _, sub := range cmd.Commands() {
		s.rewrite(sub)
	}
}
