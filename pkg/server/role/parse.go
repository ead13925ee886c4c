package role

import (
	"fmt"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// Flags are the flags of a role that has feature gates.
type Flags interface {
	// AddFlags registers all flags, in their sets.
	AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate)
}

// NewSets returns the flags of a role in their sets, and the new gate that is
// theirs to set.
func NewSets(f Flags) (*cliflag.NamedFlagSets, featuregate.MutableVersionedFeatureGate, error) {
	gate, err := features.New()
	if err != nil {
		return nil, nil, err
	}
	sets := flags.NewSets()
	f.AddFlags(sets, gate)
	return sets, gate, nil
}

// FlagSet returns one set of all flags of a role, for parsing them without its
// command. What is parsed counts as changed in the named sets as well.
func FlagSet(name string, sets *cliflag.NamedFlagSets) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	fs.Usage = func() {} // errors are returned; there is nobody to read usage
	for _, set := range sets.Order {
		fs.AddFlagSet(sets.FlagSets[set])
	}
	return fs
}

// Parse gives args to the flags of a role, as its command does. Anything but
// flags is an error.
func Parse(name string, sets *cliflag.NamedFlagSets, args []string) error {
	fs := FlagSet(name, sets)
	if err := fs.Parse(args); err != nil {
		return err // it names the flag, and a prefix would say no more
	}
	if rest := fs.Args(); len(rest) > 0 {
		return fmt.Errorf("unexpected arguments %q", rest)
	}
	return nil
}
