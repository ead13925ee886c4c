package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
)

// A Change is what becomes of an object of the member when it is promoted, apart
// from the marks by which the control plane knows it.
type Change struct {
	Item   Item
	Fields []Field
	// Pods are those of Fields by which pods are started anew, or stopped.
	Pods []Field
}

// A RestartError says that a promotion would do something to pods.
type RestartError struct {
	Cluster string
	Changes []Change // with Pods
}

func (e *RestartError) Error() string {
	var all []string
	for _, c := range e.Changes {
		var paths []string
		for _, f := range c.Pods {
			paths = append(paths, f.Path)
		}
		all = append(all, fmt.Sprintf("the pods of %s in cluster %s would be started anew or stopped, as %s would change", c.Item, e.Cluster, strings.Join(paths, ", ")))
	}
	return strings.Join(all, "\n") + ": --dry-run shows how; make the control plane and its override policies leave that as it is, or go on with --allow-restart"
}

// foresee finds out what becomes of the objects of the member: the control plane
// fills in what it does, override policies say their part, and then the member has
// to say what it would make of that. Nothing is changed there.
func (p *Promoter) foresee(ctx context.Context, plan *Plan) error {
	for _, i := range plan.items() {
		c, err := p.change(ctx, plan, *i)
		if err != nil {
			return err
		}
		if len(c.Fields) > 0 {
			plan.Changes = append(plan.Changes, c)
		}
	}
	e := &RestartError{Cluster: plan.Cluster}
	for _, c := range plan.Changes {
		switch {
		case len(c.Pods) == 0:
			p.Note(fmt.Sprintf("%s is changed in cluster %s: %s", c.Item, plan.Cluster, pathsOf(c.Fields)))
		case p.AllowRestart:
			p.Note(fmt.Sprintf("the pods of %s in cluster %s are started anew or stopped: %s changes", c.Item, plan.Cluster, pathsOf(c.Pods)))
		default:
			e.Changes = append(e.Changes, c)
		}
	}
	if len(e.Changes) > 0 {
		return e
	}
	return nil
}

// pathsOf names fields, as many as a line takes.
func pathsOf(all []Field) string {
	const most = 3
	var paths []string
	for _, f := range all[:min(len(all), most)] {
		paths = append(paths, f.Path)
	}
	if len(all) > most {
		paths = append(paths, fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(paths, ", ")
}

// change finds out what becomes of one object.
func (p *Promoter) change(ctx context.Context, plan *Plan, i Item) (Change, error) {
	c := Change{Item: i}
	desired, err := p.desired(ctx, plan, i)
	if err != nil {
		return c, err
	}
	result := desired.DeepCopy()
	err = p.Member.Update(ctx, result, client.DryRunAll)
	switch {
	case err == nil:
		c.Fields = fields(visible(i.original), visible(result), "")
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return c, fmt.Errorf("%s has changed in cluster %s in the meantime: try again: %w", i, plan.Cluster, err)
	case apierrors.IsInvalid(err) && len(onlySet(i.original, desired)) > 0:
		return c, fmt.Errorf("cluster %s would not take %s as the control plane would send it: %w", plan.Cluster, i, err)
	case apierrors.IsInvalid(err): // for a field that is not sent: it will be kept
		c.Fields = onlySet(i.original, desired)
	default: // nobody may try there, or a webhook of the member does not like trials
		p.Note(fmt.Sprintf("cluster %s cannot be asked what it would make of %s, so that is only guessed: %v", plan.Cluster, i, err))
		c.Fields = fields(visible(i.original), visible(desired), "")
	}
	for _, f := range c.Fields {
		if isOfPods(i.original, f) {
			c.Pods = append(c.Pods, f)
		}
	}
	return c, nil
}

// desired returns an object as the control plane will send it, but for its marks,
// completed as it is when it is applied (spec: behaviour/02 2.5).
func (p *Promoter) desired(ctx context.Context, plan *Plan, i Item) (*unstructured.Unstructured, error) {
	sent := (&unstructured.Unstructured{Object: binding.Relevant(i.planned)}).DeepCopy()
	sent.SetLabels(without(sent.GetLabels(), names.ClaimedByLabel, names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel))
	if p.Cluster != nil {
		o, err := p.overridesOf(ctx, i.Object.GetNamespace())
		if err != nil {
			return nil, err
		}
		result, err := override.Apply(sent, p.Cluster, o.cluster, o.namespaced)
		if err != nil {
			return nil, fmt.Errorf("an override policy of the control plane would keep %s from getting to cluster %s: %w", i, plan.Cluster, err)
		}
		sent = result.Object.DeepCopy()
	}
	observed := i.original
	sent.SetResourceVersion(observed.GetResourceVersion())
	sent.SetUID(observed.GetUID())
	sent.SetFinalizers(observed.GetFinalizers())
	sent.SetOwnerReferences(observed.GetOwnerReferences())
	annotations := observed.GetAnnotations()
	sent.SetLabels(kept(sent.GetLabels(), observed.GetLabels(), annotations[names.ManagedLabelsAnnotation]))
	sent.SetAnnotations(kept(sent.GetAnnotations(), annotations, annotations[names.ManagedAnnotationsAnnotation]))
	if status, ok := observed.Object["status"]; ok {
		sent.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
	if !p.Interpreter.Supports(sent.GroupVersionKind(), configv1alpha1.InterpreterOperationRetain) {
		return sent, nil
	}
	retained, err := p.Interpreter.Retain(ctx, sent, observed)
	if err != nil {
		return nil, fmt.Errorf("find out what of %s stays as it is in cluster %s: %w", i, plan.Cluster, err)
	}
	return retained, nil
}

// kept adds to desired what is observed and was not ours, a list separated by
// commas, before.
func kept(desired, observed map[string]string, ours string) map[string]string {
	all := map[string]string{}
	set := strings.Split(ours, ",")
	for k, v := range observed {
		if !slices.Contains(set, k) || k == corev1.LastAppliedConfigAnnotation {
			all[k] = v
		}
	}
	for k, v := range desired {
		all[k] = v
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// visible returns what of an object counts as a change: not what servers note
// about it, nor our marks.
func visible(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	delete(c.Object, "status")
	labels, annotations := c.GetLabels(), c.GetAnnotations()
	for _, m := range []map[string]string{labels, annotations} {
		for k := range m {
			if isMark(k) {
				delete(m, k)
			}
		}
	}
	metadata := map[string]any{"namespace": c.GetNamespace(), "name": c.GetName()}
	for field, m := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		values := map[string]any{}
		for k, v := range m {
			values[k] = v
		}
		metadata[field] = values
	}
	c.Object["metadata"] = metadata
	return c.Object
}

// isMark says whether a label or an annotation is one of the control plane's.
func isMark(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"karmada.io", "karmadactl.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// onlySet returns the fields that desired sets otherwise than they are. What it
// does not set counts as kept.
func onlySet(observed, desired *unstructured.Unstructured) []Field {
	have := visible(observed)
	var all []Field
	for _, f := range fields(have, visible(desired), "") {
		if f.Want != nil {
			all = append(all, f)
		}
	}
	return all
}

// isOfPods says whether pods are started anew, or stopped, when a field of an
// object changes.
func isOfPods(o *unstructured.Unstructured, f Field) bool {
	if o.GetKind() == "Pod" && o.GetAPIVersion() == "v1" {
		return strings.HasPrefix(f.Path, "spec")
	}
	if f.Path == "spec.replicas" {
		have, ok := number(f.Have)
		want, set := number(f.Want)
		return ok && set && want < have
	}
	// Whatever has a pod template is taken for a workload, whoever its controller is.
	_, found, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	return err == nil && found && strings.HasPrefix(f.Path, "spec.template")
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}
