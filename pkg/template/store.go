package template

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// Options say what a Store works with. All fields are required.
type Options struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterfaceWithContext
	// Metadata watches CustomResourceDefinitions: they tell when to look again
	// for a kind that was not served.
	Metadata metadata.Interface
	// Exempt says which kinds are never propagated. They are not followed.
	Exempt func(schema.GroupVersionKind) bool
}

// A Store follows the templates of a control plane. It is a manager.Runnable;
// before it is started it knows nothing, and asks live.
type Store struct {
	dynamic   dynamic.Interface
	discovery discovery.ServerResourcesInterfaceWithContext
	metadata  metadata.Interface
	exempt    func(schema.GroupVersionKind) bool
	// shortest and longest are the pauses between two looks for a kind that is
	// not served.
	shortest, longest time.Duration

	mu          sync.Mutex
	ctx         context.Context // ends what is under way, once started
	running     bool
	news        chan struct{} // closed when what is served may have changed
	followed    map[schema.GroupVersionKind]bool
	sought      map[schema.GroupVersionKind]bool // somebody looks for it
	kinds       map[schema.GroupVersionKind]kind
	informers   map[schema.GroupVersionKind]*informer
	subscribers map[*subscriber]bool
}

var (
	_ manager.Runnable               = (*Store)(nil)
	_ manager.LeaderElectionRunnable = (*Store)(nil)
)

// NewStore makes a Store, which whoever makes it adds to a manager or starts.
func NewStore(o Options) (*Store, error) {
	if o.Dynamic == nil || o.Discovery == nil || o.Metadata == nil || o.Exempt == nil {
		return nil, errors.New("a store of templates needs clients, and to know what is exempt")
	}
	return &Store{
		dynamic:     o.Dynamic,
		discovery:   o.Discovery,
		metadata:    o.Metadata,
		exempt:      o.Exempt,
		shortest:    200 * time.Millisecond,
		longest:     30 * time.Second,
		news:        make(chan struct{}),
		sought:      map[schema.GroupVersionKind]bool{},
		ctx:         context.Background(),
		followed:    map[schema.GroupVersionKind]bool{},
		kinds:       map[schema.GroupVersionKind]kind{},
		informers:   map[schema.GroupVersionKind]*informer{},
		subscribers: map[*subscriber]bool{},
	}, nil
}

// Setup makes a Store of the control plane that a manager manages, and adds it
// to the manager. It runs where the manager leads.
func Setup(mgr manager.Manager, exempt func(schema.GroupVersionKind) bool) (*Store, error) {
	config, http := mgr.GetConfig(), mgr.GetHTTPClient()
	d, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client for templates: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("make discovery client for templates: %w", err)
	}
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), http)
	if err != nil {
		return nil, fmt.Errorf("make metadata client for templates: %w", err)
	}
	s, err := NewStore(Options{Dynamic: d, Discovery: disco, Metadata: m, Exempt: exempt})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(s); err != nil {
		return nil, fmt.Errorf("follow templates: %w", err)
	}
	return s, nil
}

// NeedLeaderElection says that a process that stands by follows no templates.
func (s *Store) NeedLeaderElection() bool { return true }

// Follow asks for the templates of a kind, exactly of this version. It returns
// at once, may be repeated, and does nothing for a kind that is exempt. A kind
// that is not served is followed as soon as it is.
func (s *Store) Follow(gvk schema.GroupVersionKind) {
	if s.exempt(gvk) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[gvk] {
		return
	}
	s.followed[gvk] = true
	s.seek(gvk)
}

// Synced reports whether all templates of a kind are known.
func (s *Store) Synced(gvk schema.GroupVersionKind) bool {
	_, ok := s.cached(gvk)
	return ok
}

// Get returns a template: from what is known when that is complete and not older
// than the resourceVersion of ref, else live. The object is shared: do not change
// it. apierrors.IsNotFound means that it was looked for live and is not there;
// a kind that is not served is another error, meta.IsNoMatchError.
func (s *Store) Get(ctx context.Context, ref workv1alpha2.ObjectReference) (*unstructured.Unstructured, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if u, _ := s.Cached(gvk, ref.Namespace, ref.Name); u != nil && notOlder(u, ref.ResourceVersion) {
		return u, nil
	}
	return s.Live(ctx, gvk, ref.Namespace, ref.Name)
}

// Cached returns a template from what is known. known is false when that is not
// complete: ask live, then. A known template that is nil is not there, or so new
// that it has not been heard of. The object is shared: do not change it.
func (s *Store) Cached(gvk schema.GroupVersionKind, namespace, name string) (u *unstructured.Unstructured, known bool) {
	i, ok := s.cached(gvk)
	if !ok {
		return nil, false
	}
	found, exists, err := i.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil {
		return nil, false
	}
	if !exists {
		return nil, true
	}
	u, ok = found.(*unstructured.Unstructured)
	return u, ok
}

// notOlder reports whether an object is at least as new as a version of it.
// Versions that cannot be compared say no.
func notOlder(u *unstructured.Unstructured, than string) bool {
	if than == "" || than == u.GetResourceVersion() {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), than)
	return err == nil && order >= 0
}

// Live asks the API server for a template. Errors are as of Get.
func (s *Store) Live(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	what := func() string { return fmt.Sprintf("%s %s", gvk.Kind, cache.NewObjectName(namespace, name)) }
	r, namespaced, err := s.Resource(gvk)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", what(), err)
	}
	if namespaced != (namespace != "") { // no such object can be, and the path would not be served
		return nil, fmt.Errorf("get %s: %w", what(), apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name))
	}
	u, err := within(r, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", what(), s.unserved(gvk, err))
	}
	if u.GroupVersionKind() != gvk || u.GetName() != name {
		return nil, fmt.Errorf("get %s: the API server answered with %s %s", what(), u.GroupVersionKind(), u.GetName())
	}
	u.SetManagedFields(nil)
	return u, nil
}

// List returns the templates of a kind that a selector matches; an empty
// namespace means all. They come from what is known when that is complete, else
// live. The objects are shared: do not change them.
func (s *Store) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	i, ok := s.cached(gvk)
	if !ok {
		return s.list(ctx, gvk, namespace, selector)
	}
	var found []*unstructured.Unstructured
	add := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			found = append(found, u)
		}
	}
	var err error
	if namespace == "" {
		err = cache.ListAll(i.GetStore(), selector, add)
	} else {
		err = cache.ListAllByNamespace(i.GetIndexer(), namespace, selector, add)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	return found, nil
}

// ListClaimed returns the templates of a kind that a policy claims: those that
// have its permanent identity under the label of its scope. An empty namespace
// means all. Otherwise it is as List.
func (s *Store) ListClaimed(ctx context.Context, gvk schema.GroupVersionKind, namespace, label, id string) ([]*unstructured.Unstructured, error) {
	i, ok := s.cached(gvk)
	if !ok {
		return s.list(ctx, gvk, namespace, labels.SelectorFromSet(labels.Set{label: id}))
	}
	all, err := i.GetIndexer().ByIndex(byClaim, claim(label, id))
	if err != nil {
		return nil, fmt.Errorf("list claimed %s: %w", gvk.Kind, err)
	}
	var found []*unstructured.Unstructured
	for _, obj := range all {
		if u, ok := obj.(*unstructured.Unstructured); ok && (namespace == "" || u.GetNamespace() == namespace) {
			found = append(found, u)
		}
	}
	return found, nil
}

// Resource returns a client for the objects of a kind, and whether they are in
// namespaces. A kind that is not served is meta.IsNoMatchError; that nobody could
// tell is another error.
func (s *Store) Resource(gvk schema.GroupVersionKind) (r dynamic.NamespaceableResourceInterface, namespaced bool, err error) {
	s.mu.Lock()
	k, ok := s.kinds[gvk]
	ctx := s.ctx
	s.mu.Unlock()
	if !ok {
		if k, err = s.resolve(ctx, gvk); err != nil {
			return nil, false, err
		}
	}
	return s.dynamic.Resource(k.gvr), k.namespaced, nil
}

func within(r dynamic.NamespaceableResourceInterface, namespace string) dynamic.ResourceInterface {
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// unserved tells an object that is not there from a path that is not there: the
// API server has 404 for both.
func (s *Store) unserved(gvk schema.GroupVersionKind, err error) error {
	if !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		return err
	}
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	s.forget(gvk)
	return noMatch(gvk)
}

func noMatch(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}
