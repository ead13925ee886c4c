package flags

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/features"
)

// FeatureGates holds what was typed for --feature-gates. It is not set on a
// gate before Apply, because several roles of one process may share the gate.
type FeatureGates struct {
	Set map[string]bool
}

// AddFlags registers --feature-gates; its usage lists what the gate knows.
func (f *FeatureGates) AddFlags(fs *pflag.FlagSet, gate featuregate.MutableFeatureGate) {
	fs.Var(cliflag.NewMapStringBool(&f.Set), "feature-gates", "A set of key=value pairs that describe feature gates for alpha and experimental features. Options are:\n"+strings.Join(gate.KnownFeatures(), "\n"))
}

// Validate reports features that the gate does not know.
func (f *FeatureGates) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	var (
		errs  field.ErrorList
		known = gate.GetAll()
		valid []string
	)
	for name := range known {
		valid = append(valid, string(name))
	}
	slices.Sort(valid)
	for _, name := range slices.Sorted(maps.Keys(f.Set)) {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			errs = append(errs, field.NotSupported(Path("feature-gates"), name, valid))
		}
	}
	return errs
}

// Apply sets the gate.
func (f *FeatureGates) Apply(gate featuregate.MutableFeatureGate) error {
	if len(f.Set) == 0 {
		return nil
	}
	if err := gate.SetFromMap(f.Set); err != nil {
		return fmt.Errorf("set --feature-gates: %w", err)
	}
	return nil
}

// ApplyValid sets the gate, unless Validate finds fault: that is reported there.
// What the gate itself refuses is reported as validation would.
func (f *FeatureGates) ApplyValid(gate featuregate.MutableFeatureGate) field.ErrorList {
	if len(f.Validate(gate)) > 0 {
		return nil
	}
	if err := f.Apply(gate); err != nil {
		return field.ErrorList{field.Invalid(Path("feature-gates"), fmt.Sprint(f.Set), err.Error())}
	}
	return nil
}

// Report says, once, which of the gates that were set have no effect yet.
func (f *FeatureGates) Report(log klog.Logger) {
	if unread := features.Unread(f.Set); len(unread) > 0 {
		log.Info("Feature gates without effect in this version", "gates", unread)
	}
}
