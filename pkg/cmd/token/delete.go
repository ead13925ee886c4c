package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// namePrefix begins what `token list -o name` prints, as kubectl writes the name of an object.
const namePrefix = "secret/"

const deleteLong = `
	Delete bootstrap tokens.

	A token is named by its id, the six characters before the point, or given as a whole. Nobody can register with it
	from then on; clusters that did stay registered.`

const deleteExample = `
	# Delete a token
	%[1]s token delete abcdef

	# Delete two
	%[1]s token delete abcdef 012345.0123456789abcdef`

func newDelete(f *factory.Factory, s genericiooptions.IOStreams, program string) *cobra.Command {
	return &cobra.Command{
		Use:     "delete [token-value] ...",
		Short:   "Delete bootstrap tokens of the control plane",
		Long:    templates.LongDesc(deleteLong),
		Example: templates.Examples(fmt.Sprintf(deleteExample, program)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeIDs(cmd.Context(), f, args, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := toDeleteOptions(f, s, program, args)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
}

// A Deleter is the one thing that delete needs done.
type Deleter interface {
	Delete(ctx context.Context, id string) error
}

// DeleteOptions are a complete and valid request to delete tokens; only NewCmd makes them.
type DeleteOptions struct {
	IDs     []string
	Deleter Deleter
	genericiooptions.IOStreams
}

// toDeleteOptions completes and validates: one bad argument, and nothing is deleted.
func toDeleteOptions(f *factory.Factory, s genericiooptions.IOStreams, program string, args []string) (*DeleteOptions, error) {
	ids, err := parseIDs(program, args)
	if err != nil {
		return nil, err
	}
	deleter, err := tokens(f)
	if err != nil {
		return nil, err
	}
	return &DeleteOptions{IDs: ids, Deleter: deleter, IOStreams: s}, nil
}

// parseIDs returns the id in each argument, once.
func parseIDs(program string, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("missing argument: say which tokens to delete, each by its id or as a whole; %q shows them", program+" token list")
	}
	var ids []string
	var errs []error
	for i, arg := range args {
		id, err := registration.ParseTokenID(strings.TrimPrefix(arg, namePrefix+bootstrapapi.BootstrapTokenSecretPrefix))
		switch {
		case err != nil && len(args) > 1:
			errs = append(errs, fmt.Errorf("argument %d: %w", i+1, err))
		case err != nil:
			errs = append(errs, err)
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(errs...)
}

// Run deletes one token after the other. One that fails does not keep the others.
func (o *DeleteOptions) Run(ctx context.Context) error {
	var errs []error
	for _, id := range o.IDs {
		if err := o.Deleter.Delete(ctx, id); err != nil {
			errs = append(errs, factory.Plain(err))
			continue
		}
		if _, err := fmt.Fprintf(o.Out, "bootstrap token %q deleted\n", id); err != nil {
			return err
		}
	}
	return utilerrors.NewAggregate(errs) // printed one a line, each once
}

// completeIDs returns the ids of tokens that are not among args yet.
func completeIDs(ctx context.Context, f *factory.Factory, args []string, typed string) []cobra.Completion {
	all, err := tokens(f)
	if err != nil {
		return nil
	}
	list, _, err := all.List(ctx)
	if err != nil {
		return nil
	}
	var ids []cobra.Completion
	for _, t := range list {
		if strings.HasPrefix(t.ID, typed) && !slices.Contains(args, t.ID) {
			ids = append(ids, cobra.CompletionWithDesc(t.ID, oneLine(t.Description)))
		}
	}
	return ids
}
