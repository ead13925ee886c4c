package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// isRetired tells kinds that are served for old clients alone, in a version that is not stored.
func isRetired(gvk schema.GroupVersionKind) bool {
	return gvk.GroupVersion() == workv1alpha1.GroupVersion &&
		(gvk.Kind == workv1alpha2.KindResourceBinding || gvk.Kind == workv1alpha2.KindClusterResourceBinding)
}

// A lean getter makes storage of custom resources as another one does, but for retired versions without a watch cache. An
// API server fills the cache of every version that it serves, whether or not anybody reads that: each write of a binding
// would be followed by a call of the conversion webhook. Without it whoever reads v1alpha1 pays for that, and nobody else.
type lean struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter. It is asked without a version: the storage's own objects tell.
func (l lean) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := l.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || resource.Group != workv1alpha2.GroupName {
		return o, err
	}
	cached := o.Decorator
	o.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		decorate := cached
		if isRetired(newFunc().GetObjectKind().GroupVersionKind()) {
			decorate = generic.UndecoratedStorage
		}
		return decorate(config, prefix, key, newFunc, newListFunc, attributes, trigger, indexers)
	}
	return o, nil
}
