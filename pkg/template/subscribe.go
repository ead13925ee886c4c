package template

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// An Event says that a template is there, has changed or is gone. The objects
// are shared: do not change them.
type Event struct {
	GVK schema.GroupVersionKind
	// Old is nil when the template was not known before, New when it is gone.
	Old, New *unstructured.Unstructured
	// Initial says that the template was there when its kind was first listed,
	// or when the subscription began.
	Initial bool
}

// Subscribe hands over everything that is known and becomes known of templates
// that are followed, until unsubscribe is called. The events of a kind come one
// after the other, those of several kinds at the same time; how long handle takes
// delays no other subscriber.
func (s *Store) Subscribe(handle func(Event)) (unsubscribe func()) {
	sub := &subscriber{handle: handle, at: map[*informer]cache.ResourceEventHandlerRegistration{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers[sub] = true
	for gvk, i := range s.informers {
		// The one error there is says that the informer has stopped, with the Store.
		_ = sub.follow(gvk, i)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subscribers, sub)
		for i, r := range sub.at {
			_ = i.RemoveEventHandler(r) // it stopped before, or stops now
		}
	}
}

// A subscriber hears of events.
type subscriber struct {
	handle func(Event)
	at     map[*informer]cache.ResourceEventHandlerRegistration // guarded by Store.mu
}

// follow lets a subscriber hear of an informer's events. Store.mu is held.
func (sub *subscriber) follow(gvk schema.GroupVersionKind, i *informer) error {
	r, err := i.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) { sub.publish(gvk, nil, obj, initial) },
		UpdateFunc: func(old, obj any) {
			if versionOf(old) != versionOf(obj) { // else it was seen once more, by another list
				sub.publish(gvk, old, obj, false)
			}
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			sub.publish(gvk, obj, nil, false)
		},
	})
	if err != nil {
		return err
	}
	sub.at[i] = r
	return nil
}

func versionOf(obj any) string {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.GetResourceVersion()
	}
	return ""
}

func (sub *subscriber) publish(gvk schema.GroupVersionKind, old, obj any, initial bool) {
	e := Event{GVK: gvk, Initial: initial}
	e.Old, _ = old.(*unstructured.Unstructured)
	e.New, _ = obj.(*unstructured.Unstructured)
	if e.Old != nil || e.New != nil {
		sub.handle(e)
	}
}
