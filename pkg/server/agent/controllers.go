package agent

import (
	"context"
	"fmt"

	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/controllers/certrotation"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// A controller is one name that --controllers takes.
type controller struct {
	name         string
	offByDefault bool
	// gate, unless it is empty, must be on for the controller to run.
	gate featuregate.Feature
	// setup adds it to a manager; nil means that this version does not have it.
	setup func(context.Context, manager.Manager, parts) error
}

// controllers is the table (spec: cli/components.md 5, behaviour/02 2.0).
func controllers() []controller {
	return []controller{
		{name: "certRotation", offByDefault: true, setup: setupCertRotation},
		{name: "clusterStatus"},
		{name: "endpointsliceCollect", gate: features.MultiClusterService},
		{name: "execution"},
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

func (p plan) setUp(ctx context.Context, mgr manager.Manager, shared parts) error {
	for _, entry := range p.start {
		if err := entry.setup(ctx, mgr, shared); err != nil {
			return fmt.Errorf("set up controller %s: %w", entry.name, err)
		}
	}
	return nil
}

func setupCertRotation(_ context.Context, mgr manager.Manager, p parts) error {
	f := p.flags
	store, err := p.certificateStore()
	if err != nil {
		return err
	}
	return certrotation.Setup(mgr, certrotation.Options{
		Cluster: f.Cluster.Name, Store: store, Interval: f.CertRotation.Interval, Threshold: f.CertRotation.Threshold,
	})
}
