package validate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// BenchmarkHandlers measures what one request costs beside TLS, for each kind: everything of it is used.
func BenchmarkHandlers(b *testing.B) {
	for _, h := range Hooks(options(b)) {
		kind := strings.TrimPrefix(h.Path, "/validate-")
		if kind == "resourceinterpreterwebhookconfiguration" {
			kind = "config" // as its webhook is called
		}
		data, err := os.ReadFile(filepath.Join("testdata", "fuzz", "FuzzHandlers", kind+"-created"))
		if err != nil {
			b.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		quoted := strings.TrimSuffix(strings.TrimPrefix(lines[len(lines)-1], "[]byte("), ")")
		text, err := strconv.Unquote(quoted)
		if err != nil {
			b.Fatal(err)
		}
		req := admission.Request{}
		req.Object.Raw = []byte(text)
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				h.Handler.Handle(b.Context(), req)
			}
		})
	}
}
