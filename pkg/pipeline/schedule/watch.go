package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/affinity"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/pending"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A watcher turns events into requests (spec: behaviour/04 4.2).
type watcher struct {
	reader     client.Reader
	scheduler  string
	byPriority bool
	log        logr.Logger
	came       func(event string)
	pending    *pending.Ledger
	groups     *affinity.Index
	line       *lineHolder
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bindings enqueues a binding that has come to be ours, or whose spec has
// changed. Statuses are our own doing, and that of later stages.
//
// What is pending of a binding is noted whoever schedules it: it takes room. So is
// where it is, as others want to be with it, or apart from it.
func (w *watcher) bindings() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			b, ok := e.Object.(binding.Object)
			if !ok {
				return
			}
			w.pending.Observe(nil, b)
			w.released(ctx, q, w.groups.Observe(b))
			if isOurs(b, w.scheduler) {
				w.enqueue(q, b, incomingAdd)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, okBefore := e.ObjectOld.(binding.Object)
			after, ok := e.ObjectNew.(binding.Object)
			if !ok || !okBefore {
				return
			}
			w.freed(ctx, w.pending.Observe(before, after))
			w.released(ctx, q, w.groups.Observe(after))
			switch {
			case !isOurs(after, w.scheduler):
			case !isOurs(before, w.scheduler):
				w.enqueue(q, after, incomingAdd)
			case before.GetGeneration() != after.GetGeneration():
				w.enqueue(q, after, incomingUpdate)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if b, ok := e.Object.(binding.Object); ok {
				w.freed(ctx, w.pending.Forget(b))
				w.released(ctx, q, w.groups.Forget(client.ObjectKeyFromObject(b), b.GetUID()))
				w.line.Load().unpark(requestOf(b))
			}
		},
	}
}

// clusters enqueues the bindings that a change of a Cluster may concern. New
// Clusters have taints, which go when the cluster is ready.
func (w *watcher) clusters() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
			if c, ok := e.Object.(*clusterv1alpha1.Cluster); ok {
				w.pending.ObserveCluster(nil, c)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, okBefore := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, ok := e.ObjectNew.(*clusterv1alpha1.Cluster)
			if !ok || !okBefore {
				return
			}
			w.pending.ObserveCluster(before, after)
			if concerned := concernedBy(before, after); concerned != nil {
				w.reconsider(ctx, q, concerned)
			}
			if !equality.Semantic.DeepEqual(before.Status.ResourceSummary, after.Status.ResourceSummary) {
				w.line.Load().roomIn(before, after)
			}
		},
		// One that is gone without having said that it would: it was forced.
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if c, ok := e.Object.(*clusterv1alpha1.Cluster); ok {
				w.reconsider(ctx, q, func(b binding.Object) bool { return isIn(b, c) })
			}
		},
	}
}

// settlePeriod is how often it is looked whether what is pending shows by now.
const settlePeriod = 2 * time.Second

// settle ends what is pending no more, until ctx is done.
func (w *watcher) settle(ctx context.Context) error {
	ticker := time.NewTicker(settlePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.settleOnce(ctx)
		}
	}
}

func (w *watcher) settleOnce(ctx context.Context) {
	list := &clusterv1alpha1.ClusterList{}
	if err := w.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		w.log.Error(err, "Could not list Clusters to find out what shows in their numbers")
		return
	}
	clusters := newFleet(list.Items)
	for _, name := range w.pending.Settle(func(name string) *clusterv1alpha1.Cluster { return clusters.byName[name] }) {
		if c := clusters.byName[name]; c != nil {
			w.line.Load().roomIn(nil, c)
		}
	}
}

// freed lets bindings go that wait for room in clusters where less is pending than
// before.
func (w *watcher) freed(ctx context.Context, clusters []string) {
	for _, name := range clusters {
		c := &clusterv1alpha1.Cluster{}
		if err := w.reader.Get(ctx, client.ObjectKey{Name: name}, c); err == nil { // else it has no room
			w.line.Load().roomIn(nil, c)
		}
	}
}

// released enqueues bindings that others of their groups have made room for.
func (w *watcher) released(ctx context.Context, q queue, bindings []types.NamespacedName) {
	for _, key := range bindings {
		b := binding.New(key.Namespace)
		if err := w.reader.Get(ctx, key, b); err == nil && isOurs(b, w.scheduler) { // else it waits for nothing
			w.enqueue(q, b, incomingUpdate)
		}
	}
}

// reconsider enqueues the bindings of ours that are concerned.
func (w *watcher) reconsider(ctx context.Context, q queue, concerned func(binding.Object) bool) {
	consider := func(b binding.Object) {
		if b.BindingSpec().Placement != nil && isOurs(b, w.scheduler) && concerned(b) {
			w.enqueue(q, b, incomingCluster)
		}
	}
	namespaced, global := &workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}
	for _, list := range []client.ObjectList{namespaced, global} {
		if err := w.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			w.log.Error(err, "Could not list the bindings that a change of a cluster may concern")
		}
	}
	for i := range namespaced.Items {
		consider(&namespaced.Items[i])
	}
	for i := range global.Items {
		consider(&global.Items[i])
	}
}

func (w *watcher) enqueue(q queue, b binding.Object, event string) {
	w.came(event)
	request := requestOf(b)
	p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		q.Add(request)
		return
	}
	priority := 0
	if s := b.BindingSpec().SchedulePriority; s != nil && w.byPriority {
		priority = int(s.Priority)
	}
	p.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(priority)}, request)
}

func requestOf(b binding.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}
}

// concernedBy returns which bindings a change of a Cluster concerns, nil for
// none. Those are bindings that may want to enter or leave it.
func concernedBy(before, after *clusterv1alpha1.Cluster) func(binding.Object) bool {
	switch {
	case before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero():
		return func(b binding.Object) bool { return isIn(b, after) || mayUse(b, after) }
	case before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Labels, after.Labels):
		return func(b binding.Object) bool { return mayUse(b, before) || mayUse(b, after) }
	case !after.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Status.APIEnablements, after.Status.APIEnablements):
		return nil
	default:
		// A kind that the cluster has only now: a CustomResourceDefinition has
		// arrived there, say.
		return func(b binding.Object) bool {
			ref := b.BindingSpec().Resource
			return !filter.Serves(before, ref) && filter.Serves(after, ref) && mayUse(b, after)
		}
	}
}

func isIn(b binding.Object, c *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name })
}

// mayUse reports whether the affinity of a binding matches a cluster: that of
// the term in use, or any term for a binding that has not been scheduled as it
// is now.
func mayUse(b binding.Object, c *clusterv1alpha1.Cluster) bool {
	p := b.BindingSpec().Placement
	if len(p.ClusterAffinities) > 0 {
		i := indexOfTerm(p, b.BindingStatus().SchedulerObservedAffinityName)
		return i < 0 || !isObserved(b) || inTerm(&p.ClusterAffinities[i], c)
	}
	ok, err := policy.MatchesCluster(p.ClusterAffinity, c)
	return ok || err != nil
}
