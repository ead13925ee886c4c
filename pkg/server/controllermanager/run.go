package controllermanager

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmadactl/karmadactl/pkg/apis"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/names"
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
		Name:  names.ControllerManager,
		Short: "Run the controllers of the control plane",
		Long:  "The karmada-controller-manager runs the controllers of the control plane: they watch member clusters, policies and the resources of users, and make each member cluster hold what it should.",
		Sets:  sets,
		Run: func(ctx context.Context) error {
			c, err := f.complete(sets, Process{Gate: gate}, true)
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
	// Gate is the process's own, already set; --feature-gates is refused then.
	Gate featuregate.MutableVersionedFeatureGate
	// Registerer takes the metrics; controller-runtime's registry when it is
	// nil, which is the one that --metrics-bind-address serves.
	Registerer prometheus.Registerer
	// Ready is called once, when the manager is.
	Ready func()
	// Share is called once, when the controllers have been set up: other roles of
	// the process may set up theirs on the same manager, and share its cache. It
	// runs already, and ends with this role.
	Share func(manager.Manager)
}

// Run runs the role with the flags of its command until ctx is done and the
// manager has stopped. It neither handles signals nor sets up logging: flags
// for logging are accepted and have no effect. Feature gates of the process
// are left alone.
func Run(ctx context.Context, args []string, p Process) error {
	c, err := Parse(args, p)
	if err != nil {
		return fmt.Errorf("%s: %w", names.ControllerManager, err)
	}
	if err := c.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", names.ControllerManager, err)
	}
	return nil
}

// Parse completes the flags of the command, as Run does, for those that hand a
// Completed to Setup.
func Parse(args []string, p Process) (Completed, error) {
	return parse(controllers(), args, p)
}

func parse(table []controller, args []string, p Process) (Completed, error) {
	shared := p.Gate != nil
	if !shared {
		gate, err := features.New()
		if err != nil {
			return Completed{}, err
		}
		p.Gate = gate
	}
	f, sets := newFlags(table), flags.NewSets()
	f.AddFlags(sets, p.Gate)
	if err := role.Parse(names.ControllerManager, sets, args); err != nil {
		return Completed{}, err
	}
	return f.complete(sets, p, !shared)
}

// complete validates the flags and reads what they name. All that is wrong is
// in the one error. setGate says whether the gate is this role's to set.
func (f *Flags) complete(sets *cliflag.NamedFlagSets, p Process, setGate bool) (Completed, error) {
	errs := f.Validate(p.Gate)
	if !setGate && len(f.FeatureGates.Set) > 0 {
		errs = append(errs, field.Forbidden(flags.Path("feature-gates"), "the gates of this process are set already"))
	}
	if setGate {
		errs = append(errs, f.FeatureGates.ApplyValid(p.Gate)...)
	}
	errs = append(errs, f.Logs.Validate(p.Gate)...) // may need gates that were just set
	config := p.RESTConfig
	if config == nil {
		var err error
		if config, err = f.Kubeconfig.RESTConfig(); err != nil {
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
		config:     role.ClientConfig(config, names.ControllerManager, f.API),
		gate:       p.Gate,
		registerer: registerer,
		ready:      p.Ready,
		share:      p.Share,
		plan:       role.NewPlan(f.table, f.Controllers.Enabled, p.Gate, role.Missing),
		idle:       idleFlags(sets),
	}}, nil
}

// idleFlags returns the flags that were typed and that nothing reads yet.
func idleFlags(sets *cliflag.NamedFlagSets) []string {
	var idle []string
	without := unread()
	for _, name := range sets.Order {
		// Parsing marks flags as changed in the set that was parsed; the flags
		// themselves are shared with it.
		sets.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			if f.Changed && slices.Contains(without, f.Name) {
				idle = append(idle, "--"+f.Name)
			}
		})
	}
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
	gate       featuregate.MutableVersionedFeatureGate
	registerer prometheus.Registerer
	ready      func()
	share      func(manager.Manager)
	plan       role.Plan[*setting]
	idle       []string
}

// RESTConfig returns how to reach the control plane, with limits and user agent
// set.
func (c Completed) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// ManagerOptions returns the options of a manager for the role, for those that
// make one to share it.
func (c Completed) ManagerOptions(log klog.Logger) (manager.Options, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return manager.Options{}, err
	}
	f := &c.flags
	options := role.Manager{
		Scheme:           scheme,
		LeaderElection:   f.LeaderElection,
		Endpoints:        f.Endpoints,
		Gate:             c.gate,
		ResyncPeriod:     f.ResyncPeriod,
		CacheSyncTimeout: f.ClusterCacheSyncTimeout,
		Concurrency: map[string]int{
			"Work.work.karmada.io":                   f.Concurrency.Work,
			"ResourceBinding.work.karmada.io":        f.Concurrency.ResourceBinding,
			"ClusterResourceBinding.work.karmada.io": f.Concurrency.ClusterResourceBinding,
			"Cluster.cluster.karmada.io":             f.Concurrency.Cluster,
			"Namespace":                              f.Concurrency.Namespace,
		},
	}.Options(log)
	// Secrets of users are nobody's business here.
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{names.ClusterNamespace: {}}},
	}
	return options, nil
}

// Setup registers the role's metrics and adds its controllers to a manager. The
// manager's probes are for who made it.
func Setup(mgr manager.Manager, c Completed) error {
	log := mgr.GetLogger()
	c.flags.FeatureGates.Report(log)
	if len(c.idle) > 0 {
		log.Info("Flags without effect in this version", "flags", c.idle)
	}
	if started := c.plan.Started(); len(started) > 0 {
		log.Info("Starting controllers", "controllers", started)
	}
	c.plan.ReportIdle(log)
	shared, err := newSetting(mgr, c)
	if err != nil {
		return err
	}
	return c.plan.SetUp(role.WithEvents(mgr), shared)
}

// Run makes a manager and runs it until ctx is done and everything in it has
// stopped. Losing the lease is an error.
func (c Completed) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName(names.ControllerManager)
	log.Info("Starting", "version", version.Get().String())

	options, err := c.ManagerOptions(log)
	if err != nil {
		return err
	}
	mgr, err := manager.New(c.config, options)
	if err != nil {
		return fmt.Errorf("create the controller manager: %w", role.Explain(err))
	}
	if err := role.AddProbes(mgr); err != nil {
		return err
	}
	done, err := role.SetUpWhenServed(mgr, c.plan.Needs(), func() error {
		if err := Setup(mgr, c); err != nil {
			return err
		}
		if c.share != nil {
			c.share(mgr)
		}
		return nil
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
		return fmt.Errorf("run the controller manager: %w", role.Explain(err))
	}
	log.Info("Stopped")
	return nil
}
