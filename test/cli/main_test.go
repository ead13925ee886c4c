package cli

import (
	"os"
	"testing"

	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// shared is set once by TestMain, before any test runs.
var shared *fleetrig.Fleet

func TestMain(m *testing.M) {
	os.Exit(fleetrig.Main(m, fleetrig.Options{Name: "cli", Members: 3, Pull: true, Nodes: 2}, func(f *fleetrig.Fleet) { shared = f }))
}
