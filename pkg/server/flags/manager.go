package flags

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
)

// Manager are the flags that roles have which run controllers against the
// control plane and its members.
type Manager struct {
	API            Limits
	ClusterAPI     Limits
	LeaderElection LeaderElection
	Endpoints      Endpoints
	FeatureGates   FeatureGates
	Controllers    Controllers
	RateLimiter    RateLimiter
}

// NewManager returns the defaults, with the lease and the health probe of the
// role, and its choice of controllers.
func NewManager(lease, healthProbe string, controllers Controllers) Manager {
	return Manager{
		API:            KubeAPILimits(),
		ClusterAPI:     ClusterAPILimits(),
		LeaderElection: NewLeaderElection(lease),
		Endpoints:      NewEndpoints(healthProbe),
		Controllers:    controllers,
		RateLimiter:    NewRateLimiterFlags(),
	}
}

// AddFlags registers the flags. The usage of --feature-gates lists what the gate
// knows.
func (m *Manager) AddFlags(fs *pflag.FlagSet, gate featuregate.MutableFeatureGate) {
	m.API.AddFlags(fs)
	m.ClusterAPI.AddFlags(fs)
	m.LeaderElection.AddFlags(fs)
	m.Endpoints.AddFlags(fs)
	m.FeatureGates.AddFlags(fs, gate)
	m.Controllers.AddFlags(fs)
	m.RateLimiter.AddFlags(fs)
}

// Validate reports everything that is wrong with the flags.
func (m *Manager) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []field.ErrorList{
		m.API.Validate(), m.ClusterAPI.Validate(), m.LeaderElection.Validate(), m.Endpoints.Validate(),
		m.FeatureGates.Validate(gate), m.Controllers.Validate(), m.RateLimiter.Validate(),
	} {
		errs = append(errs, part...)
	}
	return errs
}
