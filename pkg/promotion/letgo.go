package promotion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// Demote has the control plane let go of everything, and returns the errors of what
// it could not be brought to let go of. It tells of each thing that has gone.
//
// The order of the writes is what keeps the members as they are. First every
// binding says that its objects are preserved, and sends no more; then no policy
// has a claim on the templates, so that nothing makes a binding say something
// else; then it is made sure that each Work says so, too, also those of what goes
// along. Only then bindings go, each only if it is what was looked at. The policies
// and the templates go last: as long as they are there the same can be done again.
func (d *Demoter) Demote(ctx context.Context, all []*Demotion, told func(string)) map[*Demotion]error {
	r := &run{Demoter: d, ctx: ctx, told: told, errs: map[*Demotion]error{}}
	r.each(all, "preserve what it has in clusters", d.hold)
	r.each(all, "take it from its policies", d.fence)
	r.await(all, d.settled, func(x *Demotion, missing string) error {
		return fmt.Errorf("the control plane does not say yet that %s is preserved (%s): nothing was let go of, and nothing is removed; is karmada-controller-manager running?", x.Template, missing)
	})
	var order []*Demotion
	for left := all; len(left) > 0; {
		var wave, rest []*Demotion
		for _, x := range left {
			if slices.ContainsFunc(x.after, func(y *Demotion) bool { return slices.Contains(left, y) }) {
				rest = append(rest, x)
			} else {
				wave = append(wave, x)
			}
		}
		if len(wave) == 0 { // they need each other
			wave, rest = rest, nil
		}
		r.release(wave)
		left, order = rest, append(order, wave...)
	}
	// What needs others goes after them: by it they are found again.
	slices.Reverse(order)
	r.each(order, "delete the template", func(ctx context.Context, x *Demotion) error { return r.dropTemplate(ctx, x, all, r.errs, r.told) })
	r.await(all, d.isOver, func(x *Demotion, missing string) error {
		return fmt.Errorf("the control plane has let go of %s, but %s is still there: it goes by itself, as soon as the cluster answers, and what is in the cluster stays", x.Template, missing)
	})
	for _, x := range all {
		if r.errs[x] == nil {
			told(fmt.Sprintf("Resource %q(%s) is demoted successfully", x.Template.Resource.String(), Path(x.Template.Object)))
		}
	}
	return r.errs
}

// A run is one call of Demote. What has failed takes no further part.
type run struct {
	*Demoter
	ctx  context.Context
	told func(string)
	errs map[*Demotion]error
}

// each does something about each that has not failed.
func (r *run) each(all []*Demotion, what string, do func(context.Context, *Demotion) error) {
	for _, x := range all {
		if r.errs[x] != nil {
			continue
		}
		if err := do(r.ctx, x); err != nil {
			r.errs[x] = fmt.Errorf("%s: %s: %w", x.Template, what, err)
		}
	}
}

// release lets go of what nothing needs that is not let go of.
func (r *run) release(wave []*Demotion) {
	for _, x := range wave {
		for _, y := range x.after {
			if r.errs[x] == nil && r.errs[y] != nil {
				r.errs[x] = fmt.Errorf("%s stays, as %s needs it", x.Template, y.Template)
			}
		}
	}
	r.await(wave, r.settled, func(x *Demotion, missing string) error {
		return fmt.Errorf("the control plane does not say any more that %s is preserved (%s): it is not let go of", x.Template, missing)
	})
	r.each(wave, "let go of it", r.dropBinding)
	r.await(wave, r.isReleased, func(x *Demotion, missing string) error {
		return fmt.Errorf("%s is being deleted, but still there: what it has in clusters is preserved; is karmada-controller-manager running?", missing)
	})
	r.each(wave, "delete its policy", func(ctx context.Context, x *Demotion) error { return r.dropPolicy(ctx, x, r.told) })
}

// await looks at each that has not failed until nothing is missing, or patience
// ends.
func (r *run) await(all []*Demotion, look func(context.Context, *Demotion) (missing string, err error), late func(*Demotion, string) error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.Patience)
	defer cancel()
	missing := map[*Demotion]string{}
	for {
		left := 0
		for _, x := range all {
			if is, ok := missing[x]; r.errs[x] != nil || ok && is == "" {
				continue
			}
			is, err := look(r.ctx, x)
			if err != nil {
				r.errs[x] = fmt.Errorf("%s: %w", x.Template, err)
				continue
			}
			if missing[x] = is; is != "" {
				left++
			}
		}
		if left == 0 {
			return
		}
		pause := time.NewTimer(r.Interval)
		select {
		case <-pause.C:
			continue
		case <-ctx.Done():
		}
		pause.Stop()
		for _, x := range all {
			switch {
			case r.errs[x] != nil || missing[x] == "":
			case r.ctx.Err() != nil:
				r.errs[x] = fmt.Errorf("%s: interrupted: %w", x.Template, context.Cause(r.ctx))
			default:
				r.errs[x] = late(x, missing[x])
			}
		}
		return
	}
}

// live reads the binding of a demotion as it is, nil when it has gone.
func (d *Demoter) live(ctx context.Context, x *Demotion) (binding.Object, error) {
	if x.Binding == nil {
		return nil, nil
	}
	b := binding.New(x.Binding.GetNamespace())
	err := d.ControlPlane.Get(ctx, client.ObjectKeyFromObject(x.Binding), b)
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", binding.ScopeOf(x.Binding).Kind, Path(x.Binding), err)
	case binding.TemplateKey(b.BindingSpec().Resource) != binding.TemplateKey(x.Binding.BindingSpec().Resource):
		return nil, nil
	}
	return b, nil
}

func preserves(b binding.Object) bool {
	return ptr.Deref(b.BindingSpec().PreserveResourcesOnDeletion, false)
}

// hold makes the binding preserve what it has in clusters, and send no more.
func (d *Demoter) hold(ctx context.Context, x *Demotion) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b, err := d.live(ctx, x)
		if err != nil || b == nil || b.GetDeletionTimestamp() != nil {
			return err
		}
		before, ok := b.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", b)
		}
		spec := b.BindingSpec()
		spec.PreserveResourcesOnDeletion = ptr.To(true)
		if spec.Suspension == nil {
			spec.Suspension = &workv1alpha2.Suspension{}
		}
		spec.Suspension.Dispatching = ptr.To(true)
		spec.Suspension.DispatchingOnClusters = nil
		if equality.Semantic.DeepEqual(before, b) {
			return nil
		}
		return d.ControlPlane.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}

// fence takes the template from its policies, and from all others.
func (d *Demoter) fence(ctx context.Context, x *Demotion) error {
	t := x.Template.Object
	return mark(ctx, d.ControlPlane, t, func(o metav1.Object) {
		for {
			c, claimed := policy.ClaimOf(o)
			if !claimed {
				break
			}
			c.Remove(o)
		}
		labels := maps.Clone(o.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels[names.ClaimedByLabel] = DemotedBy
		o.SetLabels(labels)
	})
}

// takeUp lets policies claim a template again.
func takeUp(ctx context.Context, c client.Client, t *unstructured.Unstructured) error {
	return mark(ctx, c, t, func(o metav1.Object) {
		labels := maps.Clone(o.GetLabels())
		if labels[names.ClaimedByLabel] == DemotedBy {
			delete(labels, names.ClaimedByLabel)
			o.SetLabels(labels)
		}
	})
}

// mark changes labels and annotations of an object, which must be the one that was
// read, on the basis of what it is now.
func mark(ctx context.Context, c client.Client, t *unstructured.Unstructured, change func(metav1.Object)) error {
	first := true
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := t
		if !first {
			var err error
			if now, err = get(ctx, c, t.GroupVersionKind(), client.ObjectKeyFromObject(t)); err != nil {
				return err
			}
			if now.GetUID() != t.GetUID() {
				return errors.New("it was deleted, and made anew: try again")
			}
		}
		first = false
		next := &metav1.ObjectMeta{Labels: now.GetLabels(), Annotations: now.GetAnnotations()}
		change(next)
		patch := map[string]any{}
		for field, values := range map[string][2]map[string]string{
			"labels": {now.GetLabels(), next.Labels}, "annotations": {now.GetAnnotations(), next.Annotations},
		} {
			if changed := changes(values[0], values[1]); len(changed) > 0 {
				patch[field] = changed
			}
		}
		if len(patch) == 0 {
			return nil
		}
		patch["resourceVersion"] = now.GetResourceVersion()
		data, err := json.Marshal(map[string]any{"metadata": patch})
		if err != nil {
			return fmt.Errorf("write patch: %w", err)
		}
		return c.Patch(ctx, now.DeepCopy(), client.RawPatch(types.MergePatchType, data))
	})
}

// changes returns a merge patch that makes one map another.
func changes(from, to map[string]string) map[string]any {
	all := map[string]any{}
	for k, v := range to {
		if now, ok := from[k]; !ok || now != v {
			all[k] = v
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			all[k] = nil
		}
	}
	return all
}

// worksOf lists the Works of a binding, by their keys.
func (d *Demoter) worksOf(ctx context.Context, b binding.Object) ([]client.ObjectKey, error) {
	works, err := d.listWorks(ctx, b)
	if err != nil {
		return nil, err
	}
	var keys []client.ObjectKey
	for i := range works {
		keys = append(keys, client.ObjectKeyFromObject(&works[i]))
	}
	return keys, nil
}

func (d *Demoter) listWorks(ctx context.Context, b binding.Object) ([]workv1alpha1.Work, error) {
	if b == nil || binding.ID(b) == "" {
		return nil, nil
	}
	var works workv1alpha1.WorkList
	if err := d.ControlPlane.List(ctx, &works, client.MatchingLabels(binding.WorkLabels(b))); err != nil {
		return nil, fmt.Errorf("list the Works of %s %s: %w", binding.ScopeOf(b).Kind, Path(b), err)
	}
	return works.Items, nil
}

// settled makes sure that whatever goes with the binding is preserved, and says
// what is not yet.
func (d *Demoter) settled(ctx context.Context, x *Demotion) (missing string, err error) {
	b, err := d.live(ctx, x)
	if err != nil || b == nil || b.GetDeletionTimestamp() != nil {
		return "", err
	}
	if !preserves(b) { // whoever has worked on it when it was fenced
		return fmt.Sprintf("%s %s", binding.ScopeOf(b).Kind, Path(b)), d.hold(ctx, x)
	}
	works, err := d.listWorks(ctx, b)
	if err != nil {
		return "", err
	}
	for i := range works {
		if err := d.preserve(ctx, &works[i]); err != nil {
			return "", err
		}
		if key := client.ObjectKeyFromObject(&works[i]); !slices.Contains(x.works, key) {
			x.works = append(x.works, key)
		}
	}
	return d.attachedSettled(ctx, b)
}

// preserve makes a Work preserve what it has in its cluster, as its binding says:
// it need not be waited for that it is told.
func (d *Demoter) preserve(ctx context.Context, w *workv1alpha1.Work) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := d.ControlPlane.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if ptr.Deref(w.Spec.PreserveResourcesOnDeletion, false) {
			return nil
		}
		before := w.DeepCopy()
		w.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		return d.ControlPlane.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("make Work %s/%s preserve its object: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// attachedSettled says what of that which goes along with a binding is not
// preserved yet. That is for the control plane to say, which does so because the
// binding does: so it is known that nobody is still working on what that said
// before.
func (d *Demoter) attachedSettled(ctx context.Context, b binding.Object) (missing string, err error) {
	if b.GetNamespace() == "" || binding.ID(b) == "" {
		return "", nil
	}
	label := names.DependedByLabel(names.BindingReferenceKey(b.GetNamespace(), b.GetName()))
	var attached workv1alpha2.ResourceBindingList
	err = d.ControlPlane.List(ctx, &attached, client.InNamespace(b.GetNamespace()), client.MatchingLabels{label: binding.ID(b)})
	if err != nil {
		return "", fmt.Errorf("list what goes along with ResourceBinding %s: %w", Path(b), err)
	}
	for i := range attached.Items {
		a := &attached.Items[i]
		if !preserves(a) {
			if a.Spec.Placement != nil {
				continue // its policy says so, and it stays where it is: this was checked
			}
			return "ResourceBinding " + Path(a), nil
		}
		works, err := d.listWorks(ctx, a)
		if err != nil {
			return "", err
		}
		for j := range works {
			if !ptr.Deref(works[j].Spec.PreserveResourcesOnDeletion, false) {
				return "Work " + Path(&works[j]), nil
			}
		}
	}
	return "", nil
}

// dropBinding deletes the binding, if it is as it was looked at: one that preserves
// what it has.
func (d *Demoter) dropBinding(ctx context.Context, x *Demotion) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b, err := d.live(ctx, x)
		if err != nil || b == nil || b.GetDeletionTimestamp() != nil {
			return err
		}
		if !preserves(b) {
			return fmt.Errorf("%s %s does not preserve what it has any more: somebody else is changing it", binding.ScopeOf(b).Kind, Path(b))
		}
		if by := b.BindingSpec().RequiredBy; len(by) > 0 && !x.isAfter(by) {
			return fmt.Errorf("ResourceBinding %s/%s needs it now", by[0].Namespace, by[0].Name)
		}
		return client.IgnoreNotFound(d.delete(ctx, b))
	})
}

// isAfter says whether all bindings that need this one are let go of before it.
func (x *Demotion) isAfter(by []workv1alpha2.BindingSnapshot) bool {
	return !slices.ContainsFunc(by, func(s workv1alpha2.BindingSnapshot) bool {
		return !slices.ContainsFunc(x.after, func(y *Demotion) bool {
			return y.Binding.GetNamespace() == s.Namespace && y.Binding.GetName() == s.Name
		})
	})
}

// delete deletes an object as it is, and no other.
func (d *Demoter) delete(ctx context.Context, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return d.ControlPlane.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// isReleased waits for the binding to have gone.
func (d *Demoter) isReleased(ctx context.Context, x *Demotion) (missing string, err error) {
	b, err := d.live(ctx, x)
	if err != nil || b == nil {
		return "", err
	}
	return fmt.Sprintf("%s %s", binding.ScopeOf(b).Kind, Path(b)), nil
}

// dropPolicy deletes the policy that was made for the template, if it still does
// nothing else.
func (d *Demoter) dropPolicy(ctx context.Context, x *Demotion, told func(string)) error {
	if x.Policy == nil {
		return nil
	}
	var gone bool
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var p policy.Object = &policyv1alpha1.ClusterPropagationPolicy{}
		if x.Policy.GetNamespace() != "" {
			p = &policyv1alpha1.PropagationPolicy{}
		}
		if err := d.ControlPlane.Get(ctx, client.ObjectKeyFromObject(x.Policy), p); err != nil {
			return err
		}
		if !isMadeFor(p, x.Template.Object) || p.GetDeletionTimestamp() != nil {
			return nil
		}
		err := d.delete(ctx, p)
		gone = err == nil
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if gone {
		told(x.Policy.String() + " is deleted successfully")
	}
	return nil
}

// dropTemplate deletes the template, unless somebody has taken it up again.
func (d *Demoter) dropTemplate(ctx context.Context, x *Demotion, all []*Demotion, failed map[*Demotion]error, told func(string)) error {
	if x.KeepTemplate {
		return nil
	}
	for _, y := range all {
		if failed[y] != nil && slices.Contains(y.after, x) {
			return fmt.Errorf("it stays as long as %s does, which it needs", y.Template)
		}
	}
	var gone bool
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		t, err := get(ctx, d.ControlPlane, x.Template.Object.GroupVersionKind(), client.ObjectKeyFromObject(x.Template.Object))
		if err != nil {
			return err
		}
		if t.GetUID() != x.Template.Object.GetUID() || t.GetDeletionTimestamp() != nil {
			return nil
		}
		if !isHeld(t) {
			return errors.New("somebody has taken it up again")
		}
		bound, err := d.boundAgain(ctx, t)
		if err != nil {
			return err
		}
		if bound != "" {
			return fmt.Errorf("%s has come in the meantime, and needs it", bound)
		}
		if err := d.hasInstances(ctx, x); err != nil {
			return err
		}
		err = d.delete(ctx, t)
		gone = err == nil
		return err
	})
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return err
	}
	if gone {
		told(fmt.Sprintf("ResourceTemplate (%s) is deleted successfully", Path(x.Template.Object)))
	}
	return nil
}

// boundAgain names the binding that a template has, "" for none.
func (d *Demoter) boundAgain(ctx context.Context, t *unstructured.Unstructured) (string, error) {
	for _, name := range []string{names.Binding(t.GetKind(), t.GetName()), names.BindingBeside(t.GroupVersionKind().GroupKind(), t.GetName(), t.GetNamespace())} {
		b := binding.New(t.GetNamespace())
		err := d.ControlPlane.Get(ctx, client.ObjectKey{Namespace: t.GetNamespace(), Name: name}, b)
		if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find out whether it is bound again: %w", err)
		}
		if binding.TemplateKey(b.BindingSpec().Resource) == keyOf(t) {
			return fmt.Sprintf("%s %s", binding.ScopeOf(b).Kind, Path(b)), nil
		}
	}
	return "", nil
}

// isOver waits for the clusters to have been told, and for the template to have
// gone.
func (d *Demoter) isOver(ctx context.Context, x *Demotion) (missing string, err error) {
	for _, key := range x.works {
		err := d.ControlPlane.Get(ctx, key, &workv1alpha1.Work{})
		if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read Work %s: %w", key, err)
		}
		cluster, err := names.ClusterOfExecutionNamespace(key.Namespace)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Work %s, by which cluster %s is told to take off the marks of its object,", key, cluster), nil
	}
	if x.KeepTemplate {
		return "", nil
	}
	t, err := get(ctx, d.ControlPlane, x.Template.Object.GroupVersionKind(), client.ObjectKeyFromObject(x.Template.Object))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the template: %w", err)
	case t.GetUID() != x.Template.Object.GetUID():
		return "", nil
	case len(t.GetFinalizers()) > 0:
		return fmt.Sprintf("the template, for the sake of %s,", strings.Join(t.GetFinalizers(), ", ")), nil
	default:
		return "the template", nil
	}
}

// sameBut says whether two specs of policies say the same, however they were
// written and whatever the API server has filled in.
func sameBut(made, is *policyv1alpha1.PropagationSpec) bool {
	a, b := made.DeepCopy(), is.DeepCopy()
	for _, s := range []*policyv1alpha1.PropagationSpec{a, b} {
		if policy.Priority(s) == 0 {
			s.Priority = nil
		}
		if s.SchedulerName == "default-scheduler" {
			s.SchedulerName = ""
		}
		if s.Preemption == policyv1alpha1.PreemptNever {
			s.Preemption = ""
		}
		for i := range s.ResourceSelectors {
			s.ResourceSelectors[i].Namespace = ""
		}
		s.Placement.ClusterTolerations = nil // servers of others add some
	}
	return reflect.DeepEqual(a, b)
}
