// Package why implements karmadactl why: it answers why an object of the control plane
// is where it is, and what is in the way of the rest. The answer is package
// explanation's; here flags become a question.
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
)

const long = `
	Tell why an object of the control plane is where it is, and what is in the way of the rest.

	It names the policy that propagates the object and those that lost against it; the binding; for each member cluster
	whether it is chosen or which filter refuses it, its score, replicas and room; the override policies that apply to it
	there, or which one cannot be applied; its Work, and what the cluster says of it. What is wrong or pending is named,
	with since when, and the command to type next.

	The scheduler's part is what the scheduler itself would decide now, with its default settings; nothing is written.`

const example = `
	# Why is deployment web of namespace shop where it is
	%[1]s why deployment/web -n shop

	# Why is it not in cluster member2
	%[1]s why deployment/web -n shop --cluster=member2

	# For programs: the codes of all that is wrong or pending
	%[1]s why deployment/web -n shop -o json`

// NewCmd returns the why command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{}
	cmd := &cobra.Command{
		Use:                   "why (TYPE/NAME | TYPE NAME) [-C CLUSTER]",
		Short:                 "Tell why an object is where it is, and what is in the way",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  explanation.OneObject,
		ValidArgsFunction:     completion.ResourceTypeAndNameCompletionFunc(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.ReadWithin(cmd.Context())
			o, err := flags.ToOptions(f, s, program, args)
			if err == nil {
				err = o.Run(cmd.Context())
			}
			return kubectl.OrInterrupted(cmd.Context(), err)
		},
	}
	f.AddConnectionFlags(cmd.Flags())
	f.AddNamespaceFlag(cmd.Flags())
	flags.AddFlags(cmd.Flags())
	return cmd, errors.Join(f.RegisterCompletions(cmd), cmd.RegisterFlagCompletionFunc("cluster", f.CompleteClusters))
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Cluster string
	Output  host.Output
}

// AddFlags adds the flags.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Cluster, "cluster", "C", "", "Name of the one member cluster to tell of. Default is all.")
	host.AddOutput(fs, &f.Output)
}

// ToOptions completes and validates. It reads the object.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, program string, args []string) (*Options, error) {
	if err := f.Output.Validate(); err != nil {
		return nil, err
	}
	object, err := explanation.ReadObject(c, args)
	if err != nil {
		return nil, err
	}
	return &Options{
		Object: object.Unstructured, Cluster: f.Cluster, Output: f.Output, IOStreams: s, Style: explanation.StyleOf(s.Out), Now: time.Now,
		Explainer: &explanation.Explainer{
			Reader: object.Client, Interpreter: interpreter.New(interpreter.Options{}), Resource: object.Resource.Resource, Program: program,
		},
	}, nil
}

// An Explainer is what why needs done.
type Explainer interface {
	Explain(ctx context.Context, template *unstructured.Unstructured, cluster string) (*explanation.Explanation, error)
}

// Options are a complete and valid question; only ToOptions makes them.
type Options struct {
	Object    *unstructured.Unstructured
	Cluster   string
	Explainer Explainer
	Output    host.Output
	Style     explanation.Style
	Now       func() time.Time
	genericiooptions.IOStreams
}

// Run answers the question. An answer with gaps is an error, after it is given.
func (o *Options) Run(ctx context.Context) error {
	x, err := o.Explainer.Explain(ctx, o.Object, o.Cluster)
	if err != nil {
		return err
	}
	if err := o.Output.Print(o.Out, x, func(w io.Writer) error { return explanation.Print(w, x, o.Style, o.Now()) }); err != nil {
		return err
	}
	if len(x.Unread) > 0 {
		return fmt.Errorf("the answer has gaps, as not all could be read: %s", strings.Join(x.Unread, "; "))
	}
	return nil
}
