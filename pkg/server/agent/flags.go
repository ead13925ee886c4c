package agent

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/controllers/certrotation"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// Flags hold what was typed (spec: cli/components.md 5).
type Flags struct {
	// Member is how the agent's own cluster is reached.
	Member flags.Kubeconfig
	// ControlPlane and ControlPlaneContext are how the control plane is.
	ControlPlane        string
	ControlPlaneContext string

	flags.Manager
	Logs *flags.Logs

	Cluster      ClusterFlags
	Status       StatusFlags
	CertRotation CertRotationFlags

	ConcurrentWorkSyncs     int
	ConcurrentClusterSyncs  int
	ClusterCacheSyncTimeout time.Duration
	ResyncPeriod            time.Duration

	table []controller
}

// ClusterFlags say what the cluster is entered as at the control plane.
type ClusterFlags struct {
	Name          string
	Namespace     string
	APIEndpoint   string
	ProxyAddress  string
	Provider      string
	Region        string
	Zones         []string
	Labels        map[string]string
	ReportSecrets []string
}

// StatusFlags say when the cluster counts as ready, and how it shows that it
// lives.
type StatusFlags struct {
	UpdateFrequency  time.Duration
	SuccessThreshold time.Duration
	FailureThreshold time.Duration
	ResourceModeling bool
	LeaseDuration    time.Duration
	// LeaseRenewFraction is the part of the duration after which the lease is renewed.
	LeaseRenewFraction float64
}

// CertRotationFlags say when the agent's certificate is renewed.
type CertRotationFlags struct {
	Interval time.Duration
	// Threshold is the part of its life that is left then.
	Threshold float64
	// SecretNamespace is where, in the cluster, the agent's kubeconfig is in a Secret.
	SecretNamespace string
}

// NewFlags returns the defaults.
func NewFlags() *Flags { return newFlags(controllers()) }

func newFlags(table []controller) *Flags {
	return &Flags{
		Manager: flags.NewManager("", ":10357", role.ControllersFlag(table)), // the lease has the cluster's name in it
		Logs:    flags.NewLogs(),
		Cluster: ClusterFlags{Namespace: names.ClusterNamespace, ReportSecrets: []string{registration.ReportCredentials, registration.ReportImpersonator}},
		Status: StatusFlags{
			UpdateFrequency: 10 * time.Second, SuccessThreshold: 30 * time.Second, FailureThreshold: 30 * time.Second,
			ResourceModeling: true, LeaseDuration: 40 * time.Second, LeaseRenewFraction: 0.25,
		},
		CertRotation: CertRotationFlags{
			Interval: certrotation.DefaultInterval, Threshold: certrotation.DefaultThreshold, SecretNamespace: names.SystemNamespace,
		},
		ConcurrentWorkSyncs:     5,
		ConcurrentClusterSyncs:  5,
		ClusterCacheSyncTimeout: 2 * time.Minute,
		table:                   table,
	}
}

// AddFlags registers all flags, in their sets. The usage of --feature-gates lists
// what the gate knows.
func (f *Flags) AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate) {
	generic := sets.FlagSet(flags.GenericSet)
	generic.StringVar(&f.Member.File, "kubeconfig", f.Member.File, "Path to a kubeconfig file for the agent's own cluster. When it is not given, the service account of the pod is used.")
	generic.StringVar(&f.ControlPlane, "karmada-kubeconfig", f.ControlPlane, "Path to a kubeconfig file for the control plane. Files that the kubeconfig names are read again when they change; data embedded in it is not.")
	generic.StringVar(&f.ControlPlaneContext, "karmada-context", f.ControlPlaneContext, "The context to use in the file of --karmada-kubeconfig.")
	f.Manager.AddFlags(generic, gate)
	f.addClusterFlags(generic)
	f.addStatusFlags(generic)
	c := &f.CertRotation
	generic.DurationVar(&c.Interval, "cert-rotation-checking-interval", c.Interval, "How often the agent's certificate is looked at, with controller certRotation.")
	generic.Float64Var(&c.Threshold, "cert-rotation-remaining-time-threshold", c.Threshold, "The part of its life, from 0 to 1, that the agent's certificate has left when it is renewed, with controller certRotation.")
	generic.StringVar(&c.SecretNamespace, "karmada-kubeconfig-namespace", c.SecretNamespace, "The namespace in the agent's own cluster of Secret karmada-kubeconfig, whose certificate is renewed when --karmada-kubeconfig has the certificate embedded.")
	generic.IntVar(&f.ConcurrentWorkSyncs, "concurrent-work-syncs", f.ConcurrentWorkSyncs, "How many Works are worked on at once. More is quicker, and takes more CPU and network.")
	generic.IntVar(&f.ConcurrentClusterSyncs, "concurrent-cluster-syncs", f.ConcurrentClusterSyncs, "How many Clusters are worked on at once. An agent has one.")
	generic.DurationVar(&f.ClusterCacheSyncTimeout, "cluster-cache-sync-timeout", f.ClusterCacheSyncTimeout, "How long to wait for caches to sync, of the control plane and of the cluster.")
	generic.DurationVar(&f.ResyncPeriod, "resync-period", f.ResyncPeriod, "How often all objects are reconciled although nothing has changed. 0 means never.")
	f.Logs.AddFlags(sets.FlagSet(flags.LogsSet))
}

func (f *Flags) addClusterFlags(fs *pflag.FlagSet) {
	c := &f.Cluster
	fs.StringVar(&c.Name, "cluster-name", c.Name, "The name that the cluster has at the control plane.")
	fs.StringVar(&c.Namespace, "cluster-namespace", c.Namespace, "The namespace, on both sides, of the credentials of the cluster.")
	fs.StringVar(&c.APIEndpoint, "cluster-api-endpoint", c.APIEndpoint, "The URL of the cluster's API server, as the control plane is told it. When it is not given, the address that the agent itself uses.")
	fs.StringVar(&c.ProxyAddress, "proxy-server-address", c.ProxyAddress, "The URL of a proxy by which the control plane reaches the cluster. That of the cluster's kubeconfig wins.")
	fs.StringVar(&c.Provider, "cluster-provider", c.Provider, "The provider of the cluster.")
	fs.StringVar(&c.Region, "cluster-region", c.Region, "The region of the cluster.")
	fs.StringSliceVar(&c.Zones, "cluster-zones", c.Zones, "The zones of the cluster.")
	fs.StringToStringVar(&c.Labels, "cluster-labels", c.Labels, "Labels that the Cluster gets when it is made. Later they are its administrator's.")
	fs.StringSliceVar(&c.ReportSecrets, "report-secrets", c.ReportSecrets, fmt.Sprintf("The credentials of the cluster that the control plane is given: %s to reach it, %s to proxy users' requests to it; %s is none of them.",
		registration.ReportCredentials, registration.ReportImpersonator, registration.ReportNone))
}

func (f *Flags) addStatusFlags(fs *pflag.FlagSet) {
	s := &f.Status
	fs.DurationVar(&s.UpdateFrequency, "cluster-status-update-frequency", s.UpdateFrequency, "How often the status of the cluster is collected.")
	fs.DurationVar(&s.SuccessThreshold, "cluster-success-threshold", s.SuccessThreshold, "How long the cluster must answer well before it counts as ready again.")
	fs.DurationVar(&s.FailureThreshold, "cluster-failure-threshold", s.FailureThreshold, "How long the cluster must answer badly before it counts as not ready.")
	fs.BoolVar(&s.ResourceModeling, "enable-cluster-resource-modeling", s.ResourceModeling, "Sum up the resources of the cluster from its nodes and pods. Without it, scheduling by free resources needs estimators.")
	fs.DurationVar(&s.LeaseDuration, "cluster-lease-duration", s.LeaseDuration, "How long the lease is by which the control plane sees that the agent lives.")
	fs.Float64Var(&s.LeaseRenewFraction, "cluster-lease-renew-interval-fraction", s.LeaseRenewFraction, "The part of the lease's duration, between 0 and 1, after which it is renewed.")
}

// Validate reports everything that is wrong with the flags.
func (f *Flags) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	common := f.Manager
	common.LeaderElection.Name = names.Agent // the flags are looked at here; the name is the cluster's
	errs := common.Validate(gate)
	errs = append(errs, f.validateCluster()...)
	errs = append(errs, f.validateTimes()...)
	for flag, n := range map[string]int{"concurrent-work-syncs": f.ConcurrentWorkSyncs, "concurrent-cluster-syncs": f.ConcurrentClusterSyncs} {
		if n < 1 {
			errs = append(errs, field.Invalid(flags.Path(flag), n, "must be at least 1"))
		}
	}
	return errs
}

func (f *Flags) validateCluster() field.ErrorList {
	var errs field.ErrorList
	c := &f.Cluster
	if c.Name == "" {
		errs = append(errs, field.Required(flags.Path("cluster-name"), "the name that the cluster has at the control plane"))
	} else if err := registration.ValidateAgentCluster(c.Name); err != nil {
		errs = append(errs, field.Invalid(flags.Path("cluster-name"), c.Name, err.Error()))
	}
	for flag, namespace := range map[string]string{"cluster-namespace": c.Namespace, "karmada-kubeconfig-namespace": f.CertRotation.SecretNamespace} {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			errs = append(errs, field.Invalid(flags.Path(flag), namespace, problems[0]))
		}
	}
	for flag, address := range map[string]string{"cluster-api-endpoint": c.APIEndpoint, "proxy-server-address": c.ProxyAddress} {
		if err := registration.ValidateAddress(address); err != nil {
			errs = append(errs, field.Invalid(flags.Path(flag), redacted(address), err.Error()))
		}
	}
	for _, secret := range c.ReportSecrets {
		if !slices.Contains(registration.ReportSecrets(), secret) {
			errs = append(errs, field.NotSupported(flags.Path("report-secrets"), secret, registration.ReportSecrets()))
		}
	}
	if slices.Contains(c.ReportSecrets, registration.ReportNone) && len(c.ReportSecrets) > 1 {
		errs = append(errs, field.Invalid(flags.Path("report-secrets"), strings.Join(c.ReportSecrets, ","), registration.ReportNone+" excludes the others"))
	}
	errs = append(errs, metav1validation.ValidateLabels(c.Labels, flags.Path("cluster-labels"))...)
	if f.ControlPlane == "" {
		errs = append(errs, field.Required(flags.Path("karmada-kubeconfig"), "says where the control plane is"))
	}
	return errs
}

func redacted(address string) string {
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			return scheme + "://…@" + rest[at+1:]
		}
	}
	return address
}

func (f *Flags) validateTimes() field.ErrorList {
	var errs field.ErrorList
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
		must  string
	}{
		{"resync-period", f.ResyncPeriod, 0, "must not be negative"},
		{"cluster-cache-sync-timeout", f.ClusterCacheSyncTimeout, 1, "must be longer than zero"},
		{"cluster-status-update-frequency", f.Status.UpdateFrequency, 1, "must be longer than zero"},
		{"cluster-success-threshold", f.Status.SuccessThreshold, 0, "must not be negative"},
		{"cluster-failure-threshold", f.Status.FailureThreshold, 0, "must not be negative"},
		{"cluster-lease-duration", f.Status.LeaseDuration, time.Second, "must be at least a second"},
		{"cert-rotation-checking-interval", f.CertRotation.Interval, 1, "must be longer than zero"},
	} {
		if d.value < d.least {
			errs = append(errs, field.Invalid(flags.Path(d.flag), d.value.String(), d.must))
		}
	}
	if x := f.Status.LeaseRenewFraction; !(x > 0 && x < 1) { // not a number is wrong, too
		errs = append(errs, field.Invalid(flags.Path("cluster-lease-renew-interval-fraction"), fmt.Sprint(x), "must be between 0 and 1"))
	}
	if x := f.CertRotation.Threshold; math.IsNaN(x) || x < 0 || x >= 1 {
		errs = append(errs, field.Invalid(flags.Path("cert-rotation-remaining-time-threshold"), fmt.Sprint(x), "must be at least 0 and less than 1"))
	}
	return errs
}
