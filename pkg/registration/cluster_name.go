package registration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxClusterNameLength is the longest name of a cluster, in characters: other names are made of it (spec:
// cli/commands.md 2.4).
const MaxClusterNameLength = 48

// ValidateClusterName returns an error, in the words of the contract, when name cannot be a cluster's: it has to be a
// DNS-1123 label of at most MaxClusterNameLength characters (spec: cli/commands.md 2.4, 3.1).
func ValidateClusterName(name string) error {
	problems := validation.IsDNS1123Label(name)
	if len(name) > MaxClusterNameLength {
		problems = []string{validation.MaxLenError(MaxClusterNameLength)}
		if len(name) > validation.DNS1123LabelMaxLength {
			name = name[:MaxClusterNameLength] + "…" // however long it is, the message stays one line
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("invalid cluster name(%s): %s", name, strings.Join(problems, "; "))
}
