package override

import (
	"fmt"

	"github.com/karmadactl/karmadactl/pkg/policy"
)

// An Error says which part of which policy could not be applied. The object is
// as it was.
type Error struct {
	// Kind, Namespace and Name are those of the policy.
	Kind, Namespace, Name string
	// Rule is the index in spec.overrideRules, -1 for the deprecated pair
	// spec.targetCluster and spec.overriders.
	Rule int
	// Field is what failed within the rule, such as
	// overriders.imageOverrider[0], or targetCluster.
	Field string
	// Path is a JSON pointer to the place in the object, "" when there is none.
	Path string
	// Err is why.
	Err error
}

func newError(p policy.Override, rule int, f *failure) *Error {
	return &Error{
		Kind: kindOf(p), Namespace: p.GetNamespace(), Name: p.GetName(),
		Rule: rule, Field: f.field, Path: f.path, Err: f.err,
	}
}

func kindOf(p policy.Override) string {
	if p.GetNamespace() == "" {
		return "ClusterOverridePolicy"
	}
	return "OverridePolicy"
}

// Error names the policy, the place in it, and the place in the object.
func (e *Error) Error() string {
	policy := e.Name
	if e.Namespace != "" {
		policy = e.Namespace + "/" + e.Name
	}
	field := "spec." + e.Field
	if e.Rule >= 0 {
		field = fmt.Sprintf("spec.overrideRules[%d].%s", e.Rule, e.Field)
	}
	at := ""
	if e.Path != "" {
		at = " at " + e.Path
	}
	return fmt.Sprintf("%s %s: %s%s: %v", e.Kind, policy, field, at, e.Err)
}

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Err }

// A failure is what goes wrong in one rule.
type failure struct {
	field, path string
	err         error
}

// failed returns a failure in an item of a list of overriders.
func failed(list string, item int, path string, err error) *failure {
	return &failure{field: fmt.Sprintf("overriders.%s[%d]", list, item), path: path, err: err}
}
