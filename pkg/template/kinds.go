package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A kind is how the objects of a kind are reached.
type kind struct {
	gvr        schema.GroupVersionResource
	namespaced bool
}

// Start follows what was and will be asked for, until ctx is done.
func (s *Store) Start(ctx context.Context) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return errors.New("a store of templates cannot be started twice")
	}
	s.running, s.ctx = true, ctx
	for gvk := range s.followed {
		s.seek(gvk)
	}
	s.mu.Unlock()

	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	definitions := metadatainformer.NewFilteredMetadataInformer(s.metadata, crds, metav1.NamespaceAll, 0, nil, nil).Informer()
	tell := func(any) { s.tellNews() }
	_, err := definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell,
	})
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	definitions.RunWithContext(ctx)
	return nil
}

// tellNews makes everybody who looks for a kind look at once.
func (s *Store) tellNews() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

// seek has somebody look for a kind until it is served, and follow it then. A
// kind that cannot be found delays no other. Store.mu is held.
func (s *Store) seek(gvk schema.GroupVersionKind) {
	if !s.running || s.sought[gvk] {
		return
	}
	s.sought[gvk] = true
	go s.look(s.ctx, gvk)
}

func (s *Store) look(ctx context.Context, gvk schema.GroupVersionKind) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sought, gvk)
	}()
	for pause := s.shortest; ; {
		news := s.newsToCome()
		err := s.find(ctx, gvk)
		if err == nil {
			return
		}
		klog.FromContext(ctx).V(2).Info("Cannot follow templates yet", "kind", gvk.String(), "err", err)
		if s.await(ctx, news, &pause) != nil {
			return
		}
	}
}

// newsToCome returns a channel that is closed when what is served may have changed
// since the call.
func (s *Store) newsToCome() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// await waits for news, or for a pause, which it makes longer for the next time;
// after news it begins anew, as what they tell of takes a moment to be served.
func (s *Store) await(ctx context.Context, news <-chan struct{}, pause *time.Duration) error {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-news:
		*pause = s.shortest
	case <-timer.C:
		*pause = min(2**pause, s.longest)
	}
	return nil
}

// find follows a kind if it is served.
func (s *Store) find(ctx context.Context, gvk schema.GroupVersionKind) error {
	k, err := s.resolve(ctx, gvk)
	if err != nil {
		return err
	}
	return s.watch(gvk, k)
}

// resolve asks the API server how a kind is reached, and remembers it. A kind
// that is not served, or cannot be propagated, is meta.IsNoMatchError.
func (s *Store) resolve(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	if !isNameOfKind(gvk) {
		return kind{}, noMatch(gvk)
	}
	list, err := s.discovery.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return kind{}, noMatch(gvk)
	}
	if err != nil {
		return kind{}, fmt.Errorf("find out whether %s is served: %w", gvk.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") || !propagatable(r.Verbs) {
			continue
		}
		k := kind{gvr: gvk.GroupVersion().WithResource(r.Name), namespaced: r.Namespaced}
		s.mu.Lock()
		s.kinds[gvk] = k
		s.mu.Unlock()
		return k, nil
	}
	return kind{}, noMatch(gvk)
}

// isNameOfKind reports whether there can be such a kind. What users mistype, as in
// "apiVersion: apps", is none, and asking the API server for it fails in ways that
// say nothing: without a group there is v1 only.
func isNameOfKind(gvk schema.GroupVersionKind) bool {
	return gvk.Kind != "" && gvk.Version != "" && (gvk.Group != "" || gvk.Version == "v1")
}

// propagatable reports whether objects can be followed and cleaned up
// (spec: behaviour/01 1.2).
func propagatable(verbs []string) bool {
	for _, v := range []string{"list", "watch", "delete"} {
		if !slices.Contains(verbs, v) {
			return false
		}
	}
	return true
}

// forget makes the next question about a kind ask the API server, and looks for
// it again if it is followed.
func (s *Store) forget(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, gvk)
	if s.followed[gvk] {
		s.seek(gvk)
	}
}
