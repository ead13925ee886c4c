package clusterstatus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus/usage"
	"github.com/karmadactl/karmadactl/pkg/member"
)

const (
	// probeTimeout bounds how long a member may take to say whether it is ready.
	probeTimeout = 5 * time.Second
	// detailsTimeout bounds how long it may take to say the rest.
	detailsTimeout = 20 * time.Second
	// patience is that of a loop.
	patience = 2 * time.Second
	// versionPeriod is how often a member is asked for its version.
	versionPeriod = time.Minute
)

// A loop looks at one cluster again and again.
type loop struct {
	name   string
	uid    types.UID
	client client.Client
	live   client.Reader
	log    logr.Logger
	o      Options
	now    func() time.Time

	// kick makes it look now.
	kick chan struct{}
	// patience is how long a first status waits for nodes and pods, to be posted
	// together with them.
	patience time.Duration

	health    health
	catalogue catalogue
	version   string
	versionAt time.Time
	told      string // what was logged last

	// What follows nodes and pods, and what they come to.
	tracker   *usage.Tracker
	following *member.Member
	unfollow  context.CancelFunc
	streams   sync.WaitGroup

	beats bool
	beat  sync.WaitGroup

	// waiting is set while a status was posted without nodes and pods.
	waiting bool
}

// run looks at the cluster until ctx ends, for the first time after delay.
func (l *loop) run(ctx context.Context, delay time.Duration) {
	ctx, stop := context.WithCancel(ctx)
	defer l.beat.Wait()
	defer l.streams.Wait()
	defer stop()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		var known <-chan struct{}
		if l.waiting {
			known = l.tracker.Known()
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.kick:
		case <-known:
			l.waiting = false
		}
		next, err := l.look(ctx)
		if ctx.Err() != nil {
			return
		}
		l.tell(err)
		timer.Reset(next)
	}
}

// tell logs what has gone wrong, unless that was said before.
func (l *loop) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.told && text != "" {
		l.log.Info("Could not find out everything about the member cluster", "cluster", l.name, "error", text)
	}
	l.told = text
}

// look looks at the cluster once, writes what it has found out if that is
// anything new, and says when to look again. The error is for people to read:
// what it means for the cluster is in its status.
func (l *loop) look(ctx context.Context) (next time.Duration, err error) {
	next = jitter(l.o.Frequency)
	c := &clusterv1alpha1.Cluster{}
	err = l.client.Get(ctx, client.ObjectKey{Name: l.name}, c)
	if apierrors.IsNotFound(err) || err == nil && c.UID != l.uid {
		return next, nil // it is gone; the end of this loop is on its way
	}
	if err != nil {
		return next, fmt.Errorf("read the Cluster: %w", err)
	}
	began := l.now()
	found, settled, problem := l.find(ctx, c)
	if settled > 0 {
		next = min(next, settled)
	}
	if ctx.Err() != nil {
		return next, ctx.Err()
	}
	if err := l.write(ctx, c, found); err != nil {
		problem = errors.Join(problem, fmt.Errorf("write the status: %w", err))
		if found.details == nil {
			return next, problem
		}
		// A member that serves more than a Cluster can hold is ready all the same.
		if err := l.write(ctx, c, findings{ready: found.ready}); err != nil {
			return next, problem
		}
	}
	l.measure(found, l.now().Sub(began))
	return next, problem
}

// jitter keeps clusters that were joined together from being looked at together
// for ever.
func jitter(d time.Duration) time.Duration {
	if d < 20 {
		return d
	}
	return d - d/20 + rand.N(d/10)
}

// find finds out what there is to know about a cluster.
func (l *loop) find(ctx context.Context, c *clusterv1alpha1.Cluster) (findings, time.Duration, error) {
	m, r, err := l.connect(ctx, c)
	seen, problem := metav1.Condition{}, error(nil)
	if err != nil {
		seen, problem = clusterWithoutClient(err), err
	} else {
		probing, cancel := context.WithTimeout(ctx, probeTimeout)
		seen, problem = r.probe(probing)
		cancel()
	}
	current := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	ready, settled := l.health.judge(seen, current, l.now(), l.o.thresholds())
	found := findings{ready: ready}
	if seen.Status != metav1.ConditionTrue || ready.Status != metav1.ConditionTrue {
		return found, settled, problem
	}

	l.startHeartbeat(ctx, c)
	if err := l.follow(ctx, m); err != nil {
		problem = errors.Join(problem, err)
	}
	d, err := l.details(ctx, c, m, r)
	found.details = &d
	return found, settled, errors.Join(problem, err)
}

func (l *loop) connect(ctx context.Context, c *clusterv1alpha1.Cluster) (*member.Member, remote, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	m, err := l.o.Pool.Get(ctx, c)
	if err != nil {
		return nil, remote{}, err
	}
	r, err := newRemote(m.Config(), m.HTTP())
	return m, r, err
}

// details asks a member that is ready for everything else.
func (l *loop) details(ctx context.Context, c *clusterv1alpha1.Cluster, m *member.Member, r remote) (details, error) {
	asking, cancel := context.WithTimeout(ctx, detailsTimeout)
	defer cancel()
	var errs []error
	if now := l.now(); l.version == "" || now.Sub(l.versionAt) >= versionPeriod {
		version, err := r.version(asking)
		if err != nil {
			errs = append(errs, fmt.Errorf("find out its version: %w", err))
		} else {
			l.version, l.versionAt = version, now
		}
	}
	d := details{version: l.version, summed: l.o.ResourceModeling}
	d.served = l.catalogue.read(asking, r, m.Discovery(), l.now())
	if err := d.served.err(); err != nil {
		errs = append(errs, fmt.Errorf("find out what it serves: %w", err))
	}
	if l.tracker == nil {
		return d, errors.Join(errs...)
	}
	if c.Status.ResourceSummary == nil && !l.waiting {
		select {
		case <-l.tracker.Known():
		case <-time.After(l.patience):
		case <-ctx.Done():
		}
	}
	var models []clusterv1alpha1.ResourceModel
	if l.o.CustomizedModels {
		models = c.Spec.ResourceModels
	}
	if sums, known := l.tracker.Summary(models); known {
		d.usage = &sums
	}
	l.waiting = d.usage == nil
	return d, errors.Join(errs...)
}

// follow keeps the sums of nodes and pods up to date by way of m.
func (l *loop) follow(ctx context.Context, m *member.Member) error {
	if !l.o.ResourceModeling || l.following == m {
		return nil
	}
	config := rest.CopyConfig(m.Config())
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1client.NewForConfigAndClient(config, m.HTTP())
	if err != nil {
		return fmt.Errorf("make a client for nodes and pods: %w", err)
	}
	if l.unfollow != nil {
		l.unfollow()
		l.streams.Wait()
	}
	if l.tracker == nil {
		l.tracker = usage.New()
	}
	following, unfollow := context.WithCancel(ctx)
	l.following, l.unfollow = m, unfollow
	l.streams.Go(func() { usage.Follow(following, core, l.tracker, l.log.WithValues("cluster", l.name)) })
	return nil
}

// startHeartbeat starts the heartbeat, once.
func (l *loop) startHeartbeat(ctx context.Context, c *clusterv1alpha1.Cluster) {
	if l.o.LeaseDuration == 0 || l.beats {
		return
	}
	l.beats = true
	h := &heartbeat{
		client: l.client, live: l.live, log: l.log, duration: l.o.LeaseDuration, interval: l.o.LeaseInterval, now: l.now,
		owner: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: c.UID}},
	}
	l.beat.Go(func() { h.run(ctx) })
}

// write writes what was found out, if it is anything new, and over nothing that
// somebody else has written since the Cluster was read.
func (l *loop) write(ctx context.Context, c *clusterv1alpha1.Cluster, found findings) error {
	now := metav1.NewTime(l.now())
	stale := c.ResourceVersion == "" // an earlier write has failed
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if stale {
			*c = clusterv1alpha1.Cluster{}
			if err := l.live.Get(ctx, client.ObjectKey{Name: l.name}, c); err != nil {
				return client.IgnoreNotFound(err)
			}
			if c.UID != l.uid {
				return nil
			}
		}
		before := c.DeepCopy()
		found.apply(&c.Status, now)
		if equality.Semantic.DeepEqual(before.Status, c.Status) {
			return nil
		}
		stale = true
		err := l.client.Status().Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			*c = clusterv1alpha1.Cluster{}
		}
		return err
	})
}

func (l *loop) measure(found findings, took time.Duration) {
	l.o.Metrics.Ready(l.name, found.ready.Status == metav1.ConditionTrue)
	if found.details == nil {
		return
	}
	l.o.Metrics.Synced(l.name, took)
	if u := found.details.usage; u != nil {
		l.o.Metrics.Nodes(l.name, int(u.Nodes.TotalNum), int(u.Nodes.ReadyNum))
		l.o.Metrics.Resources(l.name, u.Resources.Allocatable, u.Resources.Allocated)
	}
}
