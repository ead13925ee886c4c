package render

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/util/webster"
)

// revise returns the template with the replicas of one target, or itself. A
// template that has components has no number of replicas to set.
func revise(
	ctx context.Context, i Interpreter, spec *workv1alpha2.ResourceBindingSpec, target workv1alpha2.TargetCluster, template *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if !binding.IsWorkload(spec) || spec.Replicas == 0 && len(spec.Components) > 0 ||
		!i.Supports(template.GroupVersionKind(), configv1alpha1.InterpreterOperationReviseReplica) {
		return template, nil
	}
	revised, err := i.Revise(ctx, template, int64(target.Replicas))
	if err != nil {
		return nil, fmt.Errorf("set %d replicas: %w", target.Replicas, err)
	}
	return revised, nil
}

// completions divides the completions of a Job by the replicas of its targets;
// nil when they are not to be divided.
func completions(
	spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster, template *unstructured.Unstructured,
) (map[string]int64, error) {
	if template.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) || spec.Replicas <= 0 || !isDivided(spec) {
		return nil, nil
	}
	all, found, err := unstructured.NestedInt64(template.Object, "spec", "completions")
	if err != nil {
		return nil, fmt.Errorf("divide the completions of a Job: %w", err)
	}
	if !found {
		return nil, nil
	}
	votes := make(map[string]int64, len(targets))
	for _, t := range targets {
		votes[t.Name] = int64(t.Replicas)
	}
	return webster.Divide(all, votes, template.GetUID()), nil
}

func isDivided(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Placement != nil && spec.Placement.ReplicaScheduling != nil &&
		spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
}

// withCompletions returns a Job with a number of completions. It shares the rest
// with the one that it is made of.
func withCompletions(job *unstructured.Unstructured, n int64) *unstructured.Unstructured {
	object := maps.Clone(job.Object)
	spec, _ := object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["completions"] = n
	object["spec"] = spec
	return &unstructured.Unstructured{Object: object}
}

// marked returns an object with the labels and annotations that lead from the
// member back to its binding (spec: behaviour/01 1.4, 1.5). It shares the rest
// with the one that it is made of.
func marked(o *unstructured.Unstructured, b binding.Object, generation int64, state map[string]string) *unstructured.Unstructured {
	object := maps.Clone(o.Object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		object["metadata"] = maps.Clone(metadata)
	}
	m := &unstructured.Unstructured{Object: object}
	annotations := with(o.GetAnnotations(), binding.WorkAnnotations(b))
	if generation > 0 {
		annotations[names.TemplateGenerationAnnotation] = strconv.FormatInt(generation, 10)
	}
	m.SetAnnotations(annotations)
	m.SetLabels(with(with(o.GetLabels(), state), binding.WorkLabels(b)))
	return m
}

// with returns to, which may be nil, with what is in more.
func with(to, more map[string]string) map[string]string {
	if to == nil {
		to = map[string]string{}
	}
	maps.Copy(to, more)
	return to
}

// workOf returns the Work for one cluster, but for its name and its manifest.
func workOf(b binding.Object, template *unstructured.Unstructured, cluster string, applied override.Result) (*workv1alpha1.Work, error) {
	spec := b.BindingSpec()
	annotations, err := applied.Annotations()
	if err != nil {
		return nil, err
	}
	annotations = with(annotations, binding.WorkAnnotations(b))
	annotations[names.ConflictResolutionAnnotation] = conflictResolution(spec, template)
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.ExecutionNamespace(cluster), Labels: binding.WorkLabels(b), Annotations: annotations,
		},
		Spec: workv1alpha1.WorkSpec{
			SuspendDispatching:          ptr.To(isSuspended(spec, cluster)),
			PreserveResourcesOnDeletion: ptr.To(ptr.Deref(spec.PreserveResourcesOnDeletion, false)),
		},
	}, nil
}

// conflictResolution returns what to do about an object that a member has
// already: what the template says, if that makes sense, or else the binding
// (spec: behaviour/02 2.3).
func conflictResolution(spec *workv1alpha2.ResourceBindingSpec, template *unstructured.Unstructured) string {
	switch how := template.GetAnnotations()[names.ConflictResolutionAnnotation]; {
	case how == names.ConflictOverwrite || how == names.ConflictAbort:
		return how
	case spec.ConflictResolution == policyv1alpha1.ConflictOverwrite:
		return names.ConflictOverwrite
	default:
		return names.ConflictAbort
	}
}

func isSuspended(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	s := spec.Suspension
	if s == nil {
		return false
	}
	return ptr.Deref(s.Dispatching, false) || s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}

// preservedState returns the labels that the copy that takes over after a
// failover gets from the one that failed (spec: behaviour/05 5.7).
func preservedState(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) map[string]string {
	if len(targets) != 1 || len(spec.GracefulEvictionTasks) == 0 {
		return nil
	}
	last := spec.GracefulEvictionTasks[len(spec.GracefulEvictionTasks)-1]
	if last.PurgeMode != policyv1alpha1.PurgeModeDirectly || slices.Contains(last.ClustersBeforeFailover, targets[0].Name) {
		return nil
	}
	return last.PreservedLabelState
}

// sameObject returns an error when an override policy made another object of the
// one that it was given: that would be put where nobody asked for it.
func sameObject(template, overridden *unstructured.Unstructured) error {
	for _, f := range []struct{ field, was, is string }{
		{"kind", template.GroupVersionKind().GroupKind().String(), overridden.GroupVersionKind().GroupKind().String()},
		{"metadata.namespace", template.GetNamespace(), overridden.GetNamespace()},
		{"metadata.name", template.GetName(), overridden.GetName()},
	} {
		if f.was != f.is {
			return fmt.Errorf("%w: %s was %q and becomes %q", errIdentity, f.field, f.was, f.is)
		}
	}
	return nil
}

// isReleased reports whether the policy that a binding was made for has gone, or
// does not select its template any more, and nobody has taken it over. What it has
// in clusters stays as it is until then (spec: behaviour/00, item 10): what a user
// changes in a template that no policy propagates must not reach clusters at the
// next start, or because some override policy has changed.
func isReleased(b binding.Object) bool {
	labels := b.GetLabels()
	for _, by := range []string{names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel, names.BindingManagedByLabel} {
		if labels[by] != "" {
			return false
		}
	}
	_, ours := b.GetAnnotations()[names.TemplateFingerprintAnnotation]
	return ours && len(b.BindingSpec().RequiredBy) == 0
}
