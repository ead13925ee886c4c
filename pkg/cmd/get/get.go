// Package get implements karmadactl get: objects of the control plane and of
// member clusters, in one answer.
package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

const long = `
	Display one or many resources of the Karmada control plane, of member clusters, or of both.

	Prints a table of the most important information about the specified resources. CLUSTER says where a row is from, and
	ADOPTION whether the control plane manages it there. The list can be filtered with a label selector and the --labels
	flag. For a namespaced resource type only the current namespace is shown, unless another is given.

	Member clusters are asked through the control plane, all at once. One that does not answer in time is named on standard
	error, and the exit code is 1; the others are shown.

	With --output=go-template and --template a Go template decides what is shown of each object.

	Use "%[1]s api-resources" for a complete list of supported resources.`

const example = `
	# List all deployments in the current namespace
	%[1]s get deployments

	# List the pods of all member clusters
	%[1]s get pods --operation-scope=members

	# List the pods of two member clusters, in all namespaces, with more columns
	%[1]s get pods -C member1,member2 -A -o wide

	# List deployments and services with a label, of the control plane and all members
	%[1]s get deployments,services -l app=web --operation-scope=all

	# List the pods of all members, those that restarted most last
	%[1]s get pods -s members --sort-by='{.status.containerStatuses[0].restartCount}'

	# Show one object as YAML
	%[1]s get deployment web -o yaml

	# Show it as it is in one member
	%[1]s get deployment web -C member1 -o yaml

	# Return only one field of an object
	%[1]s get deployment web -o jsonpath={.status.readyReplicas}

	# Watch the pods of all members
	%[1]s get pods -s members --watch`

// NewCmd returns the get command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := newFlags(f)
	cmd := &cobra.Command{
		Use:                   "get [NAME | -l label | -n namespace]",
		Short:                 "Display one or many resources in the Karmada control plane and member clusters",
		Long:                  templates.LongDesc(fmt.Sprintf(long, program)),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SuggestFor:            []string{"list", "ls"},
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     flags.complete(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			o, err := flags.ToOptions(cmd, f, s, program, args)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	err := flags.AddFlags(cmd)
	f.AddConnectionFlags(cmd.Flags())
	f.AddNamespaceFlag(cmd.Flags())
	return cmd, errors.Join(err, f.RegisterCompletions(cmd), cmd.RegisterFlagCompletionFunc("clusters", f.CompleteClusters))
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Print                           *kubectlget.PrintFlags
	Scope                           factory.Scope
	Clusters                        []string
	Labels, Fields                  string
	AllNamespaces, IgnoreNotFound   bool
	Watch, WatchOnly, OutputWatched bool
	Fleet                           *fleet.Fleet
}

func newFlags(f *factory.Factory) *Flags {
	return &Flags{Print: kubectlget.NewGetPrintFlags(), Fleet: &fleet.Fleet{Factory: f}}
}

// AddFlags adds the flags (spec: cli/commands.md 5.1), and some beyond.
func (f *Flags) AddFlags(cmd *cobra.Command) error {
	f.Print.AddFlags(cmd)
	f.Fleet.AddPatienceFlag(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	fs.StringSliceVarP(&f.Clusters, "clusters", "C", nil, "Names of the member clusters to ask, all if none is given. Without --operation-scope it also makes members the scope.")
	fs.StringVar(&f.Fields, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	fs.BoolVar(&f.IgnoreNotFound, "ignore-not-found", false, "If the requested object does not exist the command will return exit code 0.")
	fs.StringVarP(&f.Labels, "labels", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	fs.BoolVar(&f.OutputWatched, "output-watch-events", false, "Output watch event objects when --watch or --watch-only is used. Existing objects are output as initial ADDED events.")
	fs.BoolVarP(&f.Watch, "watch", "w", false, "After listing/getting the requested object, watch for changes.")
	fs.BoolVar(&f.WatchOnly, "watch-only", false, "Watch for changes to the requested object(s), without listing/getting first.")
	addTwin(fs, "labels", "selector") // kubectl's name, for hands that know it
	return factory.AddScopeFlag(cmd, &f.Scope, factory.ScopeKarmada, factory.ScopeMembers, factory.ScopeAll)
}

// addTwin adds a flag that is another's hidden second name.
func addTwin(fs *pflag.FlagSet, name, second string) {
	twin := *fs.Lookup(name)
	twin.Name, twin.Shorthand, twin.Hidden = second, "", true
	fs.AddFlag(&twin)
}

// ToOptions completes and validates.
func (f *Flags) ToOptions(cmd *cobra.Command, c *factory.Factory, s genericiooptions.IOStreams, program string, args []string) (*Options, error) {
	output := *f.Print.OutputFormat
	watching := f.Watch || f.WatchOnly
	if err := f.Scope.Check(factory.ScopeKarmada, factory.ScopeMembers, factory.ScopeAll); err != nil {
		return nil, err
	}
	switch {
	case len(args) == 0 && !watching:
		_, _ = fmt.Fprintf(s.ErrOut, "You must specify the type of resource to get. %s\n\n", cmdutil.SuggestAPIResources(program))
		return nil, fmt.Errorf("Required resource not specified.\nUse %q for a detailed description of that resource (e.g. %s explain pods).\nSee '%s -h' for help and examples",
			program+" explain <resource>", program, cmd.CommandPath())
	case slices.Contains(f.Clusters, ""):
		return nil, errors.New("--clusters has an empty name")
	case *f.Print.HumanReadableFlags.ShowLabels && output != "" && output != "wide":
		return nil, fmt.Errorf("--show-labels option cannot be used with %s printer", output)
	case len(*f.Print.HumanReadableFlags.ColumnLabels) > 0 && strings.HasPrefix(output, "custom-columns"):
		return nil, fmt.Errorf("--label-columns option cannot be used with %s printer", output)
	case f.OutputWatched && !watching:
		return nil, errors.New("--output-watch-events option can only be used with --watch or --watch-only")
	}
	if len(f.Clusters) > 0 && f.Scope == factory.ScopeKarmada {
		if cmd.Flags().Changed("operation-scope") {
			return nil, fmt.Errorf("--operation-scope=%s is the control plane, and --clusters=%s are member clusters: give one of the two, or --operation-scope=%s",
				f.Scope, strings.Join(f.Clusters, ","), factory.ScopeAll)
		}
		f.Scope = factory.ScopeMembers
	}
	namespace, _, err := c.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	o := &Options{
		Scope: f.Scope, Clusters: f.Clusters, Members: f.Fleet, Plane: c,
		Query: query{
			args: args, namespace: namespace, allNamespaces: f.AllNamespaces, labels: f.Labels, fields: f.Fields,
			ignoreNotFound: f.IgnoreNotFound,
			table:          (output == "" && *f.Print.TemplateFlags.TemplateArgument == "") || output == "wide",
			whole:          *f.Print.HumanReadableFlags.SortBy != "",
		},
		Watch: watching, Initial: !f.WatchOnly, Events: f.OutputWatched,
		Print: f.Print, IOStreams: s,
	}
	// A format that is not known is found before anybody is asked.
	if _, err := o.Print.ToPrinter(); err != nil {
		return nil, err
	}
	if watching && o.sortBy() != "" {
		_, _ = fmt.Fprintln(s.ErrOut, "warning: --watch requested, --sort-by will be ignored for watch events received")
	}
	return o, nil
}

// Options are a complete and valid request; only ToOptions makes them.
type Options struct {
	Scope    factory.Scope
	Clusters []string // "" all
	Members  *fleet.Fleet
	Plane    *factory.Factory
	Query    query

	Watch, Initial, Events bool
	Print                  *kubectlget.PrintFlags
	genericiooptions.IOStreams
}

func (o *Options) sortBy() string { return *o.Print.HumanReadableFlags.SortBy }

// Run shows what was asked for, and tells which part of it is missing.
func (o *Options) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &checked{out: o.Out}
	o.Out = out
	err := o.run(ctx)
	if out.err != nil {
		return fmt.Errorf("write the output: %w", out.err)
	}
	return err
}

func (o *Options) run(ctx context.Context) error {
	sources, err := o.sources(ctx)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No member Clusters found in Karmada control plane")
		return err
	}
	switch {
	case o.Watch:
		return o.follow(ctx, sources)
	case o.Query.table:
		return o.table(ctx, sources)
	default:
		return o.list(ctx, sources)
	}
}

// sources returns whom to ask, in the order in which they are shown.
func (o *Options) sources(ctx context.Context) ([]*source, error) {
	var all []*source
	if o.Scope != factory.ScopeMembers {
		all = append(all, &source{name: planeName, factory: o.Plane})
	}
	if o.Scope == factory.ScopeKarmada {
		return all, nil
	}
	names, err := o.Members.Names(ctx, o.Clusters)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		all = append(all, &source{
			name: name, member: true,
			factory: o.Plane.Through(ctx, factory.ThroughOptions{Cluster: name, Patience: o.Members.Patience, PlaneTypes: true}),
			own:     func() cmdutil.Factory { return o.Members.Through(ctx, name) },
		})
	}
	return all, nil
}

// checked remembers that something could not be written: some of kubectl's
// printers do not say so.
type checked struct {
	out io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}
