package binding

import "testing"

// BenchmarkHolds measures what a Work costs that need not be written.
func BenchmarkHolds(b *testing.B) {
	want, object := wanted(), configMap()
	spec := map[string]any{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		spec[k] = map[string]any{"image": "registry.example/some/image:1.2.3", "args": []any{"--one", "--two", "--three"}, "replicas": int64(3)}
	}
	object.Object["spec"] = spec
	w := wanted()
	if err := merge(w, want, object); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := holds(w, want, object); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
