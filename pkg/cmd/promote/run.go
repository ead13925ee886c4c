package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/promotion"
)

// Options are a complete and valid request to promote; only ToOptions makes them.
type Options struct {
	// Request has no name when Many says that all with labels are promoted.
	Request   promotion.Request
	Many      bool
	Selector  labels.Selector
	KeepGoing bool
	Promoter  Promoter
	DryRun    bool
	Output    string
	genericiooptions.IOStreams
}

// note tells what the user should know. Nothing depends on whether it can be written.
func (o *Options) note(text string) { _, _ = fmt.Fprintln(o.ErrOut, "note: "+text) }

// Run promotes the objects, or says how that would be.
func (o *Options) Run(ctx context.Context) error {
	plans, err := o.read(ctx)
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		o.note(fmt.Sprintf("there is nothing to promote in cluster %s, or in namespace %s of it", o.Request.Cluster, o.Request.Namespace))
		return nil
	}
	if o.Output != "" {
		return printPlans(o.Out, plans, o.Output)
	}
	// Scripts match the lines below (spec: cli/commands.md 8.1).
	if slices.ContainsFunc(plans, func(p *promotion.Plan) bool { return p.Interpreted }) {
		if _, err := fmt.Fprintln(o.Out, "use default interpreter"); err != nil {
			return err
		}
	}
	var ready []*promotion.Plan
	var refused []error
	for _, plan := range plans {
		err := o.Promoter.Check(ctx, plan)
		if err == nil {
			ready = append(ready, plan)
			continue
		}
		if ctx.Err() != nil {
			return err
		}
		if restart := (*promotion.RestartError)(nil); o.DryRun && errors.As(err, &restart) {
			if err := printChanges(o.Out, plan); err != nil {
				return err
			}
		}
		refused = append(refused, err)
	}
	switch {
	case len(refused) > 0 && !o.Many:
		return refused[0]
	case len(refused) > 0 && !o.KeepGoing && !o.DryRun:
		return fmt.Errorf("%d of %d objects cannot be promoted, so that none was; --keep-going promotes the others:\n%w", len(refused), len(plans), errors.Join(refused...))
	}
	for _, plan := range ready {
		if err := o.make(ctx, plan); err != nil {
			refused = append(refused, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(refused) > 0 && o.Many {
		return fmt.Errorf("%d of %d objects were not promoted:\n%w", len(refused), len(plans), errors.Join(refused...))
	}
	return errors.Join(refused...)
}

func (o *Options) read(ctx context.Context) ([]*promotion.Plan, error) {
	if o.Many {
		return o.Promoter.ReadAll(ctx, o.Request, o.Selector)
	}
	plan, err := o.Promoter.Read(ctx, o.Request)
	return []*promotion.Plan{plan}, err
}

// make promotes one object, or says how that would be.
func (o *Options) make(ctx context.Context, plan *promotion.Plan) error {
	what := fmt.Sprintf("Resource %q(%s)", plan.Template.Resource.String(), promotion.Path(plan.Template.Object))
	if plan.IsDone() {
		_, err := fmt.Fprintf(o.Out, "%s is promoted already\n", what)
		return err
	}
	if o.DryRun {
		return o.preview(plan)
	}
	var printing error
	made := func(c client.Object) {
		_, err := fmt.Fprintln(o.Out, line(plan, c, "successfully"))
		printing = errors.Join(printing, err)
	}
	if err := o.Promoter.Make(ctx, plan, made); err != nil {
		return fmt.Errorf("promote %s %s: %w; run the command again to go on", plan.Template.Object.GetKind(), promotion.Path(plan.Template.Object), err)
	}
	_, err := fmt.Fprintf(o.Out, "%s is promoted successfully\n", what)
	return errors.Join(printing, err)
}

// preview says what would be made, and what that would change in the cluster.
func (o *Options) preview(plan *promotion.Plan) error {
	var all []client.Object
	for _, i := range append(slices.Clone(plan.Dependencies), plan.Template) {
		if !i.Exists || i.Held {
			all = append(all, i.Object)
		}
	}
	if plan.Policy != nil && !plan.Policy.Exists {
		all = append(all, plan.Policy.Object)
	}
	for _, c := range all {
		if _, err := fmt.Fprintln(o.Out, line(plan, c, "successfully (dry run)")); err != nil {
			return err
		}
	}
	return printChanges(o.Out, plan)
}

// line tells what happened to an object of a plan, in the words of the contract.
func line(plan *promotion.Plan, o client.Object, how string) string {
	if plan.Policy != nil && o == plan.Policy.Object {
		return fmt.Sprintf("%s is created %s", plan.Policy, how)
	}
	for _, d := range plan.Dependencies {
		if o == d.Object {
			return fmt.Sprintf("Dependency resource %q(%s) is promoted %s", d.Resource.String(), promotion.Path(o), how)
		}
	}
	verb := "created"
	if plan.Template.Held {
		verb = "taken up again"
	}
	return strings.Join([]string{fmt.Sprintf("ResourceTemplate (%s) is", promotion.Path(o)), verb, how}, " ")
}
