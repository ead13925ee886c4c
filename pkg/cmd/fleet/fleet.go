// Package fleet is what the commands share that ask member clusters, one or
// many: which there are, how they are asked at once, and what is said of those
// that do not answer.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// DefaultPatience is how long a member may take to answer one request, unless
// the user says otherwise. It is long for a person at a prompt, and short for a
// page of 500 objects over a bad line.
const DefaultPatience = 10 * time.Second

// atOnce bounds how many members are asked at the same time.
const atOnce = 100

// A Fleet is the member clusters of a control plane.
type Fleet struct {
	Factory *factory.Factory
	// Patience is how long each member may take to answer one request.
	Patience time.Duration
}

// AddPatienceFlag adds --cluster-timeout to cmd.
func (f *Fleet) AddPatienceFlag(cmd *cobra.Command) { AddPatienceFlag(cmd.Flags(), &f.Patience) }

// AddPatienceFlag adds --cluster-timeout to the flags of a command that asks one
// member.
func AddPatienceFlag(fs *pflag.FlagSet, patience *time.Duration) {
	fs.DurationVar(patience, "cluster-timeout", DefaultPatience, "How long a member cluster may take to answer each request before the command goes on without it. 0 means for ever.")
}

// Names returns the clusters that are named, or all when none is. The contract
// knows the words for those that do not exist (spec: cli/commands.md 5.1).
func (f *Fleet) Names(ctx context.Context, named []string) ([]string, error) {
	chosen, missing, err := f.Find(ctx, named)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("clusters don't exist: %s", strings.Join(missing, ","))
	}
	return chosen, nil
}

// Find returns which of the named clusters exist, each once, and which do not;
// without names, all that exist.
func (f *Fleet) Find(ctx context.Context, named []string) (existing, missing []string, err error) {
	client, err := f.clusters()
	if err != nil {
		return nil, nil, err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err // says what the server said; Explain adds why
	}
	all := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		all[c.Name] = true
		if len(named) == 0 || slices.Contains(named, c.Name) {
			f.warnLeaving(c)
		}
	}
	if len(named) == 0 {
		return slices.Sorted(maps.Keys(all)), nil, nil
	}
	for _, name := range named {
		switch {
		case slices.Contains(existing, name), slices.Contains(missing, name):
		case all[name]:
			existing = append(existing, name)
		default:
			missing = append(missing, name)
		}
	}
	return existing, missing, nil
}

// Member returns the way to the one member of that name. One that does not exist
// is an error in the words of the API server, which scripts know.
func (f *Fleet) Member(ctx context.Context, name string) (cmdutil.Factory, error) {
	if problems := path.IsValidPathSegmentName(name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is no name of a cluster: %s", name, strings.Join(problems, "; "))
	}
	client, err := f.clusters()
	if err != nil {
		return nil, err
	}
	c, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	f.warnLeaving(c)
	return f.Through(ctx, name), nil
}

// warnLeaving says what is behind the odd answers of a member whose access goes.
func (f *Fleet) warnLeaving(c *metav1.PartialObjectMetadata) {
	if !c.DeletionTimestamp.IsZero() {
		f.Factory.Warn(fmt.Sprintf("cluster %s is being deleted: it may let nobody in any more, or lack what it had", c.Name))
	}
}

// Through returns the way to a member that is known to exist.
func (f *Fleet) Through(ctx context.Context, name string) cmdutil.Factory {
	return f.Factory.Through(ctx, factory.ThroughOptions{Cluster: name, Patience: f.Patience})
}

// clusters returns a client that reads no more of a Cluster than its name.
func (f *Fleet) clusters() (metadata.ResourceInterface, error) {
	cfg, err := f.Factory.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	client, err := metadata.NewForConfig(metadata.ConfigFor(cfg))
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return client.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters")), nil
}

// Each asks all members at once, and returns what went wrong with which, in
// their order. It returns when all are through.
func Each(ctx context.Context, members []string, ask func(ctx context.Context, member string) error) Errors {
	failed := make([]error, len(members))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, name := range members {
		all.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				failed[i] = context.Cause(ctx)
				return
			}
			failed[i] = ask(ctx, name)
		})
	}
	all.Wait()
	var errs Errors
	for i, err := range failed {
		if err != nil {
			errs = append(errs, &Error{Cluster: members[i], Err: err})
		}
	}
	return errs
}

// An Error is why a member is missing from an answer.
type Error struct {
	Cluster string
	Err     error
}

// Error says in one line which member, and why; the words are the contract's
// (spec: cli/commands.md 5.1).
func (e *Error) Error() string {
	if why, lost := unreachable(e.Err); lost {
		return fmt.Sprintf("basic connection test to cluster(%s) failed, please check authorization or network: %s", e.Cluster, why)
	}
	return fmt.Sprintf("cluster(%s): %s", e.Cluster, oneLine(e.Err.Error()))
}

func (e *Error) Unwrap() error { return e.Err }

// unreachable tells whether err says that the member did not get the request, or
// that the control plane did not pass it on; and if so, why.
func unreachable(err error) (why string, yes bool) {
	var (
		silence   *factory.Silence
		transport *url.Error
		status    apierrors.APIStatus
	)
	switch {
	case errors.As(err, &silence):
		return fmt.Sprintf("no answer within %s", silence.After), true
	case errors.As(err, &transport):
		return oneLine(transport.Err.Error()), true
	case errors.As(err, &status):
		s := status.Status()
		switch s.Code {
		case http.StatusUnauthorized, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return oneLine(s.Message), true
		case http.StatusForbidden:
			return oneLine(s.Message), s.Details != nil && s.Details.Group == clusterv1alpha1.GroupName && s.Details.Kind == "clusters"
		}
	}
	return "", false
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Errors are why some members are missing from an answer, a line each.
type Errors []*Error

// Err returns nil when there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Error says it the way the command line prints it: the prefix of the first line
// comes from there.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\nerror: ")
}
