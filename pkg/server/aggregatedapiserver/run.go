// Package aggregatedapiserver is the role karmada-aggregated-apiserver: the API
// server of the group cluster.karmada.io.
//
// Flags are what was typed; New is the command, Run takes the same flags inside
// a process that somebody else has set up, such as one that runs kube-apiserver
// as well.
package aggregatedapiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/aggregated"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/server/role"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// New returns the command of the role.
func New(streams genericiooptions.IOStreams) (*cobra.Command, error) {
	f, err := NewFlags()
	if err != nil {
		return nil, err
	}
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return nil, err
	}
	return role.NewCommand(role.Role{
		Name:  names.AggregatedAPIServer,
		Short: "Serve the API of member clusters",
		Long:  "The karmada-aggregated-apiserver serves the API group cluster.karmada.io: it keeps Clusters, the member clusters of the control plane, in etcd, and passes requests on to their API servers.",
		Sets:  sets,
		Run: func(ctx context.Context) error {
			if err := f.Validate(gate); err != nil {
				return err
			}
			if err := f.FeatureGates.Apply(gate); err != nil {
				return err
			}
			if err := f.Logs.Apply(gate); err != nil {
				return err
			}
			return f.run(ctx, gate)
		},
	}, streams), nil
}

// Run runs the role with the flags of its command until ctx is done and the
// requests in flight are answered. It neither handles signals nor sets up
// logging: flags for logging are accepted and have no effect. The process's own
// feature gates and version are left alone.
func Run(ctx context.Context, args []string) error {
	if err := runArgs(ctx, args); err != nil {
		return fmt.Errorf("%s: %w", names.AggregatedAPIServer, err)
	}
	return nil
}

func runArgs(ctx context.Context, args []string) error {
	f, err := NewFlags()
	if err != nil {
		return err
	}
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return err
	}
	if err := parse(names.AggregatedAPIServer, sets, args); err != nil {
		return err
	}
	if err := f.Validate(gate); err != nil {
		return err
	}
	if err := f.FeatureGates.Apply(gate); err != nil {
		return err
	}
	return f.run(ctx, gate)
}

// run runs a server of valid flags.
func (f *Flags) run(ctx context.Context, gate featuregate.FeatureGate) error {
	log := klog.FromContext(ctx).WithName(names.AggregatedAPIServer)
	log.Info("Starting", "version", version.Get().String())
	f.FeatureGates.Report(log)

	config, err := f.Kubeconfig.RESTConfig()
	if err != nil {
		return fmt.Errorf("invalid flag: --kubeconfig: %w", err)
	}
	config = role.ClientConfig(config, names.AggregatedAPIServer, f.API)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client of the control plane: %w", err)
	}
	server, err := f.server(config, client, gate)
	if err != nil {
		return err
	}
	stopProfiles, err := f.serveProfiles(ctx)
	if err != nil {
		server.Destroy()
		return err
	}
	defer stopProfiles()
	if err := server.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("run the API server: %w", err)
	}
	log.Info("Stopped")
	return nil
}

// server makes the server that the flags describe.
func (f *Flags) server(controlPlane *rest.Config, client kubernetes.Interface, gate featuregate.FeatureGate) (*genericapiserver.GenericAPIServer, error) {
	config, err := aggregated.NewConfig()
	if err != nil {
		return nil, err
	}
	config.Cluster.ResourceModels = gate.Enabled(features.CustomizedClusterResourceModeling)
	config.Proxy.ControlPlane = controlPlane
	config.Proxy.Secrets = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if err := f.applyTo(config.Generic, client); err != nil {
		return nil, err
	}
	return config.New()
}

func (f *Flags) applyTo(c *genericapiserver.Config, client kubernetes.Interface) error {
	if err := f.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("create a serving certificate: %w", err)
	}
	if err := f.Etcd.ApplyTo(c); err != nil {
		return fmt.Errorf("set up storage: %w", err)
	}
	if err := f.SecureServing.ApplyTo(&c.SecureServing, &c.LoopbackClientConfig); err != nil {
		return fmt.Errorf("set up serving: %w", err)
	}
	if err := f.Authentication.ApplyTo(&c.Authentication, c.SecureServing, c.OpenAPIConfig); err != nil {
		return fmt.Errorf("set up authentication: %w", err)
	}
	if err := f.Authorization.ApplyTo(&c.Authorization); err != nil {
		return fmt.Errorf("set up authorization: %w", err)
	}
	if err := f.Audit.ApplyTo(c); err != nil {
		return fmt.Errorf("set up auditing: %w", err)
	}
	// Priority and fairness reads its configuration from the control plane. It
	// has informers of its own, which nothing waits for: without the right to
	// read it, the built-in configuration holds.
	shared := informers.NewSharedInformerFactory(client, 10*time.Minute)
	if err := f.Features.ApplyTo(c, client, shared); err != nil {
		return fmt.Errorf("set up features: %w", err)
	}
	if c.FlowControl == nil {
		return nil
	}
	err := c.AddPostStartHook("start-priority-and-fairness-informers", func(hook genericapiserver.PostStartHookContext) error {
		shared.Start(hook.Done())
		return nil
	})
	if err != nil {
		return fmt.Errorf("set up priority and fairness: %w", err)
	}
	return nil
}

// serveProfiles serves profiles, if flags say so, until the function that it
// returns is called.
func (f *Flags) serveProfiles(ctx context.Context) (stop func(), err error) {
	if !f.EnablePprof {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.ProfilingBindAddress)
	if err != nil {
		return nil, fmt.Errorf("listen for profiles, --profiling-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Profiles are not served any more")
		}
	}()
	return func() {
		_ = server.Close() // it is on its way out anyhow
		<-done
	}, nil
}
