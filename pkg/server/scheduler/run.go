// Package scheduler is the role karmada-scheduler: one controller-runtime
// manager that decides which clusters bindings go to.
//
// Flags are what was typed; New is the command. Run takes the same flags inside
// a process that somebody else has set up, and RunShared those of a process with
// a manager that others use as well: they share one cache. Setup adds the
// scheduler alone to a manager.
package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule"
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
		Name:  names.Scheduler,
		Short: "Run the scheduler of the control plane",
		Long:  "The karmada-scheduler decides which member clusters a resource goes to, and how many of its replicas each of them gets, as its policy says.",
		Sets:  sets,
		Run: func(ctx context.Context) error {
			c, err := f.complete(sets, Process{}, gate)
			if err != nil {
				return err
			}
			if err := f.Logs.Apply(gate); err != nil {
				return err
			}
			return c.Run(ctx)
		},
	}, streams), nil
}

// A Process is what a process that holds several roles brings along. The zero
// value leaves everything to the flags.
type Process struct {
	// RESTConfig reaches the control plane; --kubeconfig is not read then.
	RESTConfig *rest.Config
	// Registerer takes the metrics; controller-runtime's registry when it is
	// nil, which is the one that --metrics-bind-address serves.
	Registerer prometheus.Registerer
	// Ready is called once, when the scheduler is.
	Ready func()
}

// Run runs the role with the flags of its command until ctx is done and the
// manager has stopped. It neither handles signals nor sets up logging: flags
// for logging are accepted and have no effect.
func Run(ctx context.Context, args []string, p Process) error {
	c, err := Parse(args, p)
	if err != nil {
		return fmt.Errorf("%s: %w", names.Scheduler, err)
	}
	if err := c.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", names.Scheduler, err)
	}
	return nil
}

// Parse completes the flags of the command, as Run does, for those that hand a
// Completed to Setup.
func Parse(args []string, p Process) (Completed, error) {
	f := NewFlags()
	sets, gate, err := role.NewSets(f)
	if err != nil {
		return Completed{}, err
	}
	if err := role.Parse(names.Scheduler, sets, args); err != nil {
		return Completed{}, err
	}
	return f.complete(sets, p, gate)
}

// complete validates the flags and reads what they name. All that is wrong is
// in the one error.
func (f *Flags) complete(sets *cliflag.NamedFlagSets, p Process, gate featuregate.MutableFeatureGate) (Completed, error) {
	errs := f.Validate(gate)
	errs = append(errs, f.FeatureGates.ApplyValid(gate)...)
	errs = append(errs, f.Logs.Validate(gate)...) // may need gates that were just set
	config := p.RESTConfig
	if config == nil {
		var err error
		if config, err = f.restConfig(); err != nil {
			errs = append(errs, field.Invalid(flags.Path("kubeconfig"), f.Kubeconfig.File, err.Error()))
		}
	}
	if err := flags.Error(errs); err != nil {
		return Completed{}, err
	}
	registerer := p.Registerer
	if registerer == nil {
		registerer = crmetrics.Registry
	}
	return Completed{&completed{
		flags:      *f,
		config:     role.ClientConfig(config, names.Scheduler, f.API),
		gate:       gate,
		registerer: registerer,
		ready:      p.Ready,
		idle:       idleFlags(sets),
	}}, nil
}

// idleFlags returns the flags that were typed and that nothing reads yet.
func idleFlags(sets *cliflag.NamedFlagSets) []string {
	var idle []string
	without := unread()
	sets.FlagSet(flags.GenericSet).VisitAll(func(f *pflag.Flag) {
		if f.Changed && slices.Contains(without, f.Name) {
			idle = append(idle, "--"+f.Name)
		}
	})
	return idle
}

// Completed is a complete and valid choice of what to run; only Parse and the
// command make one.
type Completed struct {
	*completed
}

type completed struct {
	flags      Flags
	config     *rest.Config
	gate       featuregate.FeatureGate
	registerer prometheus.Registerer
	ready      func()
	idle       []string
}

// Needs returns the kinds that must be served before Setup.
func Needs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		clusterv1alpha1.GroupVersion.WithKind("Cluster"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
	}
}

// Setup registers the role's metrics and adds the scheduler to a manager, whose
// probes are for who made it.
func Setup(mgr manager.Manager, c Completed) error {
	log := mgr.GetLogger().WithName(names.Scheduler)
	c.flags.FeatureGates.Report(log)
	if len(c.idle) > 0 {
		log.Info("Flags without effect in this version", "flags", c.idle)
	}
	if err := metrics.RegisterBuild(c.registerer, version.Get()); err != nil {
		return err
	}
	o := schedule.Options{
		SchedulerName: c.flags.SchedulerName,
		Enabled:       c.flags.usesPlugin,
		KeepEmpty:     c.flags.EmptyWorkloads,
		ByPriority:    c.gate.Enabled(features.PriorityBasedScheduling),
		Models:        c.gate.Enabled(features.CustomizedClusterResourceModeling),
		Components:    c.gate.Enabled(features.MultiplePodTemplatesScheduling),
		Pending:       c.gate.Enabled(features.SchedulingOvercommitProtection),
		Groups:        c.gate.Enabled(features.WorkloadAffinity),
		Registerer:    c.registerer,
	}
	if !o.ByPriority {
		o.RateLimiter = flags.NewRateLimiter[reconcile.Request](c.flags.RateLimiter, false)
	}
	return schedule.Setup(role.WithEvents(mgr), o)
}

// Run makes a manager and runs it until ctx is done and everything in it has
// stopped. Losing the lease is an error.
func (c Completed) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName(names.Scheduler)
	log.Info("Starting", "version", version.Get().String())

	probes := &probes{}
	mgr, err := c.newManager(log, probes)
	if err != nil {
		return err
	}
	done, err := role.SetUpWhenServed(mgr, Needs(), func() error {
		defer probes.follow(mgr)
		return Setup(mgr, c)
	})
	if err != nil {
		return err
	}
	if c.ready != nil {
		if err := role.NotifyReady(mgr, c.flags.LeaderElection.Enabled, done, c.ready); err != nil {
			return err
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the scheduler: %w", role.Explain(err))
	}
	log.Info("Stopped")
	return nil
}

// newManager makes the manager of a scheduler that has one to itself. Where its
// metrics are served, probes are for p to answer.
func (c Completed) newManager(log klog.Logger, p *probes) (manager.Manager, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	f := &c.flags
	options := role.Manager{
		Scheme: scheme, LeaderElection: f.LeaderElection, Endpoints: f.Endpoints, Gate: c.gate, CacheSyncTimeout: cacheSyncTimeout,
	}.Options(log)
	one := f.oneServer()
	if one {
		options.HealthProbeBindAddress = disabled
		options.Metrics.ExtraHandlers = p.handlers()
	}
	mgr, err := manager.New(c.config, options)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", role.Explain(err))
	}
	if one {
		return mgr, nil
	}
	return mgr, role.AddProbes(mgr)
}
