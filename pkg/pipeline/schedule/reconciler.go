package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/affinity"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/pending"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// maxNote is how long the text of an event may be.
const maxNote = 1000

// A Reconciler schedules bindings of both scopes. A request without a namespace is
// a ClusterResourceBinding's.
type Reconciler struct {
	client    client.Client
	live      client.Reader // asked before anything is removed that a cache does not know
	record    events.EventRecorder
	scheduler string
	algorithm algorithm
	panel     *panel
	pending   *pending.Ledger
	groups    *affinity.Index
	metrics   *instruments
	now       func() time.Time
	line      *lineHolder
	// released has bindings scheduled that others of their groups made room for.
	released func(context.Context, []types.NamespacedName)

	deciding sync.Mutex
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// errMoved says that a binding has changed, or is gone, since it was read. It
// comes again by the event of that change.
var errMoved = errors.New("the binding has changed in the meantime")

// Reconcile schedules one binding, unless it can stay as it is.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	line := r.line.Load()
	defer line.decided(request) // also when there is nothing to decide
	b := binding.New(request.Namespace)
	if err := r.client.Get(ctx, request.NamespacedName, b); err != nil {
		if apierrors.IsNotFound(err) {
			r.released(ctx, r.groups.Forget(request.NamespacedName, ""))
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.GetDeletionTimestamp().IsZero() || !isOurs(b, r.scheduler) {
		return reconcile.Result{}, nil
	}
	if b.BindingSpec().Placement == nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("failed to get placement from %s(%s)", resourceOf(b), nameOf(b)))
	}
	begin := time.Now()
	d, err := r.decide(ctx, b)
	line.decided(request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if isUnschedulable(d.err) {
		line.park(request, r.helps(b))
	} else {
		line.unpark(request)
	}
	err = r.carryOut(ctx, b, d)
	if errors.Is(err, errMoved) {
		return reconcile.Result{}, nil
	}
	if d.why != causeNone {
		r.metrics.attempted(d.why, begin, err)
	}
	if err == nil || isNoFit(err) {
		return reconcile.Result{}, nil
	}
	r.metrics.came(incomingFailure)
	if isUnschedulable(err) {
		return reconcile.Result{RequeueAfter: unschedulableRetry}, nil
	}
	return reconcile.Result{}, err
}

// A decision is what is to become of a binding.
type decision struct {
	clusters fleet // as they were
	why      cause
	found    result
	// targets are where the binding is to be; they count when err is nil, or says
	// that nothing fits.
	targets []workv1alpha2.TargetCluster
	err     error // of the algorithm
}

// decide finds clusters for b when there is a cause. One decision is made at a
// time; writing them takes much longer, and is done side by side.
func (r *Reconciler) decide(ctx context.Context, b binding.Object) (decision, error) {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	list := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return decision{}, fmt.Errorf("list Clusters: %w", err)
	}
	d := decision{clusters: newFleet(list.Items)}
	d.why = whySchedule(b, r.algorithm.sets, d.clusters)
	if d.why == causeNone {
		return d, nil
	}
	s, fresh := Snapshot{Clusters: d.clusters.all}, d.why == causeFresh
	if r.groups != nil {
		s.Others = r.groups.View(b)
	}
	if len(r.panel.all) > 0 {
		request, clusters := r.algorithm.asks(b, s, fresh)
		s.Answers, s.Silent = r.panel.ask(ctx, request, clusters)
	}
	r.pending.Decide(b, func(reserved map[string]*estimate.Reserved) ([]workv1alpha2.TargetCluster, bool) {
		s.Reserved = reserved
		d.found, d.err = r.algorithm.run(b, s, fresh)
		d.targets = d.found.targets
		if isNoFit(d.err) {
			d.targets = stay(b.BindingSpec(), d.clusters)
		}
		return d.targets, d.isAnswer()
	})
	if d.isAnswer() {
		r.groups.Decide(b, d.targets)
	}
	return d, nil
}

// isAnswer reports whether the targets count.
func (d decision) isAnswer() bool { return d.err == nil || isNoFit(d.err) }

// helps returns what would help b, which no cluster has room for.
func (r *Reconciler) helps(b binding.Object) helpful {
	spec, general := b.BindingSpec(), estimate.General{Models: r.algorithm.models}
	request := estimate.Of(spec)
	return func(before, after *clusterv1alpha1.Cluster) bool {
		switch {
		case !mayUse(b, after):
			return false
		case before == nil || len(spec.Components) > 0:
			return true
		}
		return general.Replicas(after, request, nil) > general.Replicas(before, request, nil)
	}
}

// carryOut writes a decision, and notes its outcome. The error is that of the
// outcome, if it could be written.
func (r *Reconciler) carryOut(ctx context.Context, b binding.Object, d decision) error {
	if d.why == causeNone {
		_, err := r.writeStatus(ctx, b, outcome{})
		return err
	}
	o := outcome{err: d.err, scheduled: true, term: d.found.term}
	if d.isAnswer() {
		placed, refused := r.writeTargets(ctx, b, d.targets, d.clusters)
		switch {
		case refused == nil:
			o.moved, b = placed != b, placed
		case isRefusal(refused):
			r.withdraw(ctx, b, d.clusters)
			o.err = refused
		case errors.Is(refused, errMoved):
			r.withdraw(ctx, b, d.clusters)
			return refused
		default:
			return refused
		}
	}
	told, err := r.writeStatus(ctx, b, o)
	if err != nil {
		return err
	}
	if o.moved || told {
		r.tell(b, d.found, o.err)
	}
	return o.err
}

// withdraw takes back what was decided of b. Others may have what it leaves.
func (r *Reconciler) withdraw(ctx context.Context, b binding.Object, clusters fleet) {
	for _, name := range r.pending.Withdraw(b) {
		if c := clusters.byName[name]; c != nil {
			r.line.Load().roomIn(nil, c)
		}
	}
	r.released(ctx, r.groups.Withdraw(b))
}

// isRefusal reports whether the API server will not have what was written, rather
// than fail to take it.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || isQuotaExceeded(err)
}

// tell records events on the binding and on its template.
func (r *Reconciler) tell(b binding.Object, found result, err error) {
	ref := b.BindingSpec().Resource
	template := &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	say := func(kind, reason, note string) {
		for _, about := range []runtime.Object{b, template} {
			r.record.Eventf(about, nil, kind, reason, "Schedule", "%s", brief.Text(note, maxNote))
		}
	}
	for _, failed := range found.failed {
		say(corev1.EventTypeWarning, names.EventScheduleBindingFailed, termNote(b, failed))
	}
	switch {
	case err == nil:
		say(corev1.EventTypeNormal, names.EventScheduleBindingSucceed, scheduledNote(b, found.targets))
	case len(found.failed) == 0 || isRefusal(err):
		say(corev1.EventTypeWarning, names.EventScheduleBindingFailed, err.Error())
	}
}
