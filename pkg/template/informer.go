package template

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

// byClaim indexes templates by the policy that claims them.
const byClaim = "claim"

// claim is a key of byClaim.
func claim(label, id string) string { return label + "=" + id }

func claims(obj any) ([]string, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	var found []string
	for _, label := range []string{names.PropagationPolicyIDLabel, names.ClusterPropagationPolicyIDLabel} {
		if id := u.GetLabels()[label]; id != "" {
			found = append(found, claim(label, id))
		}
	}
	return found, nil
}

// An informer follows the templates of one kind.
type informer struct {
	cache.SharedIndexInformer
	kind kind
	stop context.CancelFunc
	// unserved says that the API server did not know the kind when it was asked
	// last. What was known stays, but is not complete.
	unserved atomic.Bool
}

// complete reports whether an informer knows all there is.
func (i *informer) complete() bool { return i.HasSynced() && !i.unserved.Load() }

// cached returns the informer of a kind, ok false when it does not know all.
func (s *Store) cached(gvk schema.GroupVersionKind) (i *informer, ok bool) {
	s.mu.Lock()
	i = s.informers[gvk]
	s.mu.Unlock()
	return i, i != nil && i.complete()
}

// watch follows a kind, which is reached as k says. One that was reached in
// another way before is followed anew.
func (s *Store) watch(gvk schema.GroupVersionKind, k kind) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.informers[gvk]
	if before != nil && before.kind == k {
		return nil // it goes on by itself
	}
	i := &informer{kind: k}
	i.SharedIndexInformer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(s.listWatch(gvk, i), s.dynamic),
		&unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{
			ObjectDescription: gvk.String(),
			Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byClaim: claims},
		},
	)
	err := errors.Join(
		i.SetTransform(stripManagedFields),
		i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) { s.listFailed(ctx, gvk, i, err) }),
	)
	for sub := range s.subscribers {
		err = errors.Join(err, sub.follow(gvk, i))
	}
	if err != nil {
		return fmt.Errorf("follow %s: %w", gvk, err)
	}
	var ctx context.Context
	ctx, i.stop = context.WithCancel(s.ctx)
	s.informers[gvk] = i
	if before != nil {
		before.stop()
	}
	go i.RunWithContext(ctx)
	return nil
}

func (s *Store) listWatch(gvk schema.GroupVersionKind, i *informer) *cache.ListWatch {
	resource := s.dynamic.Resource(i.kind.gvr)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			for pause := s.shortest; ; {
				news := s.newsToCome()
				list, err := resource.List(ctx, o)
				if err == nil {
					err = isList(list, gvk)
				}
				if err == nil {
					i.unserved.Store(false)
					return list, nil
				}
				s.listFailed(ctx, gvk, i, err)
				if !i.unserved.Load() {
					return nil, err
				}
				// The informer itself would not hear the news, and try again too late.
				if err := s.await(ctx, news, &pause); err != nil {
					return nil, err
				}
			}
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := resource.Watch(ctx, o)
			if err == nil {
				i.unserved.Store(false)
			}
			return events, err
		},
	}
}

// isList makes sure that an answer is a list: anything that parses would do as an
// empty one, by which everything is gone.
func isList(list *unstructured.UnstructuredList, gvk schema.GroupVersionKind) error {
	if !strings.HasSuffix(list.GetKind(), "List") || list.GetResourceVersion() == "" {
		return fmt.Errorf("the API server's list of %s is none, but %s %s", gvk, list.GetAPIVersion(), list.GetKind())
	}
	return nil
}

// list asks the API server for templates.
func (s *Store) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	r, namespaced, err := s.Resource(gvk)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	if !namespaced && namespace != "" {
		return nil, nil
	}
	list, err := within(r, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err == nil {
		err = isList(list, gvk)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, s.unserved(gvk, err))
	}
	found := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetManagedFields(nil)
		found = append(found, &list.Items[i])
	}
	return found, nil
}

func stripManagedFields(in any) (any, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return in, nil
}

// listFailed notes that a kind is not served, any more or for a moment. Whatever is
// wrong, the informer tries again and keeps what it knows.
func (s *Store) listFailed(ctx context.Context, gvk schema.GroupVersionKind, i *informer, err error) {
	klog.FromContext(ctx).V(4).Info("Could not list or watch templates", "kind", gvk.String(), "err", err)
	if (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) && i.unserved.CompareAndSwap(false, true) {
		s.forget(gvk)
	}
}
