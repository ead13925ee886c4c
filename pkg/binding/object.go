package binding

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// An Object is a binding of either scope.
type Object interface {
	client.Object
	BindingSpec() *workv1alpha2.ResourceBindingSpec
	BindingStatus() *workv1alpha2.ResourceBindingStatus
}

var (
	_ Object = (*workv1alpha2.ResourceBinding)(nil)
	_ Object = (*workv1alpha2.ClusterResourceBinding)(nil)
)

// A Scope is what the two scopes of binding differ in.
type Scope struct {
	Kind      string // also in events and messages
	Finalizer string
	// IDLabel is on the binding, on its Works and on their manifests.
	IDLabel string
}

// ScopeOf returns the scope of a binding.
func ScopeOf(b Object) Scope {
	if _, ok := b.(*workv1alpha2.ClusterResourceBinding); ok {
		return Scope{
			Kind: "ClusterResourceBinding", Finalizer: names.ClusterResourceBindingFinalizer, IDLabel: names.ClusterResourceBindingIDLabel,
		}
	}
	return Scope{Kind: "ResourceBinding", Finalizer: names.ResourceBindingFinalizer, IDLabel: names.ResourceBindingIDLabel}
}

// New returns an empty binding: a ResourceBinding when there is a namespace.
func New(namespace string) Object {
	if namespace != "" {
		return &workv1alpha2.ResourceBinding{}
	}
	return &workv1alpha2.ClusterResourceBinding{}
}

// ID returns the permanent identity of a binding, "" when it has none yet.
func ID(b Object) string { return b.GetLabels()[ScopeOf(b).IDLabel] }

// WorkLabels returns the labels that a binding's Works carry, and their
// manifests too.
func WorkLabels(b Object) map[string]string {
	return map[string]string{ScopeOf(b).IDLabel: ID(b)}
}

// WorkAnnotations returns the annotations by which a Work, and its manifest,
// leads back to its binding (spec: behaviour/01 1.5).
func WorkAnnotations(b Object) map[string]string {
	if b.GetNamespace() == "" {
		return map[string]string{names.ClusterResourceBindingNameAnnotation: b.GetName()}
	}
	return map[string]string{
		names.ResourceBindingNamespaceAnnotation: b.GetNamespace(),
		names.ResourceBindingNameAnnotation:      b.GetName(),
	}
}

// OfWork returns the key of the binding that a Work belongs to, ok false when it
// comes from elsewhere. A key without a namespace is a ClusterResourceBinding's.
func OfWork(w *workv1alpha1.Work) (key client.ObjectKey, ok bool) {
	a := w.GetAnnotations()
	if name := a[names.ResourceBindingNameAnnotation]; name != "" {
		return client.ObjectKey{Namespace: a[names.ResourceBindingNamespaceAnnotation], Name: name}, true
	}
	name := a[names.ClusterResourceBindingNameAnnotation]
	return client.ObjectKey{Name: name}, name != ""
}

// Targets returns the clusters that shall have a Work, sorted by name: those
// that were scheduled, and those of bindings that depend on this one, whose
// replicas count only where nothing was scheduled (spec: behaviour/02 2.3).
func Targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	all := map[string]workv1alpha2.TargetCluster{}
	for _, by := range spec.RequiredBy {
		for _, c := range by.Clusters {
			all[c.Name] = c
		}
	}
	for _, c := range spec.Clusters {
		all[c.Name] = c
	}
	return slices.SortedFunc(maps.Values(all), func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
}

// Expected returns the names of the clusters that may have a Work, sorted: the
// Targets, and those that are being left gracefully (spec: behaviour/02 2.3).
func Expected(spec *workv1alpha2.ResourceBindingSpec) []string {
	var all []string
	for _, c := range Targets(spec) {
		all = append(all, c.Name)
	}
	for _, task := range spec.GracefulEvictionTasks {
		if task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			all = append(all, task.FromCluster)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// IsWorkload reports whether what is bound has replicas to be scheduled
// (spec: behaviour/00).
func IsWorkload(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Replicas > 0 || spec.ReplicaRequirements != nil || len(spec.Components) > 0
}

// SchedulerOf returns the name of the scheduler that a binding asks for
// (spec: behaviour/04 4.2).
func SchedulerOf(b Object) string {
	return cmp.Or(b.BindingSpec().SchedulerName, names.DefaultScheduler)
}

// IsScheduled reports whether there is a scheduler that looks after a binding: a
// policy or another manager stands behind it, and nobody has suspended that
// (spec: behaviour/04 4.2).
func IsScheduled(b Object) bool {
	spec, labels := b.BindingSpec(), b.GetLabels()
	if spec.Suspension != nil && ptr.Deref(spec.Suspension.Scheduling, false) {
		return false
	}
	return labels[names.PropagationPolicyIDLabel] != "" || labels[names.ClusterPropagationPolicyIDLabel] != "" || labels[names.BindingManagedByLabel] != ""
}

// IsDecided reports whether the clusters that a binding names are an answer,
// rather than that there is none yet. No cluster is an answer only if a scheduler
// says so of the binding as it is: a binding that has just been made or restored,
// or one that somebody took a cluster out of, is still to be scheduled. One
// without a placement is not scheduled at all.
func IsDecided(b Object) bool {
	spec, status := b.BindingSpec(), b.BindingStatus()
	if len(spec.Clusters) > 0 || spec.Placement == nil {
		return true
	}
	scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionScheduled)
	switch {
	case scheduled == nil:
		return false
	case scheduled.Reason == workv1alpha2.ReasonNoClusterFit:
		return true
	default:
		return scheduled.Reason == workv1alpha2.ReasonScheduled && status.SchedulerObservedGeneration == b.GetGeneration()
	}
}

// GVK returns the kind of a template.
func GVK(ref workv1alpha2.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

// TemplateKey identifies a template by group, kind, namespace and name: what is
// the same object in another version has the same key.
func TemplateKey(ref workv1alpha2.ObjectReference) string {
	return ref.Namespace + "/" + ref.Name + "/" + GVK(ref).GroupKind().String()
}

// Indices of the manager's cache, made by Index.
const (
	// WorksByBinding indexes Works by the permanent identity of their binding.
	WorksByBinding = "binding"
	// ByTemplate indexes bindings by TemplateKey.
	ByTemplate = "template"
	// ByPolicy indexes bindings by the permanent identity of the policy that
	// claims them.
	ByPolicy = "policy"
	// ByCluster indexes bindings by the names of the clusters in spec.clusters.
	ByCluster = "spec.clusters.name"
)

// Index makes the indices of Works and bindings. It must be called once for a
// cache, before anything lists by them.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	byID := func(o client.Object) []string {
		return values(o.GetLabels(), names.ResourceBindingIDLabel, names.ClusterResourceBindingIDLabel)
	}
	if err := indexer.IndexField(ctx, &workv1alpha1.Work{}, WorksByBinding, byID); err != nil {
		return fmt.Errorf("index Works by binding: %w", err)
	}
	for _, b := range []Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		byTemplate := func(o client.Object) []string {
			if b, ok := o.(Object); ok {
				return []string{TemplateKey(b.BindingSpec().Resource)}
			}
			return nil
		}
		byPolicy := func(o client.Object) []string {
			return values(o.GetLabels(), names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel)
		}
		if err := indexer.IndexField(ctx, b, ByTemplate, byTemplate); err != nil {
			return fmt.Errorf("index bindings by template: %w", err)
		}
		if err := indexer.IndexField(ctx, b, ByPolicy, byPolicy); err != nil {
			return fmt.Errorf("index bindings by policy: %w", err)
		}
		if err := indexer.IndexField(ctx, b, ByCluster, Clusters); err != nil {
			return fmt.Errorf("index bindings by cluster: %w", err)
		}
	}
	return nil
}

// Clusters returns the names of the clusters that a binding is scheduled to.
func Clusters(o client.Object) []string {
	b, ok := o.(Object)
	if !ok {
		return nil
	}
	var clusters []string
	for _, target := range b.BindingSpec().Clusters {
		clusters = append(clusters, target.Name)
	}
	return clusters
}

// values returns what a map has under some keys.
func values(m map[string]string, keys ...string) []string {
	var found []string
	for _, k := range keys {
		if v := m[k]; v != "" {
			found = append(found, v)
		}
	}
	return found
}
