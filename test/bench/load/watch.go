package load

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// A Watch counts, on one API server, the objects of one resource and namespace
// that are as somebody wants them.
type Watch struct {
	target *Target
	checks map[string]func(*unstructured.Unstructured) bool

	mu      sync.Mutex
	matches map[string]map[string]bool // by check: namespaces and names of what is as wanted
	changed chan struct{}
}

// Watch follows a resource until ctx ends, and returns when it has seen what is
// there. Each of checks is counted by its name.
func (t *Target) Watch(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, checks map[string]func(*unstructured.Unstructured) bool,
) (*Watch, error) {
	w := &Watch{target: t, checks: checks, matches: map[string]map[string]bool{}, changed: make(chan struct{})}
	for name := range checks {
		w.matches[name] = map[string]bool{}
	}
	r := t.dynamic.Resource(gvr).Namespace(namespace) // of all, when it is empty
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, nil)
	// What is counted is kept here; the informer's own copy can be small.
	if err := informer.SetTransform(func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			u.SetManagedFields(nil)
		}
		return obj, nil
	}); err != nil {
		return nil, fmt.Errorf("watch %s on %s: %w", gvr.Resource, t.Name, err)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.see,
		UpdateFunc: func(_, obj any) { w.see(obj) },
		DeleteFunc: w.gone,
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s on %s: %w", gvr.Resource, t.Name, err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("watch %s on %s: %w", gvr.Resource, t.Name, ctx.Err())
	}
	return w, nil
}

func (w *Watch) see(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := false
	for name, check := range w.checks {
		was, is := w.matches[name][nameOf(u)], check(u)
		if was != is {
			changed = true
		}
		if is {
			w.matches[name][nameOf(u)] = true
		} else {
			delete(w.matches[name], nameOf(u))
		}
	}
	if changed {
		w.notify()
	}
}

func nameOf(u *unstructured.Unstructured) string { return cache.MetaObjectToName(u).String() }

func (w *Watch) gone(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, matches := range w.matches {
		delete(matches, name.String())
	}
	w.notify()
}

// notify wakes whoever waits. The lock is held.
func (w *Watch) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Count returns how many objects are as a check wants them.
func (w *Watch) Count(check string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.matches[check])
}

// Until returns as soon as exactly so many objects are as a check wants them.
func (w *Watch) Until(ctx context.Context, check string, count int) error {
	return w.until(ctx, check, count, func(have int) bool { return have == count })
}

func (w *Watch) until(ctx context.Context, check string, count int, enough func(have int) bool) error {
	for {
		w.mu.Lock()
		have, changed := len(w.matches[check]), w.changed
		w.mu.Unlock()
		if enough(have) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("on %s, %d of %d objects are %s: %w", w.target.Name, have, count, check, context.Cause(ctx))
		case <-changed:
		}
	}
}

// AllUntil is Until for several API servers.
func AllUntil(ctx context.Context, watches []*Watch, check string, count int) error {
	for _, w := range watches {
		if err := w.Until(ctx, check, count); err != nil {
			return err
		}
	}
	return nil
}

// AtLeast returns as soon as so many objects are as a check wants them.
func (w *Watch) AtLeast(ctx context.Context, check string, count int) error {
	return w.until(ctx, check, count, func(have int) bool { return have >= count })
}
