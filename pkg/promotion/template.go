package promotion

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// template returns an object of a member as the control plane is to have it:
// without what a server or a controller filled in, by the same rules by which
// it will travel back, and without the marks of an earlier propagation.
func template(o *unstructured.Unstructured) *unstructured.Unstructured {
	t := (&unstructured.Unstructured{Object: binding.Relevant(o)}).DeepCopy()
	keepTimeToLive(o, t)
	t.SetLabels(without(t.GetLabels(), append(jobLabels(o),
		names.ManagedLabel, names.WorkIDLabel, names.ResourceBindingIDLabel, names.ClusterResourceBindingIDLabel,
		names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel, names.ClaimedByLabel)...))
	t.SetAnnotations(without(t.GetAnnotations(), append(names.ManagedAnnotations(),
		names.AdoptedAnnotation, names.ClusterResourceBindingNameAnnotation, names.PropagationPolicyNamespaceAnnotation,
		names.PropagationPolicyNameAnnotation, names.ClusterPropagationPolicyNameAnnotation)...))
	return t
}

// jobLabels returns the labels that a Job itself has because its pods got them:
// a server that fills in the labels of a Job takes those of its pods, among which
// it puts the Job's name and UID. The UID is another's in the control plane.
func jobLabels(o *unstructured.Unstructured) []string {
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return nil
	}
	if manual, _, err := unstructured.NestedBool(o.Object, "spec", "manualSelector"); err != nil || manual {
		return nil
	}
	return []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
}

// keepTimeToLive lets a finished Job go in time. A Work does not carry that, but
// a template does.
func keepTimeToLive(from, to *unstructured.Unstructured) {
	if from.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return
	}
	ttl, found, err := unstructured.NestedInt64(from.Object, "spec", "ttlSecondsAfterFinished")
	if err != nil || !found {
		return
	}
	spec, ok := to.Object["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		to.Object["spec"] = spec
	}
	spec["ttlSecondsAfterFinished"] = ttl
}

// without returns a map without some keys, nil when nothing is left.
func without(m map[string]string, keys ...string) map[string]string {
	m = maps.Clone(m)
	for _, k := range keys {
		delete(m, k)
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// overwrite lets a template take over what the member has. Whoever promotes it
// wants that, also if the object says otherwise: what was propagated once and has
// been preserved may still say how conflicts ended then.
func overwrite(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[names.ConflictResolutionAnnotation] = names.ConflictOverwrite
	o.SetAnnotations(annotations)
}

// rootCA is the ConfigMap that every cluster makes in each of its namespaces,
// with contents of its own.
const rootCA = "kube-root-ca.crt"

// readDependencies reads from the member what the object refers to. What is not
// there, which is allowed, is left out. alone says that it is the only object that
// is promoted.
func (p *Promoter) readDependencies(ctx context.Context, plan *Plan, alone bool) error {
	o := plan.Template.original
	if !p.Interpreter.Supports(o.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretDependency) {
		if alone { // among many it is nothing special
			p.Note(fmt.Sprintf("there is no interpreter that knows what a %s refers to: %s is promoted alone", o.GetKind(), plan.Template))
		}
		return nil
	}
	plan.Interpreted = true
	references, err := p.Interpreter.Dependencies(ctx, o)
	if err != nil {
		return fmt.Errorf("find out what %s refers to: %w", plan.Template, err)
	}
	var accounts, others []Item
	for _, r := range references {
		if r.Kind == "ConfigMap" && r.Name == rootCA {
			continue
		}
		found, err := lister{client: p.Member}.referred(ctx, r)
		if err != nil {
			return fmt.Errorf("read %s %s from cluster %s: %w", r.Kind, nameOf(r), plan.Cluster, err)
		}
		if len(found) == 0 {
			p.Note(fmt.Sprintf("%s %s, which %s refers to, is not in cluster %s: it is left out", r.Kind, nameOf(r), plan.Template, plan.Cluster))
		}
		for _, i := range found {
			i.Object = template(i.original)
			if i.Object.GetKind() == "ServiceAccount" {
				accounts = appendNew(accounts, i)
			} else {
				others = appendNew(others, i)
			}
		}
	}
	// The token of a ServiceAccount that is not there yet would be removed.
	plan.Dependencies = append(accounts, others...)
	return nil
}

// appendNew appends an item unless the object is among all.
func appendNew(all []Item, i Item) []Item {
	same := func(other Item) bool { return other.Resource == i.Resource && Path(other.Object) == Path(i.Object) }
	if slices.ContainsFunc(all, same) {
		return all
	}
	return append(all, i)
}

// nameOf names what a reference means.
func nameOf(r configv1alpha1.DependentObjectReference) string {
	name := r.Name
	if name == "" {
		name = fmt.Sprintf("with labels %q", metav1.FormatLabelSelector(r.LabelSelector))
	}
	if r.Namespace != "" {
		return r.Namespace + "/" + name
	}
	return name
}
