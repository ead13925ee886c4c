package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// An informer follows the objects of one kind that we manage on one member.
type informer struct {
	cache.SharedIndexInformer
	// unserved says that the member did not know the kind when it was asked last.
	unserved atomic.Bool
	// before is what an earlier connection knew, until this one knows more.
	before []*unstructured.Unstructured
}

// Watch starts to follow the objects of a kind that we manage; it returns at
// once, and does nothing when they are followed already. What goes wrong is
// tried again, with pauses, for as long as this connection lasts.
func (m *Member) Watch(gvr schema.GroupVersionResource) error {
	return m.watch(gvr, nil)
}

// watch is Watch for a kind of which before was known on an earlier connection.
func (m *Member) watch(gvr schema.GroupVersionResource, before []*unstructured.Unstructured) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return fmt.Errorf("watch %s on cluster %s: %w", gvr.GroupResource(), m.name, ErrStopped)
	}
	if _, ok := m.informers[gvr]; ok {
		return nil
	}
	i := &informer{before: before}
	i.SharedIndexInformer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(m.listWatch(gvr, i), m.dynamic),
		&unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ObjectDescription: gvr.String()},
	)
	err := errors.Join(
		i.SetTransform(stripManagedFields),
		i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) { m.watchFailed(ctx, gvr, i, err) }),
	)
	registration, handlerErr := i.AddEventHandler(m.handler(gvr))
	if err := errors.Join(err, handlerErr); err != nil {
		return fmt.Errorf("watch %s on cluster %s: %w", gvr.GroupResource(), m.name, err)
	}
	m.informers[gvr] = i
	go i.RunWithContext(m.ctx)
	if len(before) > 0 {
		go m.publishVanished(gvr, i, registration)
	}
	return nil
}

// Cached returns an object that we manage from what is followed. known is false
// when that is not complete (yet): ask live, then. A known object that is nil is
// not there, or lacks our mark. What is known may be late, or older than what
// was written last. The object is shared: do not change it.
func (m *Member) Cached(gvr schema.GroupVersionResource, namespace, name string) (obj *unstructured.Unstructured, known bool) {
	m.mu.Lock()
	i := m.informers[gvr]
	m.mu.Unlock()
	if i == nil || !i.HasSynced() || i.unserved.Load() {
		return nil, false
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	found, exists, err := i.GetStore().GetByKey(key)
	if err != nil {
		return nil, false
	}
	if !exists {
		return nil, true
	}
	obj, ok := found.(*unstructured.Unstructured)
	return obj, ok
}

func (m *Member) listWatch(gvr schema.GroupVersionResource, i *informer) *cache.ListWatch {
	resource := m.dynamic.Resource(gvr)
	selector := labels.Set{names.ManagedLabel: names.True}.String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := resource.List(ctx, o)
			if err != nil {
				return nil, err
			}
			// Anything that parses would do as an empty list, by which everything is gone.
			if !strings.HasSuffix(list.GetKind(), "List") || list.GetResourceVersion() == "" {
				return nil, fmt.Errorf("the cluster's list of %s is none, but %s %s", gvr.GroupResource(), list.GetAPIVersion(), list.GetKind())
			}
			i.unserved.Store(false)
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			events, err := resource.Watch(ctx, o)
			if err == nil {
				i.unserved.Store(false)
			}
			return events, err
		},
	}
}

func stripManagedFields(in any) (any, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return in, nil
}

func (m *Member) handler(gvr schema.GroupVersionResource) cache.ResourceEventHandler {
	publish := func(old, current any) {
		if m.ctx.Err() != nil {
			return // what an abandoned connection still says is of no interest
		}
		e := Event{Cluster: m.name, GVR: gvr}
		e.Old, _ = old.(*unstructured.Unstructured)
		e.New, _ = current.(*unstructured.Unstructured)
		switch {
		case e.Old == nil && e.New == nil:
		case e.Old != nil && e.New != nil && e.Old.GetResourceVersion() == e.New.GetResourceVersion():
			// Seen once more, by another list.
		default:
			m.publish(e)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { publish(nil, obj) },
		UpdateFunc: publish,
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			publish(obj, nil)
		},
	}
}

// watchFailed notes that a member does not serve a kind, any more or for a
// moment. Whatever is wrong, the informer tries again and keeps what it knows.
func (m *Member) watchFailed(ctx context.Context, gvr schema.GroupVersionResource, i *informer, err error) {
	klog.FromContext(ctx).V(4).Info("Watch of a member cluster ended", "cluster", m.name, "resource", gvr.String(), "err", err)
	if (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) && i.unserved.CompareAndSwap(false, true) {
		m.mapper.Reset()
	}
}

// takeOver follows what another connection to the same cluster followed, and
// ends that.
func (m *Member) takeOver(old *Member) {
	old.stop()
	for gvr, before := range old.leave() {
		if err := m.watch(gvr, before); err != nil {
			return // this connection has ended as well
		}
	}
}

// leave returns what a connection that has ended followed, with all it knew.
func (m *Member) leave() map[schema.GroupVersionResource][]*unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := make(map[schema.GroupVersionResource][]*unstructured.Unstructured, len(m.informers))
	for gvr, i := range m.informers {
		known[gvr] = i.before
		for _, obj := range i.GetStore().List() {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				known[gvr] = append(known[gvr], u)
			}
		}
	}
	m.informers = nil
	return known
}

// publishVanished tells, once an informer has seen everything, of objects of
// before that are not there.
func (m *Member) publishVanished(gvr schema.GroupVersionResource, i *informer, r cache.ResourceEventHandlerRegistration) {
	select {
	case <-m.ctx.Done():
		return
	case <-r.HasSyncedChecker().Done():
	}
	m.mu.Lock()
	before := i.before
	i.before = nil
	m.mu.Unlock()
	for _, old := range before {
		if _, exists, err := i.GetStore().Get(old); err == nil && !exists {
			m.publish(Event{Cluster: m.name, GVR: gvr, Old: old})
		}
	}
}
