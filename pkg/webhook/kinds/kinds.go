package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const (
	// lifetime is how long what is served is believed when it has all that is asked
	// about. A kind that is taken away is missed for that long.
	lifetime = time.Minute
	// recent is how long it is believed that a kind is not served: CRDs and policies
	// are often created one after the other.
	recent = time.Second
	// pause is how long nobody asks again after a failure.
	pause = 10 * time.Second
	// patience is how long it may take to ask: callers are in the middle of a request.
	patience = time.Second
)

// Discovery asks the API server what it serves. Discovery clients of client-go do.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Kinds are the kinds that the API server serves. A nil one knows nothing, and so
// has no warning. It is safe for concurrent use.
type Kinds struct {
	discovery Discovery
	now       func() time.Time
	patience  time.Duration

	turn chan struct{} // held by whoever asks the server

	mu     sync.Mutex
	latest *served   // what was last found out
	err    error     // how asking failed since then, nil if it did not
	failed time.Time // when that was
}

// New returns Kinds that are asked of d when somebody needs them.
func New(d Discovery) *Kinds {
	return &Kinds{discovery: d, now: time.Now, patience: patience, turn: make(chan struct{}, 1)}
}

// Namespaced returns every kind that the server is known to serve of which a
// namespace can hold objects that can be listed and deleted, once each, in its
// preferred version. An error may come with those that are known.
func (k *Kinds) Namespaced(ctx context.Context) ([]schema.GroupVersionResource, error) {
	if k == nil {
		return nil, errors.New("nobody to ask what is served")
	}
	s, err := k.served(ctx, func(s *served, age time.Duration) bool { return age < recent })
	if err != nil {
		return nil, err
	}
	return s.namespaced, s.partial()
}

// served returns what the server serves: what was found out before if that is
// enough, what it says now otherwise.
func (k *Kinds) served(ctx context.Context, enough func(_ *served, age time.Duration) bool) (*served, error) {
	if s, err := k.known(enough); s != nil || err != nil {
		return s, err
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("ask what the API server serves: %w", context.Cause(ctx))
	}
	// Somebody else may have asked in the meantime.
	if s, err := k.known(enough); s != nil || err != nil {
		return s, err
	}
	// The answer is for others, too: it does not end with this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.patience)
	defer cancel()
	s, err := k.ask(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failed, k.err = k.now(), err
		return nil, err
	}
	k.latest, k.err = s, nil
	return s, nil
}

// known returns what was found out before if it is enough, or a failure that is
// too recent to try again; neither when the server has to be asked.
func (k *Kinds) known(enough func(_ *served, age time.Duration) bool) (*served, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if k.latest != nil && enough(k.latest, now.Sub(k.latest.at)) {
		return k.latest, nil
	}
	if k.err != nil && now.Sub(k.failed) < pause {
		return nil, k.err
	}
	return nil, nil
}

// A kind is how a kind is served.
type kind struct {
	resource   string
	namespaced bool
	verbs      []string
}

// propagatable says whether objects can be followed and cleaned up (spec:
// behaviour/01 1.2).
func (k kind) propagatable() bool {
	return slices.Contains(k.verbs, "list") && slices.Contains(k.verbs, "watch") && slices.Contains(k.verbs, "delete")
}

// served is what a server served at a time.
type served struct {
	at    time.Time
	kinds map[schema.GroupVersionKind]kind
	// failed are the versions of groups that nothing could be found out about.
	failed map[schema.GroupVersion]error
	// named are kinds by their name in lower case, and by that of their resource,
	// those of preferred versions first.
	named      map[string][]schema.GroupVersionKind
	namespaced []schema.GroupVersionResource
}

func (k *Kinds) ask(ctx context.Context) (*served, error) {
	groups, lists, err := k.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return nil, fmt.Errorf("ask what the API server serves: %w", err)
	}
	s := &served{
		at: k.now(), failed: failed,
		kinds: map[schema.GroupVersionKind]kind{}, named: map[string][]schema.GroupVersionKind{},
	}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue // no policy can select that
		}
		for i := range l.APIResources {
			s.add(gv, &l.APIResources[i])
		}
	}
	s.sort(ranks(groups))
	return s, nil
}

func (s *served) add(gv schema.GroupVersion, r *metav1.APIResource) {
	if strings.Contains(r.Name, "/") {
		return // a sub-resource
	}
	s.kinds[gv.WithKind(r.Kind)] = kind{resource: r.Name, namespaced: r.Namespaced, verbs: r.Verbs}
}

// ranks returns the order of versions of each group, 0 for the preferred one.
func ranks(groups []*metav1.APIGroup) map[schema.GroupVersion]int {
	rank := map[schema.GroupVersion]int{}
	for _, g := range groups {
		for i, v := range g.Versions {
			rank[schema.GroupVersion{Group: g.Name, Version: v.Version}] = i + 1
		}
		rank[schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version}] = 0
	}
	return rank
}

func (s *served) sort(rank map[schema.GroupVersion]int) {
	all := slices.SortedFunc(maps.Keys(s.kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(
			cmp.Compare(rank[a.GroupVersion()], rank[b.GroupVersion()]),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	seen := map[schema.GroupResource]bool{}
	for _, gvk := range all {
		k := s.kinds[gvk]
		singular := strings.ToLower(gvk.Kind)
		s.named[singular] = append(s.named[singular], gvk)
		if k.resource != singular {
			s.named[k.resource] = append(s.named[k.resource], gvk)
		}
		gvr := gvk.GroupVersion().WithResource(k.resource)
		if k.namespaced && slices.Contains(k.verbs, "list") && slices.Contains(k.verbs, "delete") && !seen[gvr.GroupResource()] {
			seen[gvr.GroupResource()] = true
			s.namespaced = append(s.namespaced, gvr)
		}
	}
}

// partial is an error that tells which groups nothing is known about, if any.
func (s *served) partial() error {
	if len(s.failed) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: s.failed}
}
