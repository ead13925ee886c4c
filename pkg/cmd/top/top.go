// Package top implements karmadactl top: what pods and nodes of member clusters
// use (spec: cli/commands.md 5.5). The member's own metrics API is asked.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

const long = `
	Display resource (CPU/memory) usage of member clusters.

	The figures are those of the metrics API of each cluster, which is asked through the control plane. They may be some
	minutes old.`

// NewCmd returns the top command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Display resource (CPU/memory) usage of member clusters",
		Long:  templates.LongDesc(long),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	node, err := newNodeCmd(f, s, program)
	if err != nil {
		return nil, err
	}
	pod, err := newPodCmd(f, s, program)
	if err != nil {
		return nil, err
	}
	cmd.AddCommand(node, pod)
	return cmd, nil
}

// common are the flags of both commands.
type common struct {
	clusters                   []string
	selector, sortBy           string
	noHeaders, protocolBuffers bool
	name                       string
	fleet                      *fleet.Fleet
	genericiooptions.IOStreams
}

func (c *common) addFlags(cmd *cobra.Command, f *factory.Factory, what, shorthand string) error {
	fs := cmd.Flags()
	fs.StringSliceVarP(&c.clusters, "clusters", shorthand, nil, "Names of the member clusters to ask, all if none is given.")
	fs.BoolVar(&c.noHeaders, "no-headers", false, "If present, print output without headers.")
	fs.StringVarP(&c.selector, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	fs.StringVar(&c.sortBy, "sort-by", "", "If non-empty, sort "+what+" list using specified field. The field can be either 'cpu' or 'memory'.")
	fs.BoolVar(&c.protocolBuffers, "use-protocol-buffers", true, "Enables using protocol-buffers to access Metrics API.")
	c.fleet.AddPatienceFlag(cmd)
	f.AddConnectionFlags(fs)
	return cmd.RegisterFlagCompletionFunc("clusters", f.CompleteClusters)
}

// completeNames completes the name of what is in the first of the clusters that
// were typed: all of them to ask takes too long at a prompt.
func (c *common) completeNames(resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || len(c.clusters) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		m, err := c.fleet.Member(cmd.Context(), c.clusters[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.CompGetResource(m, resource, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete checks what both have.
func (c *common) complete(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return cmdutil.UsageErrorf(cmd, "%s", cmd.Use)
	case c.sortBy != "" && !slices.Contains([]string{"cpu", "memory"}, c.sortBy):
		return errors.New("--sort-by accepts only cpu or memory")
	case slices.Contains(c.clusters, ""):
		return errors.New("--clusters has an empty name")
	}
	if len(args) == 1 {
		c.name = args[0]
	}
	if _, err := metav1.ParseToLabelSelector(c.selector); err != nil {
		return fmt.Errorf("--selector=%s: %w", c.selector, err)
	}
	return nil
}

// members returns the clusters to ask. None at all is said.
func (c *common) members(ctx context.Context) ([]string, error) {
	names, err := c.fleet.Names(ctx, c.clusters)
	if err == nil && len(names) == 0 {
		_, err = fmt.Fprintln(c.ErrOut, "No member Clusters found in Karmada control plane")
	}
	return names, err
}

// each asks the members at once, and returns what each said; the errors are of
// those that said nothing, or not all.
func each[T any](ctx context.Context, c *common, members []string, ask func(context.Context, *member) (T, error)) ([]T, fleet.Errors) {
	answers := make([]T, len(members))
	errs := fleet.Each(ctx, members, func(ctx context.Context, name string) error {
		m, err := c.member(ctx, name)
		if err != nil {
			return err
		}
		answers[slices.Index(members, name)], err = ask(ctx, m)
		if isUnserved(err) {
			return errors.New("metrics API not available")
		}
		return err
	})
	return answers, errs
}

// A member is one that is asked.
type member struct {
	name    string
	metrics metricsclient.Interface
	core    kubernetes.Interface
}

func (c *common) member(ctx context.Context, name string) (*member, error) {
	cfg, err := c.fleet.Through(ctx, name).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.protocolBuffers {
		cfg.ContentType = "application/vnd.kubernetes.protobuf"
		cfg.AcceptContentTypes = cfg.ContentType + ",application/json"
	}
	metrics, err := metricsclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client of metrics: %w", err)
	}
	return &member{name: name, metrics: metrics, core: core}, nil
}

// isUnserved tells an API that is not there from an object that is not.
func isUnserved(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// end says what is missing, or that there is nothing.
func (c *common) end(ctx context.Context, rows int, namespace string, errs fleet.Errors) error {
	switch {
	case ctx.Err() != nil:
		return kubectl.Interrupted()
	case len(errs) > 0 || rows > 0:
		return errs.Err()
	}
	text := "No resources found"
	if namespace != "" {
		text = fmt.Sprintf("No resources found in %s namespace.", namespace)
	}
	_, err := fmt.Fprintln(c.ErrOut, text)
	return err
}

// row writes cells that a tab writer aligns.
func row(w io.Writer, cells ...string) {
	for _, cell := range cells {
		_, _ = io.WriteString(w, cell+"\t") // Flush says what went wrong
	}
	_, _ = io.WriteString(w, "\n")
}
