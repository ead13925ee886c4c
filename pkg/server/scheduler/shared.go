package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

const (
	// cacheSyncTimeout is how long the scheduler waits for its caches at start.
	cacheSyncTimeout  = 2 * time.Minute
	readHeaderTimeout = 10 * time.Second
	stopTimeout       = 5 * time.Second
	// readyTimeout is how long a readiness probe waits for caches.
	readyTimeout = 500 * time.Millisecond
)

// RunShared runs the role on the manager of another role of the process, which
// shared waits for: the scheduler reads from its cache, and ends with it. The
// health probe is the scheduler's own; flags about metrics, leader election and
// limits of requests are accepted, and are the manager's to have. It returns when
// ctx is done, or when the scheduler could not be set up.
func RunShared(ctx context.Context, args []string, p Process, shared func(context.Context) (manager.Manager, error)) error {
	c, err := Parse(args, p)
	if err == nil {
		err = c.runShared(ctx, shared)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", names.Scheduler, err)
	}
	return nil
}

func (c Completed) runShared(ctx context.Context, shared func(context.Context) (manager.Manager, error)) error {
	log := klog.FromContext(ctx).WithName(names.Scheduler)
	group, ctx := errgroup.WithContext(ctx)
	probes := &probes{}
	if address := c.flags.Endpoints.HealthAddress(); address != disabled {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen for health probes: %w", role.Explain(err))
		}
		group.Go(func() error { return serve(ctx, listener, probes.mux()) })
	}
	group.Go(func() error {
		mgr, err := shared(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil // it was told to stop before it got that far
			}
			return fmt.Errorf("wait for the manager: %w", err)
		}
		if err := Setup(mgr, c); err != nil {
			return err
		}
		probes.follow(mgr)
		log.Info("Scheduling")
		if c.ready != nil && mgr.GetCache().WaitForCacheSync(ctx) {
			c.ready()
		}
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// serve answers requests until ctx is done.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: readHeaderTimeout, ErrorLog: klog.NewStandardLogger("INFO")}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if s.Shutdown(stopCtx) != nil {
			_ = s.Close() // who takes longer is cut off
		}
	}()
	err := s.Serve(l)
	if ctx.Err() == nil {
		return fmt.Errorf("serve health probes: %w", err)
	}
	<-stopped
	return nil
}

// probes answer /healthz and /readyz for a scheduler whose manager does not.
type probes struct {
	manager atomic.Pointer[manager.Manager]
}

// follow makes the readiness that of a manager's caches.
func (p *probes) follow(mgr manager.Manager) { p.manager.Store(&mgr) }

func (p *probes) ready(r *http.Request) error {
	mgr := p.manager.Load()
	if mgr == nil {
		return errors.New("the scheduler has not been set up yet")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if !(*mgr).GetCache().WaitForCacheSync(ctx) {
		return errors.New("caches have not synced yet")
	}
	return nil
}

func (p *probes) handlers() map[string]http.Handler {
	alive := &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}
	ready := &healthz.Handler{Checks: map[string]healthz.Checker{"scheduler": p.ready}}
	return map[string]http.Handler{
		"/healthz": http.StripPrefix("/healthz", alive), "/healthz/": http.StripPrefix("/healthz/", alive),
		"/readyz": http.StripPrefix("/readyz", ready), "/readyz/": http.StripPrefix("/readyz/", ready),
	}
}

func (p *probes) mux() http.Handler {
	mux := http.NewServeMux()
	for path, h := range p.handlers() {
		mux.Handle(path, h)
	}
	return mux
}
