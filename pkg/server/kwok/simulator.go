package kwok

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
)

const (
	// parallelism of each of kwok's queues.
	parallelism = 4
	// shutdownTimeout is what requests get to finish when the endpoint stops.
	shutdownTimeout = 2 * time.Second
)

// A Simulator runs the simulated nodes of one member cluster.
type Simulator struct {
	options Options
	client  kubernetes.Interface
	dynamic dynamic.Interface
	stages  map[internalversion.StageResourceRef][]*internalversion.Stage
	usage   *usageModel
}

// Run runs simulated nodes until ctx is done, or something fails.
func Run(ctx context.Context, o Options) error {
	s, err := New(o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// New checks the options and prepares a Simulator. Nothing is changed or
// listened on before Run.
func New(o Options) (*Simulator, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Config)
	config.QPS = -1 // the API server's priority and fairness is the limit
	config.UserAgent = rest.DefaultKubernetesUserAgent() + "/simulated-nodes"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("simulated nodes: client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("simulated nodes: client: %w", err)
	}
	stages, err := loadStages()
	if err != nil {
		return nil, fmt.Errorf("simulated nodes: %w", err)
	}
	usage, err := newUsageModel()
	if err != nil {
		return nil, fmt.Errorf("simulated nodes: %w", err)
	}
	return &Simulator{options: o, client: client, dynamic: dyn, stages: stages, usage: usage}, nil
}

// Run listens, creates the nodes and plays their life and that of their pods.
// It blocks until ctx is done, then returns nil, or until something fails. The
// API server must answer already.
func (s *Simulator) Run(ctx context.Context) error {
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("simulated nodes: %w", err)
	}
	return nil
}

func (s *Simulator) run(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	ctx = withKwokLogger(ctx, s.options.Logger)

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.ListenAddress)
	if err != nil {
		return fmt.Errorf("kubelet endpoint: %w", err)
	}
	defer listener.Close()
	if _, err := tls.LoadX509KeyPair(s.options.CertFile, s.options.KeyFile); err != nil {
		return fmt.Errorf("kubelet endpoint: load serving certificate: %w", err)
	}

	if err := ensureNodes(ctx, s.client.CoreV1().Nodes(), s.options); err != nil {
		return err
	}
	controller, err := s.controller(ctx)
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}

	go keepLeases(ctx, s.client, controller.ListNodes, controller.GetNodeCache().Get)

	failed := make(chan error, 2)
	server := s.server(ctx)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	if s.options.RequestHeaderCAFile != "" {
		go func() {
			if err := registerMetrics(ctx, s.dynamic, s.options); err != nil {
				failed <- err
			}
		}()
	}

	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancelStop()
	cancel()
	if server.Shutdown(stop) != nil {
		_ = server.Close() // whoever still follows a log is cut off
	}
	return err
}

// controller is kwok's, which keeps nodes and pods going.
func (s *Simulator) controller(ctx context.Context) (*controllers.Controller, error) {
	var controller *controllers.Controller
	ips := newPodIPs(func() ([]corev1.Pod, error) { return s.boundPods(ctx) })
	controller, err := controllers.NewController(controllers.Config{
		Clock:                             clock.RealClock{},
		TypedClient:                       s.client,
		DynamicClient:                     s.dynamic,
		RESTClient:                        s.client.CoreV1().RESTClient(),
		ManageNodesWithAnnotationSelector: nodeSelector,
		CIDR:                              s.options.PodCIDR,
		NodeIP:                            s.options.NodeAddress,
		NodePort:                          int(s.options.port()),
		LocalStages:                       s.stages,
		PodPlayStageParallelism:           parallelism,
		NodePlayStageParallelism:          parallelism,
		PodsOnNodeSyncParallelism:         parallelism,
		NodeLeaseDurationSeconds:          0, // keepLeases
		FuncMap: map[string]any{
			"NodeCapacity": func() map[string]string {
				capacity := map[string]string{}
				for name, q := range s.options.Capacity {
					capacity[string(name)] = q.String()
				}
				return capacity
			},
			"PodIPsWith": func(nodeName string, hostNetwork bool, uid, _, _ string) ([]string, error) {
				node, _ := controller.GetNodeCache().Get(nodeName)
				return s.podIPsOn(node, hostNetwork, types.UID(uid), ips)
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare kwok: %w", err)
	}
	return controller, nil
}

// podIPsOn returns the addresses of a pod: its node's, or one of each range.
func (s *Simulator) podIPsOn(node *corev1.Node, hostNetwork bool, uid types.UID, ips *podIPs) ([]string, error) {
	if hostNetwork {
		return []string{s.options.NodeAddress}, nil
	}
	ranges := []string{s.options.PodCIDR}
	switch {
	case node == nil:
	case len(node.Spec.PodCIDRs) > 0:
		ranges = node.Spec.PodCIDRs
	case node.Spec.PodCIDR != "":
		ranges = []string{node.Spec.PodCIDR}
	}
	var addresses []string
	for _, r := range ranges {
		a, err := ips.get(r, uid)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
}

// boundPods lists all pods that are on a node.
func (s *Simulator) boundPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String(),
	})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// server serves the kubelet endpoint.
func (s *Simulator) server(ctx context.Context) *http.Server {
	e := &endpoint{
		options: s.options,
		pod:     newPodGetter(s.client.CoreV1()),
		metrics: &metricsServer{client: s.client.CoreV1(), model: s.usage},
	}
	return &http.Server{
		Handler:           e.handler(),
		TLSConfig:         serverTLS(s.options.CertFile, s.options.KeyFile),
		ReadHeaderTimeout: readHeaderTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          errorLog(s.options.Logger),
	}
}

// Ready returns nil when the endpoint answers and every one of the wanted nodes
// is Ready, and else what is missing.
func (s *Simulator) Ready(ctx context.Context) error {
	if err := s.healthz(ctx); err != nil {
		return fmt.Errorf("simulated nodes: kubelet endpoint: %w", err)
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("simulated nodes: list nodes: %w", err)
	}
	ready := map[string]bool{}
	for i := range nodes.Items {
		ready[nodes.Items[i].Name] = isReady(&nodes.Items[i])
	}
	var errs []error
	for i := range s.options.Nodes {
		if name := s.options.nodeName(i + 1); !ready[name] {
			errs = append(errs, fmt.Errorf("node %s is not ready", name))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("simulated nodes: %w", errors.Join(errs...))
	}
	return nil
}

// healthz asks the endpoint over the wire. The certificate is not verified:
// it is this process's own port on a loopback address, and nothing is told.
func (s *Simulator) healthz(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.options.ListenAddress+"/healthz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true},
	}}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz answers %s", resp.Status)
	}
	return nil
}
