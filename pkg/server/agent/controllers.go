package agent

import (
	"fmt"
	"time"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/controllers/certrotation"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/pipeline/apply"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// A controller is one name that --controllers takes.
type controller struct {
	name         string
	offByDefault bool
	// gate, unless it is empty, must be on for the controller to run.
	gate featuregate.Feature
	// setup adds it to a manager; nil means that this version does not have it.
	setup func(manager.Manager, parts) error
}

// controllers is the table (spec: cli/components.md 5, behaviour/02 2.0).
func controllers() []controller {
	return []controller{
		{name: "certRotation", offByDefault: true, setup: setupCertRotation},
		{name: "clusterStatus", setup: setupClusterStatus},
		{name: "endpointsliceCollect", gate: features.MultiClusterService},
		{name: "execution", setup: setupExecution},
		{name: "serviceExport"},
		{name: "workStatus"},
	}
}

func newControllersFlag(table []controller) flags.Controllers {
	var known, off []string
	for _, c := range table {
		known = append(known, c.name)
		if c.offByDefault {
			off = append(off, c.name)
		}
	}
	return flags.NewControllers(known, off)
}

// A plan says what becomes of each controller of the table that is enabled.
type plan struct {
	start   []controller
	gated   []string // need a feature gate that is off
	missing []string // are not in this version
}

func planControllers(table []controller, enabled func(name string) bool, gate featuregate.FeatureGate) plan {
	var p plan
	for _, c := range table {
		switch {
		case !enabled(c.name):
		case c.gate != "" && !gate.Enabled(c.gate):
			p.gated = append(p.gated, c.name)
		case c.setup == nil:
			p.missing = append(p.missing, c.name)
		default:
			p.start = append(p.start, c)
		}
	}
	return p
}

func (p plan) report(log klog.Logger) {
	var started []string
	for _, c := range p.start {
		started = append(started, c.name)
	}
	log.Info("Starting controllers", "controllers", started)
	if len(p.gated) > 0 {
		log.Info("Controllers not started, because their feature gate is off", "controllers", p.gated)
	}
	if len(p.missing) > 0 {
		log.Info("Controllers not started, because this version does not have them yet", "controllers", p.missing)
	}
}

func (p plan) setUp(mgr manager.Manager, shared parts) error {
	for _, entry := range p.start {
		if err := entry.setup(mgr, shared); err != nil {
			return fmt.Errorf("set up controller %s: %w", entry.name, err)
		}
	}
	return nil
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
		Concurrency: p.flags.ConcurrentWorkSyncs,
		RateLimiter: p.rateLimiter(),
		Registerer:  p.registerer,
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
