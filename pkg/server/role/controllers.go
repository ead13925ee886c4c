package role

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// A Controller is one name that --controllers of a role takes. S is what its
// controllers are set up with: the choices of the user, and what they share.
type Controller[S any] struct {
	Name         string
	OffByDefault bool
	// Always says that it cannot be turned off, and that --controllers does not
	// know it.
	Always bool
	// Gate, unless it is empty, must be on for the controller to run.
	Gate featuregate.Feature
	// Needs are the kinds that it watches, apart from those of Kubernetes, for a
	// role that waits until they are served.
	Needs []schema.GroupVersionKind
	// Setup adds it to a manager; nil means that this version does not have it.
	Setup func(manager.Manager, S) error
}

// ControllersFlag returns --controllers for the controllers of a table.
func ControllersFlag[S any](table []Controller[S]) flags.Controllers {
	var known, off []string
	for _, c := range table {
		if c.Always {
			continue
		}
		known = append(known, c.Name)
		if c.OffByDefault {
			off = append(off, c.Name)
		}
	}
	return flags.NewControllers(known, off)
}

// A Reason says why a controller that is enabled does not start.
type Reason int

const (
	// Gated is that it needs a feature gate that is off.
	Gated Reason = iota
	// Missing is that this version does not have it.
	Missing
)

// A Plan says what becomes of each controller of a table that is enabled.
type Plan[S any] struct {
	Start []Controller[S]
	// Gated and Missing are the names of those that do not start, by the reason.
	Gated, Missing []string
}

// NewPlan decides what becomes of the controllers of a table. Of one that has
// both reasons not to start, first is told.
func NewPlan[S any](table []Controller[S], enabled func(name string) bool, gate featuregate.FeatureGate, first Reason) Plan[S] {
	var p Plan[S]
	for _, c := range table {
		missing := c.Setup == nil
		switch {
		case !c.Always && !enabled(c.Name):
		case missing && first == Missing:
			p.Missing = append(p.Missing, c.Name)
		case c.Gate != "" && !gate.Enabled(c.Gate):
			p.Gated = append(p.Gated, c.Name)
		case missing:
			p.Missing = append(p.Missing, c.Name)
		default:
			p.Start = append(p.Start, c)
		}
	}
	return p
}

// Started returns the names of the controllers that start.
func (p Plan[S]) Started() []string {
	var started []string
	for _, c := range p.Start {
		started = append(started, c.Name)
	}
	return started
}

// Needs returns what the controllers that start watch, each once.
func (p Plan[S]) Needs() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, c := range p.Start {
		for _, kind := range c.Needs {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	return all
}

// ReportIdle says which controllers do not start although they are enabled, and
// why.
func (p Plan[S]) ReportIdle(log klog.Logger) {
	if len(p.Gated) > 0 {
		log.Info("Controllers not started, because their feature gate is off", "controllers", p.Gated)
	}
	if len(p.Missing) > 0 {
		log.Info("Controllers not started, because this version does not have them yet", "controllers", p.Missing)
	}
}

// SetUp adds the controllers that start to a manager.
func (p Plan[S]) SetUp(mgr manager.Manager, shared S) error {
	for _, c := range p.Start {
		if err := c.Setup(mgr, shared); err != nil {
			return fmt.Errorf("set up controller %s: %w", c.Name, err)
		}
	}
	return nil
}
