package binding

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaxManifest is how large an object may be, in bytes of JSON, to be carried by
// a Work: etcd takes requests of up to 1.5 MiB, of which some is left for the
// Work itself, the marks on the object, and the envelope.
const MaxManifest = 1536<<10 - 64<<10

// A TooLargeError says that an object does not fit into a Work. It does not go
// away before the object changes.
type TooLargeError struct{ Size, Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the object has %d bytes as JSON, and at most %d can be sent to a cluster: make it smaller, or split it", e.Size, e.Limit)
}

// CheckSize returns a *TooLargeError when an object does not fit into a Work.
// What does not travel is not counted.
func CheckSize(object *unstructured.Unstructured) error {
	travels := make(map[string]any, len(object.Object))
	for k, v := range object.Object {
		if k != "status" {
			travels[k] = v
		}
	}
	if m, ok := travels["metadata"].(map[string]any); ok {
		if _, ok := m["managedFields"]; ok {
			fields := make(map[string]any, len(m))
			for k, v := range m {
				if k != "managedFields" {
					fields[k] = v
				}
			}
			travels["metadata"] = fields
		}
	}
	data, err := json.Marshal(travels)
	if err != nil {
		return fmt.Errorf("write object as JSON: %w", err)
	}
	if len(data) > MaxManifest {
		return &TooLargeError{Size: len(data), Limit: MaxManifest}
	}
	return nil
}
