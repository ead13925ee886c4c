package clusterstatus

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A logbook is written by the goroutines of a fleet.
type logbook struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func newLogbook(t *testing.T) *logbook { return &logbook{t: t, more: make(chan struct{}, 1000)} }

func (l *logbook) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
	l.more <- struct{}{}
}

// expect waits until exactly these lines have been written since the last time.
func (l *logbook) expect(reason string, want ...string) {
	l.t.Helper()
	for range want {
		select {
		case <-l.more:
		case <-time.After(time.Minute):
			l.t.Fatalf("%s: only got %q, want %q", reason, l.lines, want)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.lines); diff != "" {
		l.t.Fatalf("%s (-want +got):\n%s", reason, diff)
	}
	l.lines = nil
}

func named(name string, uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

func TestFleet(t *testing.T) {
	book := newLogbook(t)
	slow := make(chan struct{})
	f := newFleet(func(ctx context.Context, c *clusterv1alpha1.Cluster, kick chan struct{}, _ time.Duration) {
		book.note("begin %s", c.UID)
		for {
			select {
			case <-kick:
				book.note("kick %s", c.UID)
			case <-ctx.Done():
				if c.UID == "slow" {
					<-slow
				}
				book.note("end %s", c.UID)
				return
			}
		}
	}, time.Second, func(name string) { book.note("forget %s", name) })

	f.keep(named("early", "e1"))
	f.keep(named("gone", "g1"))
	f.drop("gone")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = f.Start(ctx)
	}()
	book.expect("what was told before the start begins with it", "begin e1")

	f.keep(named("early", "e1"))
	changed := named("early", "e1")
	changed.Spec.Taints = append(changed.Spec.Taints, taint())
	f.keep(changed)
	changed = changed.DeepCopy()
	changed.Spec.APIEndpoint = "https://elsewhere"
	f.keep(changed)
	book.expect("another address is looked at at once; the same again, and taints, are not", "kick e1")

	f.keep(named("m", "m1"))
	book.expect("a new one begins", "begin m1")
	f.keep(named("m", "m2"))
	book.expect("another cluster of the same name begins when the first has been forgotten", "end m1", "forget m", "begin m2")
	f.drop("m")
	book.expect("one that is gone is forgotten", "end m2", "forget m")
	f.drop("m")

	f.keep(named("s", "slow"))
	book.expect("a new one begins", "begin slow")
	f.drop("s")
	f.keep(named("s", "s2"))
	f.keep(named("other", "o1"))
	book.expect("one that is slow to end holds up no other", "begin o1")
	close(slow)
	book.expect("but its successor, so that what is forgotten is not the successor's", "end slow", "forget s", "begin s2")
	f.drop("other")
	f.drop("s")
	for range 4 {
		<-book.more
	}
	book.mu.Lock()
	book.lines = nil
	book.mu.Unlock()

	cancel()
	<-over
	book.expect("at the end of the process nothing is forgotten", "end e1")
	f.keep(named("late", "l1"))
	f.drop("late")
}

// A told keeper takes note.
type toldKeeper []string

func (k *toldKeeper) keep(c *clusterv1alpha1.Cluster) { *k = append(*k, "keep "+c.Name) }
func (k *toldKeeper) drop(name string)                { *k = append(*k, "drop "+name) }

func TestReconcile(t *testing.T) {
	secret := &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"}
	cluster := func(mode clusterv1alpha1.ClusterSyncMode, ref *clusterv1alpha1.LocalSecretReference, finalizers ...string) *clusterv1alpha1.Cluster {
		c := named("m1", "u")
		c.Spec.SyncMode, c.Spec.SecretRef, c.Finalizers = mode, ref, finalizers
		return c
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		mine    func(*clusterv1alpha1.Cluster) bool
		want    []string
	}{
		"Push":        {"The manager answers for push mode clusters.", cluster(clusterv1alpha1.Push, secret, names.ClusterFinalizer), Pushed, []string{"keep m1"}},
		"NoSecret":    {"Without credentials there is nothing to ask.", cluster(clusterv1alpha1.Push, nil, names.ClusterFinalizer), Pushed, []string{"drop m1"}},
		"Pull":        {"An agent answers for a pull mode cluster, not the manager.", cluster(clusterv1alpha1.Pull, nil, names.ClusterFinalizer), Pushed, []string{"drop m1"}},
		"Agent":       {"The agent of that cluster.", cluster(clusterv1alpha1.Pull, nil, names.ClusterFinalizer), Named("m1"), []string{"keep m1"}},
		"OtherAgent":  {"And of no other.", cluster(clusterv1alpha1.Pull, nil, names.ClusterFinalizer), Named("m2"), []string{"drop m1"}},
		"NoFinalizer": {"Not before the cluster has its finalizer; the event of that comes.", cluster(clusterv1alpha1.Push, secret), Pushed, nil},
		"Gone":        {"One that is gone is dropped.", nil, Pushed, []string{"drop m1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.cluster != nil {
				objects = append(objects, tc.cluster)
			}
			var told toldKeeper
			r := &reconciler{client: newWorld(t, objects...).client, fleet: &told, mine: tc.mine}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, []string(told)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPredicate(t *testing.T) {
	p := specOrFinalizersChanged()
	cases := map[string]struct {
		reason string
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		"Status":    {"Our own writing must not wake us.", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }, false},
		"Spec":      {"A cluster that is reached in another way is looked at.", func(c *clusterv1alpha1.Cluster) { c.Generation++ }, true},
		"Finalizer": {"The finalizer is what a new cluster waits for.", func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{names.ClusterFinalizer} }, true},
		"Replaced":  {"Another cluster of the same name.", func(c *clusterv1alpha1.Cluster) { c.UID = "other" }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := named("m1", "u"), named("m1", "u")
			tc.change(after)
			if got := p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("passes: %v\n%s", got, tc.reason)
			}
		})
	}
}
