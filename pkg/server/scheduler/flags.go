package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// Flags hold what was typed (spec: cli/components.md 2).
type Flags struct {
	Kubeconfig flags.Kubeconfig
	// Master is the address of the control plane, instead of the one that the
	// kubeconfig has.
	Master         string
	API            flags.Limits
	LeaderElection flags.LeaderElection
	Endpoints      flags.Endpoints
	FeatureGates   flags.FeatureGates
	RateLimiter    flags.RateLimiter
	Logs           *flags.Logs

	SchedulerName string
	// Plugins is the choice of plugins: "*", "foo" and "-foo".
	Plugins []string
	// EmptyWorkloads sends workloads to clusters where they get no replica.
	EmptyWorkloads bool
	Estimator      EstimatorFlags
}

// EstimatorFlags say how the estimators of member clusters are reached.
type EstimatorFlags struct {
	Enabled       bool
	DisableInPull bool
	Insecure      bool
	CAFile        string
	CertFile      string
	KeyFile       string
	Port          int
	Namespace     string
	Prefix        string
	Timeout       time.Duration
}

// NewFlags returns the defaults.
func NewFlags() *Flags {
	return &Flags{
		API:            flags.KubeAPILimits(),
		LeaderElection: flags.NewLeaderElection(names.Scheduler),
		Endpoints:      flags.NewEndpoints(":10351"),
		RateLimiter:    flags.NewRateLimiterFlags(),
		Logs:           flags.NewLogs(),
		SchedulerName:  names.DefaultScheduler,
		Plugins:        []string{everyPlugin},
		Estimator: EstimatorFlags{
			Port: 10352, Namespace: names.SystemNamespace, Prefix: names.SchedulerEstimator, Timeout: 3 * time.Second,
		},
	}
}

// AddFlags registers all flags, in their sets. The usage of --feature-gates
// lists what the gate knows.
func (f *Flags) AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate) {
	fs := sets.FlagSet(flags.GenericSet)
	f.Kubeconfig.AddFlags(fs)
	fs.StringVar(&f.Master, "master", f.Master, "The address of the control plane's API server. Overrides the one in --kubeconfig.")
	f.API.AddFlags(fs)
	f.LeaderElection.AddFlags(fs)
	f.LeaderElection.AddNameFlag(fs)
	f.Endpoints.AddFlags(fs)
	f.FeatureGates.AddFlags(fs, gate)
	f.RateLimiter.AddFlags(fs)
	fs.StringVar(&f.SchedulerName, "scheduler-name", f.SchedulerName, "The name of this scheduler. It schedules the bindings that ask for it by spec.schedulerName, and, as "+names.DefaultScheduler+", those that ask for none.")
	fs.StringSliceVar(&f.Plugins, "plugins", f.Plugins, "A list of plugins to use. '*' enables all plugins, 'foo' enables the plugin named 'foo', '-foo' disables it. All plugins: "+strings.Join(schedule.Plugins(), ", ")+".")
	fs.BoolVar(&f.EmptyWorkloads, "enable-empty-workload-propagation", f.EmptyWorkloads, "Propagate a workload also to those of its clusters that get none of its replicas.")
	f.Estimator.addFlags(fs)
	f.Logs.AddFlags(sets.FlagSet(flags.LogsSet))
}

func (e *EstimatorFlags) addFlags(fs *pflag.FlagSet) {
	const prefix = "scheduler-estimator-"
	fs.BoolVar(&e.Enabled, "enable-scheduler-estimator", e.Enabled, "Ask the estimators of member clusters how many replicas they have room for.")
	fs.BoolVar(&e.DisableInPull, "disable-scheduler-estimator-in-pull-mode", e.DisableInPull, "Do not ask the estimators of pull mode clusters. Only with --enable-scheduler-estimator.")
	fs.BoolVar(&e.Insecure, "insecure-skip-estimator-verify", e.Insecure, "Do not verify the certificates of estimators.")
	fs.StringVar(&e.CAFile, prefix+"ca-file", e.CAFile, "The file of the authority that has signed the certificates of estimators.")
	fs.StringVar(&e.CertFile, prefix+"cert-file", e.CertFile, "The file of the certificate to show to estimators.")
	fs.StringVar(&e.KeyFile, prefix+"key-file", e.KeyFile, "The file of the key of --"+prefix+"cert-file.")
	fs.IntVar(&e.Port, prefix+"port", e.Port, "The port of estimators.")
	fs.StringVar(&e.Namespace, prefix+"service-namespace", e.Namespace, "The namespace of the Services of estimators.")
	fs.StringVar(&e.Prefix, prefix+"service-prefix", e.Prefix, "What the names of the Services of estimators begin with; a dash and the name of the cluster follow.")
	fs.DurationVar(&e.Timeout, prefix+"timeout", e.Timeout, "How long to wait for the estimators.")
}

// unread lists the flags that nothing in this version reads: they say how
// estimators are reached, and --enable-scheduler-estimator, which would make that
// matter, is refused. Whoever makes a part that reads one takes it off.
func unread() []string {
	return []string{
		"disable-scheduler-estimator-in-pull-mode", "insecure-skip-estimator-verify",
		"scheduler-estimator-ca-file", "scheduler-estimator-cert-file", "scheduler-estimator-key-file", "scheduler-estimator-port",
		"scheduler-estimator-service-namespace", "scheduler-estimator-service-prefix", "scheduler-estimator-timeout",
	}
}

// Validate reports everything that is wrong with the flags, but for those of
// logging.
func (f *Flags) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	endpoints := f.Endpoints
	if f.oneServer() {
		endpoints.Metrics = "" // is no collision
	}
	errs := slices.Concat(f.API.Validate(), f.LeaderElection.Validate(), endpoints.Validate(), f.FeatureGates.Validate(gate),
		f.RateLimiter.Validate(), f.validatePlugins(), f.Estimator.validate())
	if f.SchedulerName == "" {
		errs = append(errs, field.Required(flags.Path("scheduler-name"), "bindings ask for a scheduler by its name"))
	}
	return errs
}

// oneServer reports whether probes and metrics have the same address; one server
// answers for both then (spec: cli/components.md 0).
func (f *Flags) oneServer() bool {
	return f.Endpoints.HealthAddress() == f.Endpoints.MetricsAddress() && f.Endpoints.HealthAddress() != disabled
}

// disabled is the address of a server that does not listen.
const disabled = "0"

// everyPlugin stands for all plugins.
const everyPlugin = "*"

func (f *Flags) validatePlugins() field.ErrorList {
	var errs field.ErrorList
	known := schedule.Plugins()
	for _, entry := range f.Plugins {
		if entry != everyPlugin && !slices.Contains(known, strings.TrimPrefix(entry, "-")) {
			errs = append(errs, field.NotSupported(flags.Path("plugins"), entry, append([]string{everyPlugin}, known...)))
		}
	}
	return errs
}

// usesPlugin says whether a plugin is used. The first entry that names it
// decides; else "*" does.
func (f *Flags) usesPlugin(name string) bool {
	for _, entry := range f.Plugins {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return slices.Contains(f.Plugins, everyPlugin)
}

func (e *EstimatorFlags) validate() field.ErrorList {
	var errs field.ErrorList
	if e.Enabled {
		errs = append(errs, field.Forbidden(flags.Path("enable-scheduler-estimator"),
			"this version cannot ask the estimators of clusters; leave it out, and clusters' own summaries are what counts"))
	}
	if e.Port < 1 || e.Port > 65535 {
		errs = append(errs, field.Invalid(flags.Path("scheduler-estimator-port"), e.Port, "must be from 1 to 65535"))
	}
	if e.Timeout <= 0 {
		errs = append(errs, field.Invalid(flags.Path("scheduler-estimator-timeout"), e.Timeout.String(), "must be longer than zero"))
	}
	if (e.CertFile == "") != (e.KeyFile == "") {
		errs = append(errs, field.Required(flags.Path("scheduler-estimator-key-file"), "a certificate and its key are given together"))
	}
	return errs
}

// restConfig returns how to reach the control plane.
func (f *Flags) restConfig() (*rest.Config, error) {
	if f.Master == "" {
		return f.Kubeconfig.RESTConfig()
	}
	config, err := clientcmd.BuildConfigFromFlags(f.Master, f.Kubeconfig.File)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}
