package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmadactl/karmadactl/pkg/webhook"
	"github.com/karmadactl/karmadactl/pkg/webhook/convert"
)

const (
	// disabled is what flags say for an address that is not listened on.
	disabled = "0"

	readHeaderTimeout = 10 * time.Second
	// idleTimeout is how long connections of API servers are kept without a
	// request.
	idleTimeout = 90 * time.Second
	// stopTimeout is how long it may take to stop. Requests are answered within milliseconds, out of nothing but what
	// they bring; what is left then are connections that API servers keep, which HTTP/2 would take a second to give up.
	stopTimeout = 250 * time.Millisecond
)

// A server is one listener with what it serves.
type server struct {
	what     string
	flag     string // that says where it listens
	address  string
	handler  http.Handler
	tls      *tls.Config // nil is plain HTTP
	listener net.Listener
}

// servers returns what the flags say is to be served.
func (f *Flags) servers(log klog.Logger, hooks []webhook.Hook) ([]*server, error) {
	certFile, keyFile := f.certificate()
	cert, err := newCertificate(certFile, keyFile, func(err error) { log.Error(err, "Serving with the previous certificate") })
	if err != nil {
		return nil, err
	}
	handler, err := handlers(log, hooks)
	if err != nil {
		return nil, err
	}
	all := []*server{{
		what: "webhooks", flag: "secure-port",
		address: net.JoinHostPort(f.BindAddress, strconv.Itoa(f.SecurePort)),
		handler: handler,
		tls:     &tls.Config{GetCertificate: cert.get, MinVersion: tlsVersions()[f.TLSMinVersion]},
	}}
	for _, plain := range []*server{
		{what: "health probes", flag: "health-probe-bind-address", address: f.Endpoints.HealthAddress(), handler: probes()},
		{what: "metrics", flag: "metrics-bind-address", address: f.Endpoints.MetricsAddress(), handler: metrics()},
		{what: "profiles", flag: "profiling-bind-address", address: f.Endpoints.ProfilingAddress(), handler: profiles()},
	} {
		if plain.address != disabled {
			all = append(all, plain)
		}
	}
	return all, nil
}

// handlers serves the webhooks, the conversion of bindings, and /readyz/ beside
// them.
func handlers(log klog.Logger, hooks []webhook.Hook) (http.Handler, error) {
	mux := http.NewServeMux()
	for _, h := range hooks {
		handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: h.Handler}, admission.StandaloneOptions{
			Logger: log.WithValues("webhook", h.Name), MetricsPath: h.Path,
		})
		if err != nil {
			return nil, fmt.Errorf("serve webhook %s: %w", h.Name, err)
		}
		mux.Handle(h.Path, handler)
	}
	// Its Register is the way to count requests as those of the others are.
	crwebhook.NewServer(crwebhook.Options{WebhookMux: mux}).Register(convert.Path, convert.New())
	mux.Handle("/readyz/", probe("/readyz/"))
	return mux, nil
}

// probes serves /healthz and /readyz. Whoever answers is ready: all listeners
// are there before the first one serves.
func probes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz"} {
		mux.Handle(path, probe(path))
		mux.Handle(path+"/", probe(path+"/"))
	}
	return mux
}

func probe(path string) http.Handler { return http.StripPrefix(path, &healthz.Handler{}) }

func metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(crmetrics.Registry, promhttp.HandlerOpts{}))
	return mux
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// listen opens all listeners, or none.
func listen(ctx context.Context, servers []*server) error {
	for i, s := range servers {
		var err error
		if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.address); err != nil {
			for _, opened := range servers[:i] {
				_ = opened.listener.Close() // nobody has connected yet
			}
			return s.explain(err)
		}
	}
	return nil
}

// serve serves on open listeners until ctx is done or one of the servers fails.
// Requests in flight are answered.
func serve(ctx context.Context, servers []*server) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range servers {
		group.Go(func() error { return s.serve(ctx) })
	}
	return group.Wait()
}

func (s *server) explain(err error) error {
	err = fmt.Errorf("listen for %s: %w", s.what, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another address with --%s", err, s.flag)
	}
	return err
}

func (s *server) serve(ctx context.Context) error {
	h := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.tls,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          klog.NewStandardLogger("INFO"), // clients that go away, and such
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if h.Shutdown(stopCtx) != nil {
			_ = h.Close() // who takes longer is cut off
		}
	}()
	var err error
	if s.tls != nil {
		err = h.ServeTLS(s.listener, "", "")
	} else {
		err = h.Serve(s.listener)
	}
	if ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", s.what, err)
	}
	<-stopped
	return nil
}
