// Package cluster stores and serves Clusters: what is valid, what form they are
// kept in, how they are printed (spec: behaviour/09 9.1).
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

func groupResource() schema.GroupResource {
	return schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: clusterv1alpha1.ResourceClusters}
}

// Storage has what serves clusters and its sub-resources.
type Storage struct {
	Clusters *REST
	Status   *StatusREST
}

// NewStorage returns the storage of Clusters.
func NewStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter, o Options) (Storage, error) {
	s := newStrategy(scheme, o)
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &clusterv1alpha1.Cluster{} },
		NewListFunc:               func() runtime.Object { return &clusterv1alpha1.ClusterList{} },
		PredicateFunc:             match,
		DefaultQualifiedResource:  groupResource(),
		SingularQualifiedResource: schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "cluster"},
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            table{now: s.now},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter, AttrFunc: attributes}); err != nil {
		return Storage{}, fmt.Errorf("set up the storage of clusters: %w", err)
	}
	status := *store
	status.CreateStrategy, status.DeleteStrategy = nil, nil
	status.UpdateStrategy = statusStrategy{s}
	status.ResetFieldsStrategy = statusStrategy{s}
	guard := agents{taking: &sync.Mutex{}, clusters: func(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
		return list(ctx, store, &metainternalversion.ListOptions{})
	}}
	return Storage{Clusters: &REST{store, guard}, Status: &StatusREST{&status, guard}}, nil
}

// REST serves clusters.
type REST struct {
	*registry.Store
	agents agents
}

var _ rest.StandardStorage = &REST{}

// Create creates a Cluster; for an agent, its own.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	defer r.agents.take(ctx)()
	return r.Store.Create(ctx, obj, r.agents.mayCreate(validate), o)
}

// Update changes a Cluster; for an agent, what is the agent's in its own.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	defer r.agents.take(ctx)()
	return r.Store.Update(ctx, name, info, r.agents.mayCreate(create), r.agents.mayUpdate(update), forceAllowCreate, o)
}

// Delete refuses for a Cluster that is protected, and agents for any but theirs.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, r.agents.mayDelete(unlessProtected(validate), o), o)
}

// DeleteCollection refuses agents, and when one of the Clusters is protected:
// then none of them is deleted, rather than those that come before it.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions, l *metainternalversion.ListOptions) (runtime.Object, error) {
	if err := r.agents.mayDeleteCollection(ctx); err != nil {
		return nil, err
	}
	if err := r.noneProtected(ctx, l); err != nil {
		return nil, err
	}
	return r.Store.DeleteCollection(ctx, unlessProtected(validate), o, l)
}

// Cluster returns one Cluster as it was a moment ago, without asking etcd, for
// programs that do so on every request. It must not be changed.
func (r *REST) Cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	obj, err := r.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		obj, err = r.Get(ctx, name, &metav1.GetOptions{}) // it may be very new
	}
	if err != nil {
		return nil, err
	}
	c, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil, notCluster(obj)
	}
	return c, nil
}

// Clusters returns all Clusters as they were a moment ago. They must not be
// changed.
func (r *REST) Clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	return list(ctx, r.Store, &metainternalversion.ListOptions{ResourceVersion: "0"})
}

func list(ctx context.Context, store *registry.Store, o *metainternalversion.ListOptions) ([]clusterv1alpha1.Cluster, error) {
	obj, err := store.List(ctx, o)
	if err != nil {
		return nil, err
	}
	clusters, ok := obj.(*clusterv1alpha1.ClusterList)
	if !ok {
		return nil, fmt.Errorf("%T is no list of Clusters", obj)
	}
	return clusters.Items, nil
}

// noneProtected refuses when one of the Clusters that are selected is protected.
func (r *REST) noneProtected(ctx context.Context, l *metainternalversion.ListOptions) error {
	all := &metainternalversion.ListOptions{}
	if l != nil {
		// All of them, as they are now.
		all.LabelSelector, all.FieldSelector = l.LabelSelector, l.FieldSelector
	}
	clusters, err := list(ctx, r.Store, all)
	if err != nil {
		return fmt.Errorf("look for clusters that are protected: %w", err)
	}
	for i := range clusters {
		if err := refuseProtected(&clusters[i]); err != nil {
			return err
		}
	}
	return nil
}

// unlessProtected does what a webhook does for other kinds, which the requests
// for Clusters never meet (spec: behaviour/08 8.3, deletion protection).
func unlessProtected(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		object, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("read metadata: %w", err)
		}
		if err := refuseProtected(object); err != nil {
			return err
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}

// refuseProtected refuses to delete a Cluster that is protected.
func refuseProtected(object metav1.Object) error {
	if names.IsDeletionProtected(object.GetLabels()) {
		return forbidden(object.GetName(), errors.New(names.DeletionProtectedRefusal))
	}
	return nil
}

// StatusREST serves clusters/status: get, update and patch.
type StatusREST struct {
	store  *registry.Store
	agents agents
}

var (
	_ rest.Getter              = &StatusREST{}
	_ rest.Updater             = &StatusREST{}
	_ rest.Patcher             = &StatusREST{}
	_ rest.TableConvertor      = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New returns an empty Cluster.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the storage is that of REST.
func (r *StatusREST) Destroy() {}

// Get returns a Cluster.
func (r *StatusREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, o)
}

// Update changes the status of a Cluster that exists.
func (r *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, r.agents.mayUpdate(update), false, o)
}

// GetResetFields returns the fields that are not for those who write the status.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints Clusters as REST does.
func (r *StatusREST) ConvertToTable(ctx context.Context, obj, o runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, o)
}
