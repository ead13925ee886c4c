package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A Connect says how a member is reached: Config for the control plane, a
// constant for an agent.
type Connect func(ctx context.Context, c *clusterv1alpha1.Cluster) (*rest.Config, error)

// Push returns the Connect of the control plane.
func Push(secrets Secrets, limits Limits) Connect {
	return func(ctx context.Context, c *clusterv1alpha1.Cluster) (*rest.Config, error) {
		return Config(ctx, c, secrets, limits)
	}
}

// Pull returns the Connect of an agent, which reaches one cluster, and by its
// own configuration.
func Pull(cluster string, config *rest.Config, limits Limits) Connect {
	config = rest.CopyConfig(config)
	limits.limit(config)
	return func(_ context.Context, c *clusterv1alpha1.Cluster) (*rest.Config, error) {
		if c.Name != cluster {
			return nil, fmt.Errorf("this agent reaches cluster %s only, not %s", cluster, c.Name)
		}
		return config, nil
	}
}

// ErrStopped is the error of a Pool whose context has ended, and of a Member
// that was given up: who gets it again gets another.
var ErrStopped = errors.New("the connection was given up")

// An Event tells of a change of an object that we manage on a member. The
// objects are shared: a subscriber must not change them.
type Event struct {
	Cluster string
	GVR     schema.GroupVersionResource
	// Old is nil when the object was added, or seen for the first time. New is nil
	// when it was deleted, or lost the mark that makes it ours: what is there
	// must be asked live.
	Old, New *unstructured.Unstructured
}

// A Pool keeps one Member per cluster.
type Pool struct {
	ctx     context.Context
	connect Connect
	now     func() time.Time

	mu          sync.Mutex
	members     map[string]*entry
	subscribers map[int]func(Event)
	next        int
}

// checkAgain is how long the Secret of a cluster that answers is not looked at
// for another authority.
const checkAgain = 10 * time.Second

// An entry holds the Member of one cluster. Its lock is held while the control
// plane is asked for credentials, never while a member is.
type entry struct {
	needs *needs

	mu      sync.Mutex
	member  *Member
	checked time.Time
}

// usable reports whether the Member is made of what the Cluster says now, and
// there is no sign that its Secret says something else.
func (e *entry) usable(c *clusterv1alpha1.Cluster, now time.Time) bool {
	return e.member != nil && e.member.origin.of(c) && !e.member.doubted.Load() && now.Sub(e.checked) < checkAgain
}

// NewPool returns a Pool whose connections and informers last until ctx ends.
func NewPool(ctx context.Context, connect Connect) *Pool {
	return &Pool{ctx: ctx, connect: connect, now: time.Now, members: map[string]*entry{}, subscribers: map[int]func(Event){}}
}

// Get returns the Member of a cluster, and does not wait for it: it may be
// unreachable. The Member is made when there is none, and made anew when what
// it was made of has changed: the cluster's address, authority, proxy, TLS
// settings, Secret or UID. What was watched is watched on, then. The Secret is
// looked at each 10 s, and at once after a request that failed. Errors come from
// the Cluster and its Secret. Do not keep a Member: Get it each time.
func (p *Pool) Get(ctx context.Context, c *clusterv1alpha1.Cluster) (*Member, error) {
	if p.ctx.Err() != nil {
		return nil, ErrStopped
	}
	p.mu.Lock()
	e, ok := p.members[c.Name]
	if !ok {
		e = &entry{needs: newNeeds()}
		p.members[c.Name] = e
	}
	p.mu.Unlock()

	e.mu.Lock()
	defer e.mu.Unlock()
	if now := p.now(); e.usable(c, now) {
		return e.member, nil
	} else {
		e.checked = now
	}
	config, err := p.connect(ctx, c)
	if err != nil {
		e.checked = time.Time{}
		return nil, err
	}
	origin := originOf(c, config)
	if e.member != nil && e.member.origin.equal(origin) {
		e.member.doubted.Store(false)
		return e.member, nil
	}
	m, err := newMember(p.ctx, c.Name, config, origin, e.needs, p.publish)
	if err != nil {
		return nil, fmt.Errorf("make clients for cluster %s: %w", c.Name, err)
	}
	e.needs.attach(m, e.member)
	e.member = m
	return m, nil
}

// Forget stops the informers of a cluster and drops its connections. It is for
// a cluster that is gone: a later Get begins anew.
func (p *Pool) Forget(name string) {
	p.mu.Lock()
	e := p.members[name]
	delete(p.members, name)
	p.mu.Unlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.member != nil {
		e.needs.detach()
		e.member.stop()
		e.member = nil
	}
}

// Release says that a Work of a cluster, which is gone, needs nothing any more:
// kinds that no other Work needs are not followed any longer. It does not wait.
func (p *Pool) Release(cluster, work string) {
	p.mu.Lock()
	e := p.members[cluster]
	p.mu.Unlock()
	if e == nil {
		return
	}
	e.needs.mu.Lock()
	defer e.needs.mu.Unlock()
	e.needs.set(work, nil)
}

// Subscribe calls f for every Event of every member until the returned
// function is called. What was seen before is not told again: subscribe before
// the first Watch. f is called by one goroutine per informer and must not wait.
func (p *Pool) Subscribe(f func(Event)) (unsubscribe func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.next
	p.next++
	p.subscribers = maps.Clone(p.subscribers)
	p.subscribers[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.subscribers = maps.Clone(p.subscribers)
		delete(p.subscribers, id)
	}
}

func (p *Pool) publish(e Event) {
	p.mu.Lock()
	subscribers := p.subscribers
	p.mu.Unlock()
	for _, f := range subscribers {
		f(e)
	}
}
