package clusterstatus

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// spread is how far apart clusters that were known before are looked at for the
// first time.
const spread = 10 * time.Millisecond

// A runner looks at one cluster until ctx ends; kick makes it look at once.
type runner func(ctx context.Context, c *clusterv1alpha1.Cluster, kick chan struct{}, delay time.Duration)

// A fleet has one goroutine for each cluster. Those that it is told of before it
// is started begin when it is.
type fleet struct {
	run       runner
	frequency time.Duration
	// forget is called when a cluster is gone, after its goroutine has ended.
	forget func(name string)

	mu      sync.Mutex
	started context.Context // nil before
	ships   map[string]*ship
	sinking map[string]*ship // dropped, but not forgotten yet
	wg      sync.WaitGroup
}

// A ship is one cluster of the fleet.
type ship struct {
	uid     types.UID
	spec    clusterv1alpha1.ClusterSpec
	cluster *clusterv1alpha1.Cluster
	kick    chan struct{}
	sink    chan struct{} // closed when it is to end
	sunk    chan struct{} // closed when it has
}

var _ manager.LeaderElectionRunnable = (*fleet)(nil)

func newFleet(run runner, frequency time.Duration, forget func(string)) *fleet {
	return &fleet{run: run, frequency: frequency, forget: forget, ships: map[string]*ship{}, sinking: map[string]*ship{}}
}

// NeedLeaderElection says that one process looks at a cluster, not several.
func (f *fleet) NeedLeaderElection() bool { return true }

// Start runs the goroutines until ctx ends.
func (f *fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	f.started = ctx
	for _, s := range f.ships {
		f.launch(s, nil)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock() // whoever launches a ship now sees that it is over
	f.mu.Unlock()
	f.wg.Wait()
	return nil
}

// keep has a cluster looked at from now on, and at once if it is to be reached
// in another way than before.
func (f *fleet) keep(c *clusterv1alpha1.Cluster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.ships[c.Name]
	spec := essence(c)
	if old != nil && old.uid == c.UID {
		if !reflect.DeepEqual(old.spec, spec) {
			old.spec = spec
			select {
			case old.kick <- struct{}{}:
			default: // it is about to look anyway
			}
		}
		return
	}
	f.sink(c.Name)
	s := &ship{uid: c.UID, spec: spec, cluster: c, kick: make(chan struct{}, 1), sink: make(chan struct{}), sunk: make(chan struct{})}
	f.ships[c.Name] = s
	f.launch(s, f.sinking[c.Name])
}

// launch starts a ship once another, if any, has sunk: what that one's end
// forgets must not be the new one's.
func (f *fleet) launch(s, before *ship) {
	if f.started == nil {
		return
	}
	if f.started.Err() != nil {
		close(s.sunk)
		return
	}
	ctx, cancel := context.WithCancel(f.started)
	delay := time.Duration(0)
	if meta.FindStatusCondition(s.cluster.Status.Conditions, clusterv1alpha1.ConditionReady) != nil {
		// Known already: no hurry, rather not all at once.
		delay = rand.N(min(f.frequency, time.Duration(len(f.ships))*spread))
	}
	f.wg.Go(func() {
		defer close(s.sunk)
		defer cancel()
		if before != nil {
			<-before.sunk
		}
		go func() {
			select {
			case <-s.sink:
				cancel()
			case <-ctx.Done():
			}
		}()
		f.run(ctx, s.cluster, s.kick, delay)
		select {
		case <-s.sink:
			f.forget(s.cluster.Name)
			f.sank(s)
		default: // the process ends
		}
	})
}

func (f *fleet) sank(s *ship) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sinking[s.cluster.Name] == s {
		delete(f.sinking, s.cluster.Name)
	}
}

// drop ends looking at a cluster.
func (f *fleet) drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sink(name)
}

func (f *fleet) sink(name string) {
	s := f.ships[name]
	if s == nil {
		return
	}
	delete(f.ships, name)
	close(s.sink)
	if f.started != nil {
		f.sinking[name] = s
	}
}

// essence returns what of a Cluster's spec is a reason to look at it at once.
func essence(c *clusterv1alpha1.Cluster) clusterv1alpha1.ClusterSpec {
	spec := *c.Spec.DeepCopy()
	spec.Taints = nil
	return spec
}
