package plane

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// startGCPercent lets the heap grow while components start: they allocate once what stays, and collecting
	// meanwhile is a tenth of the time to ready.
	startGCPercent = 400
	// steadyGCPercent keeps the resident memory of an idle plane small for little processor time.
	steadyGCPercent = 60
	// settleTime is how long after it is ready a plane is still being filled with its first objects.
	settleTime = 10 * time.Second
)

// tuneStart prepares the collector for a start. The returned function is called when the plane is ready. A user who
// has set GOGC or GOMEMLIMIT has the last word.
func tuneStart() (ready func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	debug.SetGCPercent(startGCPercent)
	return func() {
		time.AfterFunc(settleTime, func() {
			debug.SetGCPercent(steadyGCPercent)
			debug.FreeOSMemory()
		})
	}
}
