// Package schedule is the third stage of the pipeline: it decides which clusters
// a binding goes to, and how many replicas each of them gets.
//
// Binding after binding comes off a queue, by priority. One decision is made at a
// time; several are written at once, never two of one binding. So it does not
// matter for a result how many write. queue.go is that queue; decide.go says
// whether a binding is to be scheduled at all; pending has the room that others
// have been given and that does not show yet; affinity knows where the others are
// of its groups; estimators.go asks who knows more of the room of clusters;
// algorithm.go finds clusters in four steps, each a package of its own:
//
//	filter     which clusters may be used
//	candidate  what is known of them, and in which order they are wanted;
//	           estimate says how many replicas they have room for
//	spread     which of them are used
//	assign     how many replicas each gets
//
// All that is pure. The reconciler writes the result, at most once, and what is
// to say about it in the condition Scheduled, at most once; nothing is written
// that is there already (spec: behaviour/04).
package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/affinity"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/pending"
)

// Name is the controller's name in logs, metrics and events.
const Name = names.Scheduler

// writers is how many decisions are written at a time. They wait for the API
// server most of the time, and it for its disk, which takes many at once.
const writers = 32

// Options say how bindings are scheduled.
type Options struct {
	// SchedulerName is the name by which bindings ask for this scheduler. Empty:
	// default-scheduler.
	SchedulerName string
	// Enabled says which of Plugins are used. Nil: all.
	Enabled func(plugin string) bool
	// KeepEmpty keeps clusters that get none of a workload's replicas.
	KeepEmpty bool
	// ByPriority schedules bindings by their priority.
	ByPriority bool
	// Models uses resource models of clusters to tell how much room they have.
	Models bool
	// Components schedules workloads of several components as one.
	Components bool
	// Pending counts what was placed in clusters and does not show in their
	// numbers yet, so that no two bindings take the same room.
	Pending bool
	// Groups keeps workloads together, or apart, that are in the same group.
	Groups bool
	// Estimators are asked beside the general estimator. One that fails, or takes
	// longer than EstimatorTimeout (0: 3 s), does not count.
	Estimators       []Estimator
	EstimatorTimeout time.Duration
	// RateLimiter says when a binding that failed is tried again. Nil: after
	// 1 s, doubling up to 10 s.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Registerer takes the metrics. Required.
	Registerer prometheus.Registerer
}

func (o Options) complete() (Options, error) {
	if o.Registerer == nil {
		return o, errors.New("the registerer of metrics must be set")
	}
	if o.SchedulerName == "" {
		o.SchedulerName = names.DefaultScheduler
	}
	if o.Enabled == nil {
		o.Enabled = func(string) bool { return true }
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryBase, retryMax)
	}
	if o.EstimatorTimeout == 0 {
		o.EstimatorTimeout = estimatorTimeout
	}
	return o, nil
}

// Setup adds the stage to a manager, whose cache must have all Clusters and
// bindings. Nothing is scheduled before it has.
func Setup(mgr manager.Manager, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	instruments, err := newInstruments(o.Registerer)
	if err != nil {
		return err
	}
	r := o.reconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(Name), instruments)
	if err := instruments.watch(o.Registerer, func() map[place]int { return r.line.Load().pending() }); err != nil {
		return err
	}
	w := &watcher{
		reader: mgr.GetClient(), scheduler: o.SchedulerName, byPriority: o.ByPriority, log: mgr.GetLogger().WithName(Name),
		came: instruments.came, pending: r.pending, groups: r.groups, line: r.line,
	}
	r.released = func(ctx context.Context, bindings []types.NamespacedName) { w.released(ctx, r.line.Load(), bindings) }
	err = builder.ControllerManagedBy(mgr).
		Named(Name).
		Watches(&workv1alpha2.ResourceBinding{}, w.bindings()).
		Watches(&workv1alpha2.ClusterResourceBinding{}, w.bindings()).
		Watches(&clusterv1alpha1.Cluster{}, w.clusters()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: writers,
			RateLimiter:             o.RateLimiter,
			NewQueue:                r.line.newQueue(mgr.GetLogger().WithName(Name)),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	if !o.Pending {
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(w.settle)); err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

func (o Options) reconciler(c client.Client, live client.Reader, record events.EventRecorder, i *instruments) *Reconciler {
	r := &Reconciler{
		client:    c,
		live:      live,
		record:    record,
		scheduler: o.SchedulerName,
		algorithm: o.algorithm(i.step),
		panel:     &panel{all: o.Estimators, timeout: o.EstimatorTimeout, now: time.Now, skipped: i.skip, resting: map[string]time.Time{}},
		metrics:   i,
		now:       time.Now,
		line:      &lineHolder{},
		released:  func(context.Context, []types.NamespacedName) {},
	}
	r.algorithm.eachPlugin = i.plugin
	if o.Pending {
		r.pending = pending.New(time.Now)
	}
	if o.Groups {
		r.groups = affinity.New()
	}
	return r
}

func (o Options) algorithm(steps stepTimer) algorithm {
	off := func(p filter.Plugin) bool { return !o.Enabled(p.Name) }
	return algorithm{
		plugins:   slices.DeleteFunc(filter.Plugins(), off),
		locality:  o.Enabled(clusterLocality),
		keepEmpty: o.KeepEmpty,
		models:    o.Models,
		sets:      o.Components,
		steps:     steps,
	}
}
