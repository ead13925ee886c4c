package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/apply"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// New returns the command of the role.
func New(streams genericiooptions.IOStreams) (*cobra.Command, error) {
	f := NewFlags()
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return nil, err
	}
	return role.NewCommand(role.Role{
		Name:  names.Agent,
		Short: "Run the agent of a member cluster in pull mode",
		Long:  "The karmada-agent runs beside a member cluster that the control plane does not reach: it registers the cluster there, reports its status, and makes it hold what the control plane says.",
		Sets:  sets,
		Run: func(ctx context.Context) error {
			c, err := f.complete(gate, crmetrics.Registry)
			if err != nil {
				return err
			}
			if err := f.Logs.Apply(gate); err != nil {
				return err
			}
			tune(ctx)
			return c.Run(ctx)
		},
	}, streams), nil
}

// Parse completes the flags of the command. Metrics are registered with r.
func Parse(args []string, r prometheus.Registerer) (Completed, error) {
	return parse(controllers(), args, r)
}

func parse(table []controller, args []string, r prometheus.Registerer) (Completed, error) {
	f := newFlags(table)
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return Completed{}, err
	}
	if err := role.Parse(names.Agent, sets, args); err != nil {
		return Completed{}, err
	}
	return f.complete(gate, r)
}

// complete validates the flags and reads what they name. All that is wrong is in
// the one error.
func (f *Flags) complete(gate featuregate.MutableVersionedFeatureGate, r prometheus.Registerer) (Completed, error) {
	errs := f.Validate(gate)
	errs = append(errs, f.FeatureGates.ApplyValid(gate)...)
	errs = append(errs, f.Logs.Validate(gate)...) // may need gates that were just set
	member, err := f.Member.RESTConfig()
	if err != nil {
		errs = append(errs, field.Invalid(flags.Path("kubeconfig"), f.Member.File, err.Error()))
	}
	var controlPlane *rest.Config
	if f.ControlPlane != "" {
		if controlPlane, err = f.controlPlaneConfig(); err != nil {
			errs = append(errs, field.Invalid(flags.Path("karmada-kubeconfig"), f.ControlPlane, err.Error()))
		}
	}
	if err := flags.Error(errs); err != nil {
		return Completed{}, err
	}
	f.LeaderElection.Name = names.AgentLease(f.Cluster.Name)
	return Completed{&completed{
		parts: parts{
			flags:        *f,
			memberConfig: role.ClientConfig(member, names.Agent, f.ClusterAPI),
			controlPlane: role.ClientConfig(controlPlane, names.Agent, f.API),
			gate:         gate,
			registerer:   r,
		},
		plan: role.NewPlan(f.table, f.Controllers.Enabled, gate, role.Gated),
	}}, nil
}

// Completed is a complete and valid choice of what to run; only Parse and the
// command make one.
type Completed struct {
	*completed
}

type completed struct {
	parts
	plan role.Plan[parts]
}

// parts are what the controllers of an agent are made of.
type parts struct {
	flags Flags
	// memberConfig reaches the agent's own cluster, controlPlane the other side.
	memberConfig, controlPlane *rest.Config
	gate                       featuregate.FeatureGate
	registerer                 prometheus.Registerer
	clusters                   *metrics.Clusters
	// members has the agent's own cluster.
	members *member.Pool
	// interpreter says what objects of the cluster mean.
	interpreter *interpreter.Interpreter
	// notes go from who applies Works to who writes their statuses.
	notes *apply.Notes
}

// rateLimiter returns the limiter of one controller's queue.
func (p parts) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return flags.NewRateLimiter[reconcile.Request](p.flags.RateLimiter, p.gate.Enabled(features.ControllerPriorityQueue))
}

// Run enters the cluster at the control plane, then runs the controllers until ctx
// is done and everything has stopped. Losing the lease is an error.
func (c Completed) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName(names.Agent)
	log.Info("Starting", "version", version.Get().String(), "cluster", c.flags.Cluster.Name)
	c.flags.FeatureGates.Report(log)
	if err := c.registerMetrics(); err != nil {
		return err
	}

	cluster, err := c.enter(ctx, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop before it got that far
		}
		return err
	}
	log.Info("The cluster is registered", "cluster", cluster.Name, "id", cluster.Spec.ID)

	options, err := c.managerOptions(log)
	if err != nil {
		return err
	}
	mgr, err := manager.New(patiently(c.controlPlane), options)
	if err != nil {
		return fmt.Errorf("create the controller manager: %w", role.Explain(err))
	}
	if err := errors.Join(role.AddProbes(mgr), reportDeletion(mgr, cluster.Name)); err != nil {
		return err
	}
	limits := member.Limits{QPS: c.flags.ClusterAPI.QPS, Burst: c.flags.ClusterAPI.Burst}
	c.interpreter = interpreter.New(interpreter.Options{})
	c.notes = apply.NewNotes()
	c.members = member.NewPool(ctx, member.Pull(cluster.Name, c.memberConfig, limits))
	log.Info("Starting controllers", "controllers", c.plan.Started())
	c.plan.ReportIdle(log)
	if err := c.plan.SetUp(role.WithEvents(mgr), c.parts); err != nil {
		return err
	}
	if err := mgr.Start(klog.NewContext(ctx, log)); err != nil {
		return fmt.Errorf("run the controller manager: %w", role.Explain(err))
	}
	log.Info("Stopped")
	return nil
}

func (c *completed) registerMetrics() error {
	var err error
	c.clusters, err = metrics.NewClusters(c.registerer)
	return errors.Join(err, metrics.RegisterBuild(c.registerer, version.Get()))
}

// managerOptions returns the options of a manager that asks for no more than the
// agent's rights give.
func (c Completed) managerOptions(log klog.Logger) (manager.Options, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return manager.Options{}, err
	}
	f := &c.flags
	o := role.Manager{
		Scheme:           scheme,
		LeaderElection:   f.LeaderElection,
		Endpoints:        f.Endpoints,
		Gate:             c.gate,
		ResyncPeriod:     f.ResyncPeriod,
		CacheSyncTimeout: f.ClusterCacheSyncTimeout,
		Concurrency: map[string]int{
			"Work.work.karmada.io":       f.ConcurrentWorkSyncs,
			"Cluster.cluster.karmada.io": f.ConcurrentClusterSyncs,
		},
	}.Options(log)
	o.Cache.DefaultNamespaces = map[string]cache.Config{names.ExecutionNamespace(f.Cluster.Name): {}}
	o.Cache.ByObject = map[client.Object]cache.ByObject{
		&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", f.Cluster.Name)},
	}
	o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.Namespace{}, &coordinationv1.Lease{}}}
	return o, nil
}

// enterOnce enters the cluster as the flags say.
func (p parts) enterOnce(ctx context.Context, member registration.Member, controlPlane client.Client) (*clusterv1alpha1.Cluster, error) {
	id, err := registration.ClusterID(ctx, member.Client)
	if err != nil {
		return nil, err
	}
	entry, err := p.entry(id)
	if err != nil {
		return nil, err
	}
	return registration.RegisterPull(ctx, member, controlPlane, entry)
}

// entry is what the flags say about the cluster.
func (p parts) entry(id string) (registration.Entry, error) {
	c := p.flags.Cluster
	e := registration.Entry{
		Identity:  registration.Identity{Name: c.Name, ID: id, Endpoint: c.APIEndpoint},
		Namespace: c.Namespace,
		ProxyURL:  c.ProxyAddress,
		Insecure:  p.memberConfig.Insecure,
		Provider:  c.Provider, Region: c.Region, Zones: c.Zones,
		Labels: c.Labels,
	}
	if e.Endpoint == "" {
		e.Endpoint = p.memberConfig.Host
	}
	if p.memberConfig.Proxy != nil {
		target, err := url.Parse(p.memberConfig.Host)
		if err != nil {
			return e, fmt.Errorf("the address of the agent's own cluster: %w", err)
		}
		proxy, err := p.memberConfig.Proxy(&http.Request{URL: target})
		if err != nil {
			return e, fmt.Errorf("find the proxy for the agent's own cluster: %w", err)
		}
		if proxy != nil {
			e.ProxyURL = proxy.String()
		}
	}
	return registration.PullEntry(e, c.ReportSecrets), nil
}
