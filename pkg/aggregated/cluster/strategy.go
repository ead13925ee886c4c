package cluster

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// Options are the choices of whoever runs the server.
type Options struct {
	// ResourceModels gives Clusters that are created without resource models the
	// default ones, and brings those of others into canonical form: the gate
	// CustomizedClusterResourceModeling.
	ResourceModels bool
	// Now tells the time; time.Now when it is nil.
	Now func() time.Time
}

// strategy decides how Clusters are created and changed.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	models bool
	now    func() time.Time
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

func newStrategy(typer runtime.ObjectTyper, o Options) strategy {
	s := strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, models: o.ResourceModels, now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

func (strategy) NamespaceScoped() bool                         { return false }
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize has nothing left to do: whether the spec has changed is only seen
// in canonical form, which Prepare brings about.
func (strategy) Canonicalize(runtime.Object) {}

func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	c, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return // Validate says so
	}
	c.Status = clusterv1alpha1.ClusterStatus{}
	c.Generation = 1
	canonicalize(&c.Spec, nil, s.now())
	if !s.models {
		return
	}
	if len(c.Spec.ResourceModels) == 0 {
		c.Spec.ResourceModels = defaultModels()
	}
	standardizeModels(c.Spec.ResourceModels)
}

func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o, err := pair(obj, old)
	if err != nil {
		return // ValidateUpdate says so
	}
	c.Status = *o.Status.DeepCopy()
	unmark(c, o)
	canonicalize(&c.Spec, &o.Spec, s.now())
	if s.models {
		standardizeModels(c.Spec.ResourceModels)
	}
	if !apiequality.Semantic.DeepEqual(c.Spec, o.Spec) {
		c.Generation = o.Generation + 1
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	c, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return field.ErrorList{field.InternalError(nil, notCluster(obj))}
	}
	return Validate(c)
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	c, o, err := pair(obj, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return ValidateUpdate(c, o)
}

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields says that the status is not for those who write Clusters.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("status")
}

// statusStrategy decides about clusters/status. Those who write it may change
// metadata too, and no status is refused (spec: behaviour/09 9.1).
type statusStrategy struct {
	strategy
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o, err := pair(obj, old)
	if err != nil {
		return // ValidateUpdate says so
	}
	// Who may write the status alone must not be able to send the credentials
	// of a cluster somewhere else.
	c.Spec = *o.Spec.DeepCopy()
	unmark(c, o)
}

// unmark makes kind and version no difference between what is stored and what
// is to be. Only one of them has these, and the store would take that for a
// change beside the new times of managed fields: applying the same manifest
// again would write once its second has passed.
func unmark(c, old *clusterv1alpha1.Cluster) { c.TypeMeta = old.TypeMeta }

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if _, _, err := pair(obj, old); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return nil
}

// GetResetFields says that the spec is not for those who write the status.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields("spec")
}

func resetFields(name string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(clusterv1alpha1.GroupVersion.String()): fieldpath.NewSet(fieldpath.Path{{FieldName: &name}}),
	}
}

func pair(obj, old runtime.Object) (c, o *clusterv1alpha1.Cluster, err error) {
	c, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil, nil, notCluster(obj)
	}
	if o, ok = old.(*clusterv1alpha1.Cluster); !ok {
		return nil, nil, notCluster(old)
	}
	return c, o, nil
}

func notCluster(obj runtime.Object) error { return fmt.Errorf("%T is no Cluster", obj) }

// attributes returns what Clusters can be selected by.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	c, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil, nil, notCluster(obj)
	}
	return c.Labels, fields.Set{metav1.ObjectNameField: c.Name}, nil
}

func match(l labels.Selector, f fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: l, Field: f, GetAttrs: attributes}
}
