package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// everyController stands for all controllers that are on by default.
const everyController = "*"

// Controllers is the choice of the controllers to run.
type Controllers struct {
	// Selection is what was typed: "*", "foo" and "-foo".
	Selection []string

	known        []string
	offByDefault []string
}

// NewControllers returns the choice of all that are on by default, among the
// given names.
func NewControllers(known, offByDefault []string) Controllers {
	return Controllers{
		Selection:    []string{everyController},
		known:        slices.Sorted(slices.Values(known)),
		offByDefault: slices.Sorted(slices.Values(offByDefault)),
	}
}

// AddFlags registers --controllers.
func (c *Controllers) AddFlags(fs *pflag.FlagSet) {
	usage := "A list of controllers to enable. '*' enables all controllers that are on by default, 'foo' enables the controller named 'foo', '-foo' disables it. Without '*' only those that are named are enabled. All controllers: " +
		strings.Join(c.known, ", ") + "."
	if len(c.offByDefault) > 0 {
		usage += " Off by default: " + strings.Join(c.offByDefault, ", ") + "."
	}
	fs.StringSliceVar(&c.Selection, "controllers", c.Selection, usage)
}

// Validate reports names that no controller has.
func (c *Controllers) Validate() field.ErrorList {
	var errs field.ErrorList
	for _, entry := range c.Selection {
		name := strings.TrimPrefix(entry, "-")
		if entry != everyController && !slices.Contains(c.known, name) {
			errs = append(errs, field.NotSupported(Path("controllers"), entry, append([]string{everyController}, c.known...)))
		}
	}
	return errs
}

// Enabled says whether a controller is to run. The first entry that names it
// decides; else "*" does, for what is on by default.
func (c *Controllers) Enabled(name string) bool {
	for _, entry := range c.Selection {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return slices.Contains(c.Selection, everyController) && !slices.Contains(c.offByDefault, name)
}
