package agent

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/controllers/certrotation"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/pipeline/apply"
	"github.com/karmadactl/karmadactl/pkg/pipeline/observe"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// A controller is one name that --controllers takes.
type controller = role.Controller[parts]

// controllers is the table (spec: cli/components.md 5, behaviour/02 2.0).
func controllers() []controller {
	return []controller{
		{Name: "certRotation", OffByDefault: true, Setup: setupCertRotation},
		{Name: "clusterStatus", Setup: setupClusterStatus},
		{Name: "endpointsliceCollect", Gate: features.MultiClusterService},
		{Name: "execution", Setup: setupExecution},
		{Name: "serviceExport"},
		{Name: "workStatus", Setup: setupWorkStatus},
	}
}

func setupClusterStatus(mgr manager.Manager, p parts) error {
	f := p.flags.Status
	return clusterstatus.Setup(mgr, clusterstatus.Options{
		Pool:             p.members,
		Mine:             clusterstatus.Named(p.flags.Cluster.Name),
		Frequency:        f.UpdateFrequency,
		SuccessThreshold: f.SuccessThreshold,
		FailureThreshold: f.FailureThreshold,
		ResourceModeling: f.ResourceModeling,
		CustomizedModels: p.gate.Enabled(features.CustomizedClusterResourceModeling),
		LeaseDuration:    f.LeaseDuration,
		LeaseInterval:    time.Duration(float64(f.LeaseDuration) * f.LeaseRenewFraction),
		Metrics:          p.clusters,
		RateLimiter:      p.rateLimiter(),
	})
}

func setupExecution(mgr manager.Manager, p parts) error {
	return apply.Setup(mgr, apply.Options{
		Pool:        p.members,
		Cluster:     p.flags.Cluster.Name,
		Interpreter: p.interpreter,
		Notes:       p.notes,
		Concurrency: p.flags.ConcurrentWorkSyncs,
		RateLimiter: p.rateLimiter(),
		Registerer:  p.registerer,
	})
}

func setupWorkStatus(mgr manager.Manager, p parts) error {
	return observe.Setup(mgr, observe.Options{
		Pool:        p.members,
		Cluster:     p.flags.Cluster.Name,
		Interpreter: p.interpreter,
		News:        p.notes,
		Concurrency: p.flags.ConcurrentWorkSyncs,
		RateLimiter: p.rateLimiter(),
	})
}

func setupCertRotation(mgr manager.Manager, p parts) error {
	f := p.flags
	store, err := p.certificateStore()
	if err != nil {
		return err
	}
	return certrotation.Setup(mgr, certrotation.Options{
		Cluster: f.Cluster.Name, Store: store, Interval: f.CertRotation.Interval, Threshold: f.CertRotation.Threshold,
		RateLimiter: p.rateLimiter(),
	})
}
