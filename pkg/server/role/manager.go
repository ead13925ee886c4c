package role

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// Manager is what the flags of a role say about its controller-runtime manager.
type Manager struct {
	Scheme         *runtime.Scheme
	LeaderElection flags.LeaderElection
	Endpoints      flags.Endpoints
	Gate           featuregate.FeatureGate

	// ResyncPeriod is how often all objects are reconciled without a reason; 0
	// is never.
	ResyncPeriod time.Duration
	// CacheSyncTimeout is how long a controller waits for its caches at start.
	CacheSyncTimeout time.Duration
	// Concurrency is how many objects of a kind are reconciled at once, by
	// GroupKind.String().
	Concurrency map[string]int
}

// Options returns options for a manager.
func (m Manager) Options(log klog.Logger) manager.Options {
	priorityQueue := m.Gate.Enabled(features.ControllerPriorityQueue)
	return manager.Options{
		Scheme: m.Scheme,
		Logger: log,
		Cache: cache.Options{
			SyncPeriod: &m.ResyncPeriod,
			// Nobody reads managed fields, and they are most of many objects.
			DefaultTransform: cache.TransformStripManagedFields(),
		},
		Controller: config.Controller{
			GroupKindConcurrency: m.Concurrency,
			CacheSyncTimeout:     m.CacheSyncTimeout,
			UsePriorityQueue:     &priorityQueue,
		},

		HealthProbeBindAddress: m.Endpoints.HealthAddress(),
		Metrics:                metricsserver.Options{BindAddress: m.Endpoints.MetricsAddress()},
		PprofBindAddress:       m.Endpoints.ProfilingAddress(),

		LeaderElection:          m.LeaderElection.Enabled,
		LeaderElectionID:        m.LeaderElection.Name,
		LeaderElectionNamespace: m.LeaderElection.Namespace,
		LeaseDuration:           &m.LeaderElection.LeaseDuration,
		RenewDeadline:           &m.LeaderElection.RenewDeadline,
		RetryPeriod:             &m.LeaderElection.RetryPeriod,
		// The next leader need not wait for the lease to run out. Safe, because
		// a role ends when its manager does.
		LeaderElectionReleaseOnCancel: true,
	}
}

// ClientConfig returns a copy of a config that says who is calling, and that
// holds requests back as the limits say.
func ClientConfig(c *rest.Config, role string, limits flags.Limits) *rest.Config {
	c = rest.CopyConfig(c)
	c.UserAgent = role + "/" + version.Get().GitVersion
	limits.Apply(c)
	return c
}

// readinessTimeout bounds how long a readiness probe waits for caches. What
// has not synced by then is not ready; probes come again.
const readinessTimeout = 500 * time.Millisecond

// AddProbes adds the checks of /healthz and /readyz to a manager. A process is
// ready when its caches have synced, whether it leads or stands by.
func AddProbes(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	synced := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), readinessTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("caches have not synced yet")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("caches", synced); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// NotifyReady has a manager call ready, once: when its controllers have been
// set up, which a closed channel says, have been started, and their caches have
// synced or, with elects, when it leads or stands by.
func NotifyReady(mgr manager.Manager, elects bool, setUp <-chan struct{}, ready func()) error {
	err := mgr.Add(always(func(ctx context.Context) error {
		select {
		case <-setUp:
		case <-ctx.Done():
			return nil
		}
		if !elects {
			select {
			case <-mgr.Elected():
			case <-ctx.Done():
				return nil
			}
		}
		if mgr.GetCache().WaitForCacheSync(ctx) {
			ready()
		}
		return nil
	}))
	if err != nil {
		return fmt.Errorf("watch for readiness: %w", err)
	}
	return nil
}

// always is a runnable that does not wait for leadership.
type always func(context.Context) error

func (a always) Start(ctx context.Context) error { return a(ctx) }

func (a always) NeedLeaderElection() bool { return false }

// Explain adds to an error of a manager what to do about it, where that can be
// told.
func Explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another with --health-probe-bind-address, --metrics-bind-address or --profiling-bind-address", err)
	}
	return err
}
