package flags

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// LeaderElection chooses one of several replicas to do the work.
type LeaderElection struct {
	Enabled       bool
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
	Namespace     string
	// Name of the lease. It is a flag only of roles that call AddNameFlag.
	Name string
}

// NewLeaderElection returns the defaults, with the lease of the given name.
func NewLeaderElection(lease string) LeaderElection {
	return LeaderElection{
		Enabled:       true,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Namespace:     names.SystemNamespace,
		Name:          lease,
	}
}

// AddFlags registers the flags that every role with leader election has.
func (l *LeaderElection) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&l.Enabled, "leader-elect", l.Enabled, "Start the leader election client and gain leadership before doing any work. Enable this when running replicas of the component for high availability.")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration, "How long replicas that do not lead wait, after they last saw the lease renewed, before they try to take it over. A leader that dies is replaced after this time at most. Only with leader election.")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline, "How long the leader goes on trying to renew the lease before it gives up leading, which ends the process. Must be shorter than the lease duration. Only with leader election.")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod, "How long to wait between two attempts to take or renew the lease. Only with leader election.")
	fs.StringVar(&l.Namespace, "leader-elect-resource-namespace", l.Namespace, "The namespace of the lease. Only with leader election.")
}

// AddNameFlag registers the flag for the name of the lease.
func (l *LeaderElection) AddNameFlag(fs *pflag.FlagSet) {
	fs.StringVar(&l.Name, "leader-elect-resource-name", l.Name, "The name of the lease. Only with leader election.")
}

// Validate reports what the election library would refuse, and what would keep
// it from ever working. Without leader election everything is fine.
func (l *LeaderElection) Validate() field.ErrorList {
	if !l.Enabled {
		return nil
	}
	var errs field.ErrorList
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"leader-elect-lease-duration", l.LeaseDuration},
		{"leader-elect-renew-deadline", l.RenewDeadline},
		{"leader-elect-retry-period", l.RetryPeriod},
	} {
		errs = append(errs, positiveDuration(d.flag, d.value)...)
	}
	if len(errs) == 0 && l.LeaseDuration <= l.RenewDeadline {
		errs = append(errs, field.Invalid(Path("leader-elect-lease-duration"), l.LeaseDuration.String(),
			"must be longer than --leader-elect-renew-deadline, which is "+l.RenewDeadline.String()))
	}
	// Between two attempts the library waits up to this much longer.
	longest := time.Duration(float64(l.RetryPeriod) * leaderelection.JitterFactor)
	if len(errs) == 0 && l.RenewDeadline <= longest {
		errs = append(errs, field.Invalid(Path("leader-elect-renew-deadline"), l.RenewDeadline.String(),
			"must be longer than 1.2 times --leader-elect-retry-period, which is "+longest.String()))
	}
	if problems := validation.IsDNS1123Label(l.Namespace); len(problems) > 0 {
		errs = append(errs, field.Invalid(Path("leader-elect-resource-namespace"), l.Namespace, problems[0]))
	}
	if problems := validation.IsDNS1123Subdomain(l.Name); len(problems) > 0 {
		errs = append(errs, field.Invalid(Path("leader-elect-resource-name"), l.Name, problems[0]))
	}
	return errs
}

func positiveDuration(flag string, d time.Duration) field.ErrorList {
	if d > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(Path(flag), d.String(), "must be longer than zero")}
}
