// Package cmd is karmadactl: the root command and its groups. Each verb, or
// family of verbs, is a package below this one; what they share is in factory.
package cmd

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/agentprocess"
	"github.com/karmadactl/karmadactl/pkg/cmd/completion"
	"github.com/karmadactl/karmadactl/pkg/cmd/cordon"
	"github.com/karmadactl/karmadactl/pkg/cmd/deinit"
	"github.com/karmadactl/karmadactl/pkg/cmd/demote"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/get"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/cmd/initcmd"
	"github.com/karmadactl/karmadactl/pkg/cmd/join"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
	"github.com/karmadactl/karmadactl/pkg/cmd/options"
	"github.com/karmadactl/karmadactl/pkg/cmd/playground"
	"github.com/karmadactl/karmadactl/pkg/cmd/promote"
	"github.com/karmadactl/karmadactl/pkg/cmd/register"
	"github.com/karmadactl/karmadactl/pkg/cmd/start"
	"github.com/karmadactl/karmadactl/pkg/cmd/status"
	"github.com/karmadactl/karmadactl/pkg/cmd/stop"
	"github.com/karmadactl/karmadactl/pkg/cmd/supervise"
	"github.com/karmadactl/karmadactl/pkg/cmd/taint"
	"github.com/karmadactl/karmadactl/pkg/cmd/token"
	"github.com/karmadactl/karmadactl/pkg/cmd/top"
	"github.com/karmadactl/karmadactl/pkg/cmd/tree"
	"github.com/karmadactl/karmadactl/pkg/cmd/unjoin"
	"github.com/karmadactl/karmadactl/pkg/cmd/unregister"
	"github.com/karmadactl/karmadactl/pkg/cmd/version"
	"github.com/karmadactl/karmadactl/pkg/cmd/why"
)

// completionTimeout bounds what a user waits for at the prompt. What is slower feels broken; over a long line
// completionTimeoutEnv allows for more (spec: cli/commands.md 2.5, where it is five seconds).
const (
	completionTimeout    = 250 * time.Millisecond
	completionTimeoutEnv = "KARMADACTL_COMPLETION_TIMEOUT"
)

// A root is what the constructors of commands are given.
type root struct {
	factory *factory.Factory
	streams genericiooptions.IOStreams
	// program is what users type: "karmadactl" or "kubectl karmada".
	program string
}

// groups are all commands, as root help lists them (spec: cli/commands.md 1.3).
// New commands are added here, and nowhere else. A group without commands is
// not shown.
func (r root) groups() (templates.CommandGroups, error) {
	var errs []error
	fromKubectl := func(names ...string) []*cobra.Command {
		set := kubectl.Set{Factory: r.factory, Streams: r.streams, Program: r.program}
		cmds, err := set.Commands(names...)
		errs = append(errs, err)
		return cmds
	}
	// A constructor that adds completions can fail.
	construct := func(newCmd func(*factory.Factory, genericiooptions.IOStreams, string) (*cobra.Command, error)) *cobra.Command {
		cmd, err := newCmd(r.factory, r.streams, r.program)
		errs = append(errs, err)
		return cmd
	}

	groups := templates.CommandGroups{
		{Message: "Basic Commands:", Commands: slices.Concat(
			fromKubectl("explain"), []*cobra.Command{construct(get.NewCmd)}, fromKubectl("create", "delete", "edit"),
		)},
		{Message: "Cluster Registration Commands:", Commands: []*cobra.Command{
			initcmd.NewCmd(r.streams, r.program), deinit.NewCmd(r.streams, r.program),
			construct(join.NewCmd), construct(unjoin.NewCmd),
			construct(token.NewCmd),
			register.NewCmd(r.factory, r.streams, r.program), unregister.NewCmd(r.factory, r.streams, r.program),
		}},
		{Message: "Control Plane Commands:", Commands: []*cobra.Command{
			start.NewCmd(r.streams, r.program), stop.NewCmd(r.streams, r.program), status.NewCmd(r.streams, r.program),
		}},
		{Message: "Cluster Management Commands:", Commands: []*cobra.Command{
			construct(cordon.NewCordonCmd), construct(cordon.NewUncordonCmd), construct(taint.NewCmd),
		}},
		{Message: "Troubleshooting and Debugging Commands:", Commands: append(
			fromKubectl("attach", "logs", "exec", "describe"),
			construct(why.NewCmd), construct(tree.NewCmd),
		)},
		{Message: "Advanced Commands:", Commands: slices.Concat(
			fromKubectl("apply"), []*cobra.Command{construct(promote.NewCmd), construct(demote.NewCmd), construct(top.NewCmd)}, fromKubectl("patch"),
		)},
		{Message: "Settings Commands:", Commands: append(
			fromKubectl("label", "annotate"),
			completion.NewCmd(r.streams, r.program),
		)},
		{Message: "Other Commands:", Commands: append(
			fromKubectl("api-resources", "api-versions"),
			playground.NewCmd(r.streams, r.program),
		)},
	}
	groups = slices.DeleteFunc(groups, func(g templates.CommandGroup) bool { return len(g.Commands) == 0 })
	return groups, errors.Join(errs...)
}

// ungrouped are the commands that stand outside the groups.
func (r root) ungrouped() []*cobra.Command {
	return []*cobra.Command{
		version.NewCmd(r.streams, r.program),
		options.NewCmd(r.streams, r.program),
		supervise.NewCmd(),
		agentprocess.NewCmd(),
	}
}

// promised are the verbs of the contract. One that is not among the commands
// is answered with the reason, instead of "unknown command".
func promised() []string {
	return []string{
		"init", "deinit", "addons", "join", "unjoin", "token", "register", "unregister",
		"cordon", "uncordon", "taint",
		"attach", "logs", "exec", "describe", "interpret",
		"promote", "top",
	}
}

// New returns the root command, for a process that was called as argv0: as
// kubectl-karmada it speaks of itself as "kubectl karmada", as anything else
// as "karmadactl" (spec: cli/commands.md 1.1).
func New(argv0 string, s genericiooptions.IOStreams) (*cobra.Command, *factory.Factory, error) {
	name, program := "karmadactl", "karmadactl"
	if called := strings.TrimSuffix(filepath.Base(argv0), ".exe"); called == "kubectl-karmada" {
		name, program = called, "kubectl karmada"
	}
	f := factory.New(factory.Options{Program: program, ErrOut: s.ErrOut, DefaultKubeconfig: host.DefaultKubeconfig})

	cmd := &cobra.Command{
		Use:           name,
		Short:         program + " controls a Kubernetes Cluster Federation.",
		Long:          program + " controls a Kubernetes Cluster Federation.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
				f.LimitTime(promptPatience(os.Getenv(completionTimeoutEnv)))
			}
			return factory.CheckClusterFlags(cmd.Flags())
		},
	}
	cmd.SetIn(s.In)
	cmd.SetOut(s.Out)
	cmd.SetErr(s.ErrOut)

	cmd.SetGlobalNormalizationFunc(cliflag.WarnWordSepNormalizeFunc)
	addGlobalFlags(cmd.PersistentFlags(), f)

	r := root{factory: f, streams: s, program: program}
	groups, err := r.groups()
	if err != nil {
		return nil, nil, fmt.Errorf("make the commands of %s: %w", program, err)
	}
	groups.Add(cmd)
	cmd.AddCommand(r.ungrouped()...)
	addAbsent(cmd, program)
	templates.ActsAsRootCommand(cmd, []string{"options"}, groups...)
	callByDisplayName(cmd)
	if err := f.CompleteRest(cmd); err != nil {
		return nil, nil, err
	}
	return cmd, f, nil
}

// promptPatience returns how long completion may take. What is no duration counts for nothing: a prompt is no place to
// complain.
func promptPatience(wanted string) time.Duration {
	if d, err := time.ParseDuration(wanted); err == nil && d > 0 {
		return d
	}
	return completionTimeout
}

// addGlobalFlags adds what every command takes (spec: cli/commands.md 1.2).
// klog's flags live in a set of their own: the process's flag.CommandLine
// belongs to nobody here.
func addGlobalFlags(fs *pflag.FlagSet, f *factory.Factory) {
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	logging.VisitAll(func(g *flag.Flag) {
		p := pflag.PFlagFromGoFlag(g)
		p.Name = strings.ReplaceAll(p.Name, "_", "-")
		fs.AddFlag(p)
	})
	f.AddKubeconfigFlag(fs)
}

// addAbsent adds, unseen, the promised verbs that this version does not have.
func addAbsent(cmd *cobra.Command, program string) {
	for _, name := range promised() {
		if slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name }) {
			continue
		}
		cmd.AddCommand(&cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true, // its flags are unknown here, and must not be the complaint
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("%q is not available in this version; %q lists the commands that are", name, program+" --help")
			},
		})
	}
}

// callByDisplayName makes the tips below help call the program as the user
// does. kubectl's template takes the command's name there, which for a plugin
// is its file's.
func callByDisplayName(cmd *cobra.Command) {
	usage, name, shown := cmd.UsageFunc(), cmd.Name(), cmd.DisplayName()
	if name == shown {
		return
	}
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var text strings.Builder
		c.SetOut(&text)
		err := usage(c)
		c.SetOut(out)
		if err != nil {
			return fmt.Errorf("print usage of %s: %w", c.CommandPath(), err)
		}
		_, err = strings.NewReplacer(`"`+name+" ", `"`+shown+" ").WriteString(out, text.String())
		return err
	})
}
