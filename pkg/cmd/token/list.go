package token

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const listLong = `
	List the bootstrap tokens of the control plane.

	The table has the tokens as a whole. With -o json, yaml or name their secret halves are left out.`

const listExample = `
	# Show the tokens
	%[1]s token list

	# Show which there are, without what makes them usable
	%[1]s token list -o yaml

	# Delete them all
	%[1]s token list -o name | xargs %[1]s token delete`

// outputName prints what delete takes, one a line, as kubectl writes it.
const outputName host.Output = "name"

func newList(f *factory.Factory, s genericiooptions.IOStreams, program string) *cobra.Command {
	flags := &ListFlags{}
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the bootstrap tokens of the control plane",
		Long:              templates.LongDesc(listLong),
		Example:           templates.Examples(fmt.Sprintf(listExample, program)),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := flags.ToOptions(f, s)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

// ListFlags hold what the user typed, and nothing else.
type ListFlags struct {
	Output host.Output
}

// AddFlags adds -o, which the contract does not have.
func (f *ListFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP((*string)(&f.Output), "output", "o", "", "Output format: json, yaml or name. Default is a table for people.")
}

// A Lister is the one thing that list needs done.
type Lister interface {
	List(ctx context.Context) (tokens []registration.Token, broken []error, err error)
}

// ListOptions are a complete and valid request to list tokens; only ToOptions makes them.
type ListOptions struct {
	Lister Lister
	Output host.Output
	Now    func() time.Time
	genericiooptions.IOStreams
}

// ToOptions completes and validates.
func (f *ListFlags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams) (*ListOptions, error) {
	if f.Output != outputName {
		if err := f.Output.Validate(); err != nil {
			return nil, fmt.Errorf("%w, or name", err)
		}
	}
	lister, err := tokens(c)
	if err != nil {
		return nil, err
	}
	return &ListOptions{Lister: lister, Output: f.Output, Now: time.Now, IOStreams: s}, nil
}

// Run prints the tokens. What is no token is named on the error stream and passed over.
func (o *ListOptions) Run(ctx context.Context) error {
	list, broken, err := o.Lister.List(ctx)
	if err != nil {
		return factory.Plain(err) // says already what was tried
	}
	for _, problem := range broken {
		if _, err := fmt.Fprintf(o.ErrOut, "left out: %v\n", problem); err != nil {
			return err
		}
	}
	if o.Output == outputName {
		for _, t := range list {
			if _, err := fmt.Fprintln(o.Out, namePrefix+bootstraputil.BootstrapTokenSecretName(t.ID)); err != nil {
				return err
			}
		}
		return nil
	}
	now := o.Now()
	views := struct {
		Items []view `json:"items"`
	}{Items: []view{}}
	for _, t := range list {
		views.Items = append(views.Items, viewOf(t, now))
	}
	return o.Output.Print(o.Out, views, func(w io.Writer) error { return printTable(w, list, now) })
}

// printTable prints the contract's columns (spec: cli/commands.md 3.3).
func printTable(w io.Writer, list []registration.Token, now time.Time) error {
	table := printers.GetNewTabWriter(w)
	rows := [][]string{{"TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"}}
	for _, t := range list {
		rows = append(rows, row(t, now))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(r, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

func row(t registration.Token, now time.Time) []string {
	ttl, expires := "<forever>", "<never>"
	if !t.Expires.IsZero() {
		ttl, expires = duration.ShortHumanDuration(t.Expires.Sub(now)), t.Expires.Format(time.RFC3339)
	}
	if t.Expired(now) {
		ttl = "<invalid>"
	}
	return []string{
		t.Value(), ttl, expires,
		orNone(strings.Join(t.Usages, ",")), orNone(oneLine(t.Description)), orNone(oneLine(strings.Join(t.Groups, ","))),
	}
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// oneLine keeps what somebody else wrote from being a row, or a terminal's command.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) }), " ")
}
