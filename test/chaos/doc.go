// Package chaos ends karmadactl and the control plane at the worst moments and asks, each time, the same questions:
// does running the command again bring everything to where it should be, and is anything left behind that nobody
// wanted?
//
// It works on real processes, on loopback and in directories of its own, with the binaries in _output/bin (or where
// KARMADA_BIN says). The tests run every fault once:
//
//	make build
//	go test ./test/chaos
//
// The long form kills init at random points, as often as it is told to:
//
//	go run ./test/chaos/cmd/initkill -kills 100
//	go run ./test/chaos/cmd/initkill -kills 100 -seed 42   # the same points again
package chaos
