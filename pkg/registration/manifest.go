package registration

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeManifest names an object of a Work: "Kind namespace/name".
func describeManifest(raw []byte) string {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &o); err != nil || o.Kind == "" {
		return "an object that cannot be read"
	}
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
