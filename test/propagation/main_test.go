package propagation

import (
	"os"
	"testing"

	"github.com/karmadactl/karmadactl/test/fleetrig"
)

const memberNodes = 3

// shared is set once by TestMain, before any test runs.
var shared *fleetrig.Fleet

func TestMain(m *testing.M) {
	os.Exit(fleetrig.Main(m, fleetrig.Options{Name: "propagation", Members: 3, Pull: true, Nodes: memberNodes}, func(f *fleetrig.Fleet) { shared = f }))
}
