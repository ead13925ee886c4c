package demote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

// A Demoter is what demote needs done.
type Demoter interface {
	Read(ctx context.Context, f promotion.Farewell) ([]*promotion.Demotion, error)
	ReadAll(ctx context.Context, f promotion.Farewell, having labels.Selector) ([]*promotion.Demotion, error)
	Check(ctx context.Context, all []*promotion.Demotion) map[*promotion.Demotion]error
	Demote(ctx context.Context, all []*promotion.Demotion, told func(string)) map[*promotion.Demotion]error
}

// Options are a complete and valid request to demote; only ToOptions makes them.
type Options struct {
	// Request has no name when Many says that all with labels are let go of.
	Request  promotion.Farewell
	Many     bool
	Selector labels.Selector
	Demoter  Demoter
	DryRun   bool
	// Elsewhere names the clusters that have an object which the control plane does not have, and which none manages.
	Elsewhere func(context.Context, promotion.Farewell) ([]string, error)
	genericiooptions.IOStreams
}

// note tells what the user should know. Nothing depends on whether it can be written.
func (o *Options) note(text string) { _, _ = fmt.Fprintln(o.ErrOut, "note: "+text) }

// Run lets go of the objects, or says how that would be.
func (o *Options) Run(ctx context.Context) error {
	all, err := o.read(ctx)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) && !o.Many {
		return o.gone(ctx, err)
	}
	if err != nil {
		return err
	}
	var left []*promotion.Demotion
	for _, x := range all {
		if !x.IsDone() {
			left = append(left, x)
		}
	}
	switch {
	case len(all) == 0:
		o.note(fmt.Sprintf("there is nothing to let go of in namespace %s of the control plane", o.Request.Namespace))
		return nil
	case len(left) == 0:
		_, err := fmt.Fprintf(o.Out, "%s is demoted already\n", what(all[0]))
		return err
	}
	refused := o.Demoter.Check(ctx, left)
	if len(refused) > 0 && !o.DryRun {
		return o.failed("cannot be demoted, so that none was", left, refused)
	}
	if o.DryRun {
		for _, x := range left {
			if refused[x] != nil {
				continue
			}
			if err := o.preview(x); err != nil {
				return err
			}
		}
		return o.failed("cannot be demoted, so that none would be", left, refused)
	}
	var printing error
	errs := o.Demoter.Demote(ctx, left, func(line string) {
		_, err := fmt.Fprintln(o.Out, line)
		printing = errors.Join(printing, err)
	})
	if err := o.failed("were not let go of, or not wholly; run the command again to go on", left, errs); err != nil {
		return err
	}
	return printing
}

func (o *Options) read(ctx context.Context) ([]*promotion.Demotion, error) {
	if o.Many {
		return o.Demoter.ReadAll(ctx, o.Request, o.Selector)
	}
	return o.Demoter.Read(ctx, o.Request)
}

// failed makes one error of those of objects, in the order of these.
func (o *Options) failed(how string, all []*promotion.Demotion, errs map[*promotion.Demotion]error) error {
	var joined []error
	for _, x := range all {
		if err := errs[x]; err != nil {
			joined = append(joined, err)
		}
	}
	switch {
	case len(joined) == 0:
		return nil
	case len(all) == 1:
		return joined[0]
	default:
		return fmt.Errorf("%d of %d objects %s:\n%w", len(joined), len(all), how, errors.Join(joined...))
	}
}

// gone tells what was demoted before from what never was there.
func (o *Options) gone(ctx context.Context, notFound error) error {
	clusters, err := o.Elsewhere(ctx, o.Request)
	if err != nil {
		return errors.Join(notFound, err)
	}
	if len(clusters) == 0 {
		return notFound
	}
	_, err = fmt.Fprintf(o.Out, "%s %s is demoted already: the control plane does not have it, and it is in %s\n", o.Request.Type, o.Request.Name, inClusters(clusters))
	return err
}

// preview says what would be done.
func (o *Options) preview(x *promotion.Demotion) error {
	var text strings.Builder
	if x.Binding != nil {
		fmt.Fprintf(&text, "%s stays as it is in %s (dry run)\n", x.Template, inClusters(x.Clusters))
		fmt.Fprintf(&text, "%s (%s) is released (dry run)\n", binding.ScopeOf(x.Binding).Kind, promotion.Path(x.Binding))
	}
	if p := x.Policy; p != nil {
		fmt.Fprintf(&text, "%s is deleted (dry run)\n", p)
	}
	gone := "deleted"
	if x.KeepTemplate {
		gone = "kept"
	}
	fmt.Fprintf(&text, "ResourceTemplate (%s) is %s (dry run)\n", promotion.Path(x.Template.Object), gone)
	_, err := fmt.Fprint(o.Out, text.String())
	return err
}

func what(x *promotion.Demotion) string {
	return fmt.Sprintf("Resource %q(%s)", x.Template.Resource.String(), promotion.Path(x.Template.Object))
}

func inClusters(names []string) string {
	switch len(names) {
	case 0:
		return "no cluster"
	case 1:
		return "cluster " + names[0]
	default:
		return "clusters " + strings.Join(names, ", ")
	}
}
