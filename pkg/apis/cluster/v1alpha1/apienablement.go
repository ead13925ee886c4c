package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An APIEnablementStatus says whether a cluster serves an API. That it is not
// known is an answer of its own: it is never a reason to remove anything.
type APIEnablementStatus string

// Whether a cluster serves an API.
const (
	// APIEnabled says that the cluster serves it.
	APIEnabled APIEnablementStatus = "Enabled"
	// APIDisabled says that the cluster does not serve it.
	APIDisabled APIEnablementStatus = "Disabled"
	// APIUnknown says that it was not seen, but that not everything was.
	APIUnknown APIEnablementStatus = "Unknown"
)

// APIEnablement says whether the cluster serves gvk, as far as its status tells.
// The kind counts, in exactly that group and version
// (spec: behaviour/01-naming-and-metadata.md 1.11).
func (c *Cluster) APIEnablement(gvk schema.GroupVersionKind) APIEnablementStatus {
	gv := gvk.GroupVersion().String()
	for i := range c.Status.APIEnablements {
		e := &c.Status.APIEnablements[i]
		if e.GroupVersion != gv {
			continue
		}
		for j := range e.Resources {
			if e.Resources[j].Kind == gvk.Kind {
				return APIEnabled
			}
		}
	}
	if meta.IsStatusConditionTrue(c.Status.Conditions, ConditionCompleteAPIEnablements) {
		return APIDisabled
	}
	return APIUnknown
}
