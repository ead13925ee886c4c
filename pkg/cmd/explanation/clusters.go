package explanation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/affinity"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/diagnosis"
)

// affinityPlugin is the filter that refuses clusters that a placement does not mean.
const affinityPlugin = "ClusterAffinity"

// diagnose has the scheduler decide, without writing it. Nil: it has nothing to decide.
func (f *facts) diagnose() *diagnosis.Diagnosis {
	b := f.binding
	if b == nil || b.BindingSpec().Placement == nil || !b.GetDeletionTimestamp().IsZero() {
		return nil
	}
	s := schedule.Snapshot{Clusters: f.clusters}
	if len(f.peers) > 0 {
		index := affinity.New()
		for i := range f.peers {
			index.Observe(&f.peers[i])
		}
		s.Others = index.View(b)
	}
	// A scheduler's defaults; that a binding has components says that they count.
	o := schedule.Options{Models: true, Components: len(b.BindingSpec().Components) > 0, Groups: true}
	d := schedule.Explain(o, b, s)
	return &d
}

// scheduling tells of a diagnosis as a whole.
func scheduling(d *diagnosis.Diagnosis) *Scheduling {
	if d == nil {
		return nil
	}
	s := &Scheduling{Cause: d.Cause, Condition: conditionOf(&d.Condition)}
	for _, t := range d.Targets {
		s.Targets = append(s.Targets, Target{Cluster: t.Name, Replicas: t.Replicas})
	}
	return s
}

// verdictOn returns what became of a cluster: in the last term that was tried, or, if
// nothing came of that, in the one that meant it.
func verdictOn(d *diagnosis.Diagnosis, cluster string) (last diagnosis.Cluster, ok bool) {
	if d == nil {
		return last, false
	}
	for i, t := range slices.Backward(d.Terms) {
		c, found := t.Cluster(cluster)
		if !found {
			continue
		}
		if i == len(d.Terms)-1 {
			last, ok = c, true
			if d.Err == nil {
				break
			}
		}
		if c.Plugin != affinityPlugin {
			return c, true
		}
	}
	return last, ok
}

// tell says what becomes of the template in each cluster.
func (e *Explainer) tell(ctx context.Context, f *facts, d *diagnosis.Diagnosis) []Cluster {
	targets := map[string]workv1alpha2.TargetCluster{}
	if f.binding != nil {
		for _, t := range binding.Targets(f.binding.BindingSpec()) {
			targets[t.Name] = t
		}
	}
	all := map[string]bool{}
	for _, c := range f.clusters {
		all[c.Name] = true
		if f.goesEverywhere() && c.DeletionTimestamp == nil {
			targets[c.Name] = workv1alpha2.TargetCluster{Name: c.Name}
		}
	}
	for name := range targets {
		all[name] = true
	}
	for name := range f.works {
		all[name] = true
	}
	told := []Cluster{}
	for name := range all {
		if f.cluster != "" && name != f.cluster {
			continue
		}
		c := Cluster{Name: name, Work: workOf(f.works[name], RefOf(f.template))}
		t, chosen := targets[name]
		c.Chosen = chosen
		if chosen && f.binding != nil && binding.IsWorkload(f.binding.BindingSpec()) && len(f.binding.BindingSpec().Components) == 0 {
			c.Replicas = ptr.To(t.Replicas)
		}
		if v, ok := verdictOn(d, name); ok {
			c.Verdict, c.Stage, c.RefusedBy, c.RefusedFor = v.Verdict(f.now), string(v.Stage), v.Plugin, v.Reason
			if v.Stage != diagnosis.Refused && v.Stage != diagnosis.Leaving && v.Stage != diagnosis.Unknown {
				c.Score = ptr.To(v.Score)
			}
			for _, a := range v.Estimates {
				c.Estimates = append(c.Estimates, Estimate{By: a.By, Replicas: atLeast(a.Replicas)})
			}
		}
		c.Leaving = f.leaving(name)
		if at := f.find(name); at != nil {
			if ready := meta.FindStatusCondition(at.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
				c.Ready = ptr.To(conditionOf(ready))
			}
			if chosen || f.cluster != "" && f.binding != nil {
				e.preview(ctx, f, at, t, &c)
			}
		}
		told = append(told, c)
	}
	slices.SortFunc(told, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return told
}

// goesEverywhere reports whether the template is a Namespace that goes to every cluster
// without a policy.
func (f *facts) goesEverywhere() bool {
	name := f.subject.Name
	return f.auto && name != names.DefaultNamespace && !f.namespaces.Has(name) && !strings.EqualFold(f.subject.Labels[names.SkipAutoPropagationLabel], names.True)
}

// atLeast returns an estimate, nil for one that cannot tell.
func atLeast(replicas int32) *int32 {
	if replicas < 0 {
		return nil
	}
	return &replicas
}

// leaving says why the template is about to leave a cluster, "" when it is not.
func (f *facts) leaving(cluster string) string {
	if f.binding == nil {
		return ""
	}
	spec := f.binding.BindingSpec()
	for _, task := range spec.GracefulEvictionTasks {
		if task.FromCluster == cluster {
			return strings.TrimSuffix(fmt.Sprintf("evicted by %s: %s, %s", task.Producer, task.Reason, task.Message), ", ")
		}
	}
	if f.works[cluster] != nil && !slices.Contains(binding.Expected(spec), cluster) {
		return "it is not chosen any more"
	}
	return ""
}

// preview applies the override policies to the template as the cluster is to have it.
func (e *Explainer) preview(ctx context.Context, f *facts, at *clusterv1alpha1.Cluster, t workv1alpha2.TargetCluster, c *Cluster) {
	object, err := e.revised(ctx, f, t)
	if err != nil {
		c.OverrideError = err.Error()
		return
	}
	result, err := override.Apply(object, at, f.cops, f.ops)
	if err == nil {
		err = sameObject(object, result.Object)
	}
	if err != nil {
		c.OverrideError = err.Error()
		var bad *override.Error
		if errors.As(err, &bad) {
			f.badOverrides[c.Name] = bad
		}
		return
	}
	for _, a := range result.Cluster {
		c.Overrides = append(c.Overrides, Override{Kind: "ClusterOverridePolicy", Name: a.PolicyName, Changes: changes(&a.Overriders)})
	}
	for _, a := range result.Namespaced {
		c.Overrides = append(c.Overrides, Override{Kind: "OverridePolicy", Namespace: f.subject.Namespace, Name: a.PolicyName, Changes: changes(&a.Overriders)})
	}
}

// revised returns the template with the replicas of a target, or itself.
func (e *Explainer) revised(ctx context.Context, f *facts, t workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	if f.binding == nil {
		return f.template, nil
	}
	spec := f.binding.BindingSpec()
	if !binding.IsWorkload(spec) || len(spec.Components) > 0 || !e.Interpreter.Supports(f.template.GroupVersionKind(), configv1alpha1.InterpreterOperationReviseReplica) {
		return f.template, nil
	}
	object, err := e.Interpreter.Revise(ctx, f.template, int64(t.Replicas))
	if err != nil {
		return nil, fmt.Errorf("set %d replicas: %w", t.Replicas, err)
	}
	return object, nil
}

// sameObject returns an error when override policies made another object of one: the
// control plane refuses that.
func sameObject(before, after *unstructured.Unstructured) error {
	if before.GroupVersionKind().GroupKind() == after.GroupVersionKind().GroupKind() && before.GetNamespace() == after.GetNamespace() && before.GetName() == after.GetName() {
		return nil
	}
	return fmt.Errorf("override policies may not change which object it is: %s %s would become %s %s",
		before.GetKind(), pathOf(before.GetNamespace(), before.GetName()), after.GetKind(), pathOf(after.GetNamespace(), after.GetName()))
}

// changes names the sorts of overriders that are used, in the order in which they are
// applied (spec: behaviour/07 7.2).
func changes(o *policyv1alpha1.Overriders) []string {
	var used []string
	for _, sort := range []struct {
		name  string
		count int
	}{
		{"imageOverrider", len(o.ImageOverrider)},
		{"commandOverrider", len(o.CommandOverrider)},
		{"argsOverrider", len(o.ArgsOverrider)},
		{"labelsOverrider", len(o.LabelsOverrider)},
		{"annotationsOverrider", len(o.AnnotationsOverrider)},
		{"fieldOverrider", len(o.FieldOverrider)},
		{"plaintext", len(o.Plaintext)},
	} {
		if sort.count > 0 {
			used = append(used, sort.name)
		}
	}
	return used
}

// workOf tells of a Work, nil for none.
func workOf(w *workv1alpha1.Work, ref workv1alpha2.ObjectReference) *Work {
	if w == nil {
		return nil
	}
	told := &Work{
		Namespace: w.Namespace, Name: w.Name, Created: moment(w.CreationTimestamp.Time), Suspended: ptr.Deref(w.Spec.SuspendDispatching, false),
		Generation: carried(w),
	}
	if w.DeletionTimestamp != nil {
		told.Deleted = moment(w.DeletionTimestamp.Time)
	}
	if applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionApplied); applied != nil {
		told.Applied = ptr.To(conditionOf(applied))
		// One that does not say which state it is about may be of another control plane.
		if applied.ObservedGeneration != 0 && applied.ObservedGeneration < w.Generation {
			told.Applied.Status, told.Applied.Reason = string(metav1.ConditionUnknown), "Outdated"
			told.Applied.Message = "the Work has changed since"
		}
	}
	gvk := binding.GVK(ref)
	for _, s := range w.Status.ManifestStatuses {
		if id := s.Identifier; id.Group == gvk.Group && id.Kind == gvk.Kind && id.Namespace == ref.Namespace && id.Name == ref.Name {
			told.Health = string(s.Health)
		}
	}
	return told
}

// carried returns the generation of the template that a Work carries, 0 when it does
// not say.
func carried(w *workv1alpha1.Work) int64 {
	if len(w.Spec.Workload.Manifests) == 0 {
		return 0
	}
	var manifest struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest) != nil {
		return 0
	}
	generation, err := strconv.ParseInt(manifest.Metadata.Annotations[names.TemplateGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

func conditionOf(c *metav1.Condition) Condition {
	return Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: moment(c.LastTransitionTime.Time)}
}

func pathOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
