package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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

// crds are the objects by which kinds come and go.
var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// soon is how long the first list of a kind may take before nobody waits for it
// any more.
const soon = 10 * time.Second

// An informer follows the objects of one kind that we manage on one member.
type informer struct {
	cache.SharedIndexInformer
	stop    context.CancelFunc
	started time.Time
	// troubled says that something went wrong.
	troubled atomic.Bool
	// unserved says that the member did not know the kind when it was asked last.
	unserved atomic.Bool
	// before is what an earlier connection knew, until this one knows more.
	before []*unstructured.Unstructured
}

// Watch says which kinds a Work of this cluster, given by its name, needs. The
// objects of these that we manage are followed for as long as some Work needs
// them: what this Work needed before and does not now may stop. It returns at
// once. What goes wrong is tried again, with pauses, for as long as this
// connection lasts: one kind that cannot be followed is no matter to others. The
// error is ErrStopped.
func (m *Member) Watch(work string, kinds ...schema.GroupVersionResource) error {
	m.needs.mu.Lock()
	defer m.needs.mu.Unlock()
	if m.ctx.Err() != nil || m.needs.member != m {
		return fmt.Errorf("watch cluster %s: %w", m.name, ErrStopped)
	}
	if slices.Equal(m.needs.works[work], kinds) {
		return nil
	}
	for _, gvr := range kinds {
		if err := m.follow(gvr, nil); err != nil {
			return err
		}
	}
	m.needs.set(work, slices.Clone(kinds))
	return nil
}

// follow starts an informer, unless there is one. before is what was known on an
// earlier connection.
func (m *Member) follow(gvr schema.GroupVersionResource, before []*unstructured.Unstructured) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return fmt.Errorf("watch %s on cluster %s: %w", gvr.GroupResource(), m.name, ErrStopped)
	}
	if _, ok := m.informers[gvr]; ok {
		return nil
	}
	i := &informer{before: before, started: time.Now()}
	i.SharedIndexInformer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(m.listWatch(gvr, i), m.dynamic),
		&unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ObjectDescription: gvr.String()},
	)
	ctx, stop := context.WithCancel(m.ctx)
	i.stop = stop
	err := errors.Join(
		i.SetTransform(stripManagedFields),
		i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) { m.watchFailed(ctx, gvr, i, err) }),
	)
	registration, handlerErr := i.AddEventHandler(m.handler(ctx, gvr))
	if err := errors.Join(err, handlerErr); err != nil {
		stop()
		return fmt.Errorf("watch %s on cluster %s: %w", gvr.GroupResource(), m.name, err)
	}
	m.informers[gvr] = i
	go i.RunWithContext(ctx)
	if len(before) > 0 {
		go m.publishVanished(ctx, gvr, i, registration)
	}
	return nil
}

// unwatch ends an informer: it tells nothing any more, also not that what it
// knew has gone.
func (m *Member) unwatch(gvr schema.GroupVersionResource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.informers[gvr]; ok {
		i.stop()
		delete(m.informers, gvr)
	}
}

// informer returns the informer of a kind, nil when it is not followed.
func (m *Member) informer(gvr schema.GroupVersionResource) *informer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.informers[gvr]
}

// Starting reports whether all that we manage of a kind will be known soon: it
// has been followed for some seconds at most, and nothing went wrong. Who has time
// can wait for that instead of asking for each object.
func (m *Member) Starting(gvr schema.GroupVersionResource) bool {
	i := m.informer(gvr)
	return i != nil && !i.HasSynced() && !i.troubled.Load() && time.Since(i.started) < soon
}

// Cached returns an object that we manage from what is followed. known is false
// when that is not complete (yet): ask live, then. A known object that is nil is
// not there, or lacks our mark. What is known may be late, or older than what
// was written last. The object is shared: do not change it.
func (m *Member) Cached(gvr schema.GroupVersionResource, namespace, name string) (obj *unstructured.Unstructured, known bool) {
	i := m.informer(gvr)
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

func (m *Member) handler(ctx context.Context, gvr schema.GroupVersionResource) cache.ResourceEventHandler {
	publish := func(old, current any) {
		if ctx.Err() != nil {
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
			if gvr.GroupResource() == crds {
				m.mapper.expire() // there may be a kind more
			}
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
	i.troubled.Store(true)
	if (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) && i.unserved.CompareAndSwap(false, true) {
		m.mapper.Reset()
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
func (m *Member) publishVanished(ctx context.Context, gvr schema.GroupVersionResource, i *informer, r cache.ResourceEventHandlerRegistration) {
	select {
	case <-ctx.Done():
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
