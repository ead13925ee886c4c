package controllermanager

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// clusterFailoverSet is the flag set of its own that this role has.
const clusterFailoverSet = "cluster failover"

// Values of --no-execute-taint-eviction-purge-mode.
const (
	purgeGracefully = "Gracefully"
	purgeDirectly   = "Directly"
)

// Flags hold what was typed (spec: cli/components.md 1).
type Flags struct {
	flags.Manager
	Kubeconfig flags.Kubeconfig
	Skipped    flags.Skipped
	Logs       *flags.Logs

	// ClusterAPIKubeconfig and ClusterAPIContext find clusters that Cluster API
	// manages.
	ClusterAPIKubeconfig string
	ClusterAPIContext    string

	ResyncPeriod            time.Duration
	ClusterCacheSyncTimeout time.Duration
	Concurrency             Concurrency
	Cluster                 ClusterFlags
	Autoscaler              AutoscalerFlags
	Failover                FailoverFlags

	// AgentRBACGenerator serves clients that make their agent's rights themselves.
	AgentRBACGenerator bool

	FederatedResourceQuotaSyncPeriod time.Duration
	GracefulEvictionTimeout          time.Duration

	table []controller
}

// Concurrency is how many objects of each sort are worked on at once.
type Concurrency struct {
	Work                     int
	ResourceBinding          int
	ClusterResourceBinding   int
	Cluster                  int
	Namespace                int
	PropagationPolicy        int
	ClusterPropagationPolicy int
	ResourceTemplate         int
	DependentResource        int
}

// ClusterFlags say when a member cluster counts as ready.
type ClusterFlags struct {
	StatusUpdateFrequency time.Duration
	SuccessThreshold      time.Duration
	FailureThreshold      time.Duration
	MonitorPeriod         time.Duration
	MonitorGracePeriod    time.Duration
	StartupGracePeriod    time.Duration
	ResourceModeling      bool
}

// AutoscalerFlags are those of the FederatedHPA.
type AutoscalerFlags struct {
	SyncPeriod              time.Duration
	UpscaleDelay            time.Duration
	DownscaleDelay          time.Duration
	DownscaleStabilization  time.Duration
	CPUInitializationPeriod time.Duration
	InitialReadinessDelay   time.Duration
	Tolerance               float64
}

// FailoverFlags say how workloads leave a tainted cluster.
type FailoverFlags struct {
	TaintManager      bool
	NoExecuteEviction bool
	PurgeMode         string
	EvictionRate      float32 // clusters per second
}

// NewFlags returns the defaults.
func NewFlags() *Flags {
	return newFlags(controllers())
}

func newFlags(table []controller) *Flags {
	return &Flags{
		Manager: flags.NewManager(names.ControllerManager, ":10357", role.ControllersFlag(table)),
		Skipped: flags.NewSkipped(),
		Logs:    flags.NewLogs(),

		ClusterCacheSyncTimeout: 2 * time.Minute,
		Concurrency: Concurrency{
			Work: 5, ResourceBinding: 5, ClusterResourceBinding: 5, Cluster: 5, Namespace: 1,
			PropagationPolicy: 1, ClusterPropagationPolicy: 1, ResourceTemplate: 5, DependentResource: 2,
		},
		Cluster: ClusterFlags{
			StatusUpdateFrequency: 10 * time.Second,
			SuccessThreshold:      30 * time.Second,
			FailureThreshold:      30 * time.Second,
			MonitorPeriod:         5 * time.Second,
			MonitorGracePeriod:    40 * time.Second,
			StartupGracePeriod:    time.Minute,
			ResourceModeling:      true,
		},
		Autoscaler: AutoscalerFlags{
			SyncPeriod:              15 * time.Second,
			UpscaleDelay:            3 * time.Minute,
			DownscaleDelay:          5 * time.Minute,
			DownscaleStabilization:  5 * time.Minute,
			CPUInitializationPeriod: 5 * time.Minute,
			InitialReadinessDelay:   30 * time.Second,
			Tolerance:               0.1,
		},
		Failover: FailoverFlags{
			TaintManager: true,
			PurgeMode:    purgeGracefully,
			EvictionRate: 0.5,
		},
		FederatedResourceQuotaSyncPeriod: 5 * time.Minute,
		GracefulEvictionTimeout:          10 * time.Minute,

		table: table,
	}
}

// AddFlags registers all flags, in their sets. The usage of --feature-gates
// lists what the gate knows.
func (f *Flags) AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate) {
	generic := sets.FlagSet(flags.GenericSet)
	f.Kubeconfig.AddFlags(generic)
	f.Manager.AddFlags(generic, gate)
	f.Skipped.AddFlags(generic)
	f.addClusterFlags(generic)
	f.addConcurrencyFlags(generic)
	f.addAutoscalerFlags(generic)
	f.addFailoverFlags(generic, sets.FlagSet(clusterFailoverSet))
	generic.BoolVar(&f.AgentRBACGenerator, "enable-agent-rbac-generator", f.AgentRBACGenerator, "Give the holder of a classic bootstrap token a certificate with which it may do everything, so that register of an earlier version can make the rights of its agent. Without it this controller manager makes them, and register needs no such certificate.")
	generic.DurationVar(&f.ResyncPeriod, "resync-period", f.ResyncPeriod, "How often all objects are reconciled although nothing has changed. 0 means never.")
	generic.DurationVar(&f.FederatedResourceQuotaSyncPeriod, "federated-resource-quota-sync-period", f.FederatedResourceQuotaSyncPeriod, "How often the usage of FederatedResourceQuotas is counted anew.")
	f.Logs.AddFlags(sets.FlagSet(flags.LogsSet))
}

func (f *Flags) addClusterFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.ClusterAPIKubeconfig, "cluster-api-kubeconfig", f.ClusterAPIKubeconfig, "Path to a kubeconfig file for the management cluster of Cluster API, whose clusters are then joined by themselves.")
	fs.StringVar(&f.ClusterAPIContext, "cluster-api-context", f.ClusterAPIContext, "The context to use in the file of --cluster-api-kubeconfig.")
	fs.DurationVar(&f.ClusterCacheSyncTimeout, "cluster-cache-sync-timeout", f.ClusterCacheSyncTimeout, "How long to wait for caches to sync, of the control plane and of each member cluster.")
	c := &f.Cluster
	fs.DurationVar(&c.StatusUpdateFrequency, "cluster-status-update-frequency", c.StatusUpdateFrequency, "How often the status of a member cluster is collected.")
	fs.DurationVar(&c.SuccessThreshold, "cluster-success-threshold", c.SuccessThreshold, "How long a member cluster must answer well before it counts as ready again.")
	fs.DurationVar(&c.FailureThreshold, "cluster-failure-threshold", c.FailureThreshold, "How long a member cluster must answer badly before it counts as not ready.")
	fs.DurationVar(&c.MonitorPeriod, "cluster-monitor-period", c.MonitorPeriod, "How often the leases of pull mode clusters are looked at.")
	fs.DurationVar(&c.MonitorGracePeriod, "cluster-monitor-grace-period", c.MonitorGracePeriod, "How long a pull mode cluster may be silent before its condition is unknown.")
	fs.DurationVar(&c.StartupGracePeriod, "cluster-startup-grace-period", c.StartupGracePeriod, "How long a new pull mode cluster may be silent before its condition is unknown.")
	fs.BoolVar(&c.ResourceModeling, "enable-cluster-resource-modeling", c.ResourceModeling, "Sum up the resources of member clusters from their nodes and pods. Without it, scheduling by free resources needs estimators.")
}

func (f *Flags) addConcurrencyFlags(fs *pflag.FlagSet) {
	for _, c := range f.concurrencies() {
		fs.IntVar(c.value, c.flag, *c.value, "How many "+c.what+" are worked on at once. More is quicker, and takes more CPU and network.")
	}
}

type concurrency struct {
	flag  string
	value *int
	what  string
}

func (f *Flags) concurrencies() []concurrency {
	c := &f.Concurrency
	return []concurrency{
		{"concurrent-work-syncs", &c.Work, "Works"},
		{"concurrent-resourcebinding-syncs", &c.ResourceBinding, "ResourceBindings"},
		{"concurrent-clusterresourcebinding-syncs", &c.ClusterResourceBinding, "ClusterResourceBindings"},
		{"concurrent-cluster-syncs", &c.Cluster, "Clusters"},
		{"concurrent-namespace-syncs", &c.Namespace, "Namespaces"},
		{"concurrent-propagation-policy-syncs", &c.PropagationPolicy, "PropagationPolicies"},
		{"concurrent-cluster-propagation-policy-syncs", &c.ClusterPropagationPolicy, "ClusterPropagationPolicies"},
		{"concurrent-resource-template-syncs", &c.ResourceTemplate, "resource templates"},
		{"concurrent-dependent-resource-syncs", &c.DependentResource, "dependent resources"},
	}
}

func (f *Flags) addAutoscalerFlags(fs *pflag.FlagSet) {
	const prefix = "horizontal-pod-autoscaler-"
	a := &f.Autoscaler
	fs.DurationVar(&a.SyncPeriod, prefix+"sync-period", a.SyncPeriod, "How often the number of replicas of each FederatedHPA is looked at.")
	fs.DurationVar(&a.UpscaleDelay, prefix+"upscale-delay", a.UpscaleDelay, "How long to wait after scaling up before scaling up again.")
	fs.DurationVar(&a.DownscaleDelay, prefix+"downscale-delay", a.DownscaleDelay, "How long to wait after scaling down before scaling down again.")
	fs.DurationVar(&a.DownscaleStabilization, prefix+"downscale-stabilization", a.DownscaleStabilization, "How far to look back for the highest recommendation, below which nothing is scaled down.")
	fs.DurationVar(&a.CPUInitializationPeriod, prefix+"cpu-initialization-period", a.CPUInitializationPeriod, "How long after the start of a pod its CPU samples may be left out.")
	fs.DurationVar(&a.InitialReadinessDelay, prefix+"initial-readiness-delay", a.InitialReadinessDelay, "How long after the start of a pod changes of its readiness count as its first readiness.")
	fs.Float64Var(&a.Tolerance, prefix+"tolerance", a.Tolerance, "How far, from 1.0, the ratio of wanted to actual metrics may be before anything is scaled.")
}

func (f *Flags) addFailoverFlags(generic, failover *pflag.FlagSet) {
	generic.BoolVar(&f.Failover.TaintManager, "enable-taint-manager", f.Failover.TaintManager, "Run the taint manager, which evicts from clusters with NoExecute taints. Needs the feature gate Failover.")
	generic.DurationVar(&f.GracefulEvictionTimeout, "graceful-eviction-timeout", f.GracefulEvictionTimeout, "How long a workload stays where it is evicted from when its replacement does not become healthy.")
	failover.BoolVar(&f.Failover.NoExecuteEviction, "enable-no-execute-taint-eviction", f.Failover.NoExecuteEviction, "Evict from a cluster when it gets a NoExecute taint.")
	failover.StringVar(&f.Failover.PurgeMode, "no-execute-taint-eviction-purge-mode", f.Failover.PurgeMode, "What becomes of workloads that are evicted: Gracefully waits for the replacement, Directly removes them first.")
	failover.Float32Var(&f.Failover.EvictionRate, "resource-eviction-rate", f.Failover.EvictionRate, "How many resources are evicted per second.")
}

// unread lists the flags that nothing in this version reads; whoever makes a
// part that reads one takes it off.
func unread() []string {
	return []string{"cluster-api-context", "cluster-api-kubeconfig",
		"enable-taint-manager", "federated-resource-quota-sync-period",
		"graceful-eviction-timeout", "horizontal-pod-autoscaler-cpu-initialization-period",
		"horizontal-pod-autoscaler-downscale-delay", "horizontal-pod-autoscaler-downscale-stabilization",
		"horizontal-pod-autoscaler-initial-readiness-delay", "horizontal-pod-autoscaler-sync-period",
		"horizontal-pod-autoscaler-tolerance", "horizontal-pod-autoscaler-upscale-delay",
		"enable-no-execute-taint-eviction", "no-execute-taint-eviction-purge-mode", "resource-eviction-rate",
	}
}

// Validate reports everything that is wrong with the flags.
func (f *Flags) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	errs := f.Manager.Validate(gate)
	for _, part := range []field.ErrorList{
		f.Skipped.Validate(), f.validateDurations(), f.validateConcurrency(), f.validateFailover(), f.validateCluster(),
	} {
		errs = append(errs, part...)
	}
	return errs
}

func (f *Flags) validateDurations() field.ErrorList {
	var errs field.ErrorList
	check := func(flag string, d, least time.Duration, must string) {
		if d < least {
			errs = append(errs, field.Invalid(flags.Path(flag), d.String(), must))
		}
	}
	positive := func(flag string, d time.Duration) { check(flag, d, 1, "must be longer than zero") }
	notNegative := func(flag string, d time.Duration) { check(flag, d, 0, "must not be negative") }

	notNegative("resync-period", f.ResyncPeriod)
	positive("cluster-cache-sync-timeout", f.ClusterCacheSyncTimeout)
	positive("cluster-status-update-frequency", f.Cluster.StatusUpdateFrequency)
	notNegative("cluster-success-threshold", f.Cluster.SuccessThreshold)
	notNegative("cluster-failure-threshold", f.Cluster.FailureThreshold)
	positive("cluster-monitor-period", f.Cluster.MonitorPeriod)
	positive("cluster-monitor-grace-period", f.Cluster.MonitorGracePeriod)
	positive("cluster-startup-grace-period", f.Cluster.StartupGracePeriod)
	positive("federated-resource-quota-sync-period", f.FederatedResourceQuotaSyncPeriod)
	notNegative("graceful-eviction-timeout", f.GracefulEvictionTimeout)
	positive("horizontal-pod-autoscaler-sync-period", f.Autoscaler.SyncPeriod)
	notNegative("horizontal-pod-autoscaler-upscale-delay", f.Autoscaler.UpscaleDelay)
	notNegative("horizontal-pod-autoscaler-downscale-delay", f.Autoscaler.DownscaleDelay)
	notNegative("horizontal-pod-autoscaler-downscale-stabilization", f.Autoscaler.DownscaleStabilization)
	notNegative("horizontal-pod-autoscaler-cpu-initialization-period", f.Autoscaler.CPUInitializationPeriod)
	notNegative("horizontal-pod-autoscaler-initial-readiness-delay", f.Autoscaler.InitialReadinessDelay)
	if f.Autoscaler.Tolerance < 0 {
		errs = append(errs, field.Invalid(flags.Path("horizontal-pod-autoscaler-tolerance"), f.Autoscaler.Tolerance, "must not be negative"))
	}
	return errs
}

func (f *Flags) validateConcurrency() field.ErrorList {
	var errs field.ErrorList
	for _, c := range f.concurrencies() {
		if *c.value < 1 {
			errs = append(errs, field.Invalid(flags.Path(c.flag), *c.value, "must be at least 1"))
		}
	}
	return errs
}

func (f *Flags) validateFailover() field.ErrorList {
	var errs field.ErrorList
	if m := f.Failover.PurgeMode; m != purgeGracefully && m != purgeDirectly {
		errs = append(errs, field.NotSupported(flags.Path("no-execute-taint-eviction-purge-mode"), m, []string{purgeGracefully, purgeDirectly}))
	}
	if r := f.Failover.EvictionRate; !(r >= 0) { // not a number is wrong, too
		errs = append(errs, field.Invalid(flags.Path("resource-eviction-rate"), fmt.Sprint(r), "must not be negative"))
	}
	return errs
}

func (f *Flags) validateCluster() field.ErrorList {
	if f.ClusterAPIContext != "" && f.ClusterAPIKubeconfig == "" {
		return field.ErrorList{field.Required(flags.Path("cluster-api-kubeconfig"), "--cluster-api-context chooses a context of it")}
	}
	return nil
}
