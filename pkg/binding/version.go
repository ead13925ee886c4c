package binding

import "k8s.io/apimachinery/pkg/util/resourceversion"

// IsOlder reports whether one version of an object comes before another. What
// cannot be compared is older, unless it is the same.
func IsOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
