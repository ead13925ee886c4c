package binding

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCheckSize(t *testing.T) {
	large := strings.Repeat("x", MaxManifest)
	cases := map[string]struct {
		reason string
		change func(map[string]any)
		large  bool
	}{
		"Small":         {"The usual case.", func(map[string]any) {}, false},
		"Data":          {"What does not fit.", func(o map[string]any) { o["data"] = map[string]any{"k": large} }, true},
		"AlmostLarge":   {"A large object is no reason.", func(o map[string]any) { o["data"] = map[string]any{"k": large[:MaxManifest*9/10]} }, false},
		"Status":        {"The status does not travel.", func(o map[string]any) { o["status"] = map[string]any{"k": large} }, false},
		"ManagedFields": {"Nor do managed fields.", func(o map[string]any) { o["metadata"].(map[string]any)["managedFields"] = []any{large} }, false},
		"Escaped": {
			"It counts how the object is written, where some characters take six.",
			func(o map[string]any) { o["data"] = map[string]any{"k": strings.Repeat("<", MaxManifest/5)} }, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}
			tc.change(o)
			_, hadStatus := o["status"]
			err := CheckSize(&unstructured.Unstructured{Object: o})
			var e *TooLargeError
			if errors.As(err, &e) != tc.large {
				t.Fatalf("%s\ngot %v", tc.reason, err)
			}
			if tc.large && (e.Limit != MaxManifest || e.Size <= e.Limit) {
				t.Errorf("size %d, limit %d", e.Size, e.Limit)
			}
			if _, has := o["status"]; has != hadStatus {
				t.Error("the object was changed")
			}
		})
	}
	if err := CheckSize(&unstructured.Unstructured{Object: map[string]any{"odd": func() {}}}); err == nil {
		t.Error("what cannot be written cannot be sent")
	}
}
