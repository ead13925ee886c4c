package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// A process is a scheduler that works off its queue with a number of workers.
type process struct {
	*Reconciler
	line *line
}

// startProcess returns a scheduler that has heard of all bindings.
func startProcess(t *testing.T, s *shelf, bindings []binding.Object) *process {
	t.Helper()
	c := s.client(t)
	w := newWorld(t)
	p := &process{Reconciler: w.reconciler(c, Options{Pending: true})}
	p.line = newLine(logr.Discard(), "test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax))
	t.Cleanup(p.line.ShutDown)
	p.Reconciler.line.Store(p.line)
	watch := newWatcher(c)
	watch.pending, watch.line = p.pending, p.Reconciler.line
	handler := watch.bindings()
	for _, b := range bindings {
		now := binding.New(b.GetNamespace())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
			t.Fatal(err)
		}
		handler.Create(t.Context(), event.CreateEvent{Object: now, IsInInitialList: true}, p.line)
	}
	return p
}

// work decides so many bindings as are in the queue, and stops before that when
// something goes wrong.
func (p *process) work(ctx context.Context, workers, count int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	tickets := make(chan struct{}, count)
	for range count {
		tickets <- struct{}{}
	}
	close(tickets)
	for range workers {
		all.Go(func() {
			for range tickets {
				if ctx.Err() != nil {
					return
				}
				item, _ := p.line.Get()
				_, err := p.Reconcile(ctx, item)
				p.line.Done(item)
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// crowd returns bindings of workloads with a few replicas each, and three clusters
// with just enough room for all of them.
func crowd(count int) (bindings []binding.Object, clusters []*clusterv1alpha1.Cluster) {
	total := int32(0)
	for i := range count {
		b := workload(dynamic, replicas(int32(i%3+1)))
		b.Name, b.UID = fmt.Sprintf("web-%04d", i), types.UID(fmt.Sprint(i))
		bindings = append(bindings, b)
		total += b.Spec.Replicas
	}
	half, quarter := total/2, total/4
	room := map[string]int32{"m1": half, "m2": quarter, "m3": total - half - quarter}
	for _, name := range slices.Sorted(maps.Keys(room)) {
		clusters = append(clusters, cluster(name, withRoom(fmt.Sprint(room[name]))))
	}
	return bindings, clusters
}

// A shelf is as much of an API server as scheduling thousands of bindings needs.
type shelf struct {
	mu       sync.Mutex
	bindings map[client.ObjectKey]*workv1alpha2.ResourceBinding
	clusters clusterv1alpha1.ClusterList
	// attempt does a write, or does not.
	attempt func(what string, write func()) error
}

func newShelf(bindings []binding.Object, clusters []*clusterv1alpha1.Cluster) *shelf {
	s := &shelf{bindings: map[client.ObjectKey]*workv1alpha2.ResourceBinding{}}
	for _, b := range bindings {
		if one, ok := b.DeepCopyObject().(*workv1alpha2.ResourceBinding); ok {
			one.ResourceVersion = "1"
			s.bindings[client.ObjectKeyFromObject(b)] = one
		}
	}
	for _, c := range clusters {
		s.clusters.Items = append(s.clusters.Items, *c)
	}
	return s
}

func (s *shelf) client(t *testing.T) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(newWorld(t).client, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return s.copyInto(key, o)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			all, ok := list.(*clusterv1alpha1.ClusterList)
			if !ok {
				return fmt.Errorf("a shelf does not list %T", list)
			}
			s.clusters.DeepCopyInto(all)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return s.write("clusters of "+o.GetName(), o, func(now, o *workv1alpha2.ResourceBinding) {
				now.Spec, now.Annotations = o.Spec, o.Annotations
				now.Generation++
			})
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return s.write("status of "+o.GetName(), o, func(now, o *workv1alpha2.ResourceBinding) { now.Status = o.Status })
		},
	})
}

func (s *shelf) copyInto(key client.ObjectKey, o client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := o.(*workv1alpha2.ResourceBinding)
	if !ok || s.bindings[key] == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	s.bindings[key].DeepCopyInto(b)
	return nil
}

// write takes what is patched from o, unless somebody has written meanwhile.
func (s *shelf) write(what string, o client.Object, patch func(now, o *workv1alpha2.ResourceBinding)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := o.(*workv1alpha2.ResourceBinding)
	now := s.bindings[client.ObjectKeyFromObject(o)]
	if !ok || b.ResourceVersion != now.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has changed"))
	}
	land := func() {
		after := now.DeepCopy()
		patch(after, b.DeepCopy())
		after.ResourceVersion += "1"
		s.bindings[client.ObjectKeyFromObject(o)] = after
		after.DeepCopyInto(b)
	}
	if s.attempt != nil {
		return s.attempt(what, land)
	}
	land()
	return nil
}

// How many write does not matter for what is decided.
func TestWorkers(t *testing.T) {
	const count = 300
	var first map[string]string
	for _, workers := range []int{1, 3, writers} {
		bindings, clusters := crowd(count)
		s, writes := newShelf(bindings, clusters), 0
		s.attempt = func(_ string, write func()) error {
			writes++
			write()
			return nil
		}
		if err := startProcess(t, s, bindings).work(t.Context(), workers, count); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, b := range s.bindings {
			got[b.Name] = targetsOf(b)
		}
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%d workers (-one +these):\n%s", workers, diff)
		}
		if writes != 2*count {
			t.Errorf("%d workers: %d writes", workers, writes)
		}
	}
}

// A write that hangs holds nobody up who is decided after it.
func TestHangingWrite(t *testing.T) {
	bindings, clusters := crowd(2)
	s, second := newShelf(bindings, clusters), make(chan struct{})
	p := startProcess(t, s, bindings)
	inner := p.client
	p.client = interceptor.NewClient(newWorld(t).client, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return inner.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return inner.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == bindings[0].GetName() {
				select {
				case <-second:
				case <-ctx.Done():
					return ctx.Err()
				}
				return inner.Patch(ctx, o, patch, opts...)
			}
			defer close(second)
			return inner.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return inner.Status().Patch(ctx, o, patch, opts...)
		},
	})
	if err := p.work(t.Context(), 2, 2); err != nil {
		t.Error(err)
	}
}

// A process that is killed in the middle of many decisions, again and again, before
// a write, or after it and before it is heard of, loses none of them, and makes none
// twice.
func TestKilled(t *testing.T) {
	const count, life = 1000, 150 // life is how many writes a process has to live
	bindings, clusters := crowd(count)
	s := newShelf(bindings, clusters)
	var (
		errKilled = errors.New("killed")
		left      int
		landed    = map[string]int{}
		lives     int
	)
	s.attempt = func(what string, write func()) error {
		left--
		if left < 0 || left == 0 && lives%2 == 0 {
			return errKilled
		}
		write()
		landed[what]++
		if left == 0 {
			return errKilled // nobody has heard of it
		}
		return nil
	}
	for err := errKilled; errors.Is(err, errKilled); lives++ {
		if lives > 2*2*count/life {
			t.Fatal("it gets nowhere")
		}
		left = life
		err = startProcess(t, s, bindings).work(t.Context(), 8, count)
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	if lives < 10 {
		t.Errorf("it lived %d times only", lives)
	}

	used := map[string]int32{}
	for _, b := range s.bindings {
		sum := int32(0)
		for _, target := range b.Spec.Clusters {
			sum += target.Replicas
			used[target.Name] += target.Replicas
		}
		if sum != b.Spec.Replicas || conditionOf(b) != success || !isObserved(b) || b.Status.LastScheduledTime == nil {
			t.Errorf("%s is on %q: %s, %v", b.Name, targetsOf(b), conditionOf(b), b.Status)
		}
	}
	for _, c := range clusters {
		pods := c.Status.ResourceSummary.Allocatable[corev1.ResourcePods]
		if int64(used[c.Name]) != pods.Value() {
			t.Errorf("%s holds %d replicas, and has room for %s", c.Name, used[c.Name], pods.String())
		}
	}
	for _, what := range slices.Sorted(maps.Keys(landed)) {
		if landed[what] != 1 {
			t.Errorf("%s was written %d times", what, landed[what])
		}
	}
	if len(landed) != 2*count {
		t.Errorf("%d things were written", len(landed))
	}
}
