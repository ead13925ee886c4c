// Package flags defines, once, the flags that server roles have in common:
// logging, leader election, client limits, addresses, feature gates, the choice
// of controllers and the like (spec: cli/components.md 0 to 9).
//
// Each topic is a value with the same three methods. AddFlags registers its
// flags with a flag set of the role's choice, Validate reports every value that
// is wrong, and the rest gives what the flags mean to whoever needs it. Nothing
// of the process changes before Logs.Apply, which is the command's to call.
package flags

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
)

// Names of the flag sets that roles share (spec: cli/components.md 0).
const (
	GenericSet = "generic"
	LogsSet    = "logs"
)

// NewSets returns named flag sets whose flags may also be typed with
// underscores, as those of Kubernetes.
func NewSets() *cliflag.NamedFlagSets {
	return &cliflag.NamedFlagSets{NormalizeNameFunc: cliflag.WordSepNormalizeFunc}
}

// Error makes one error of all that is wrong with the flags of a role, each on
// a line of its own. It is nil when nothing is.
func Error(errs field.ErrorList) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("invalid flag: %w", errs[0])
	}
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, "  "+err.Error())
	}
	return fmt.Errorf("%d invalid flags:\n%s", len(errs), strings.Join(lines, "\n"))
}

// Path names a flag in an error of validation.
func Path(flag string) *field.Path {
	return field.NewPath("--" + flag)
}
