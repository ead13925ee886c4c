package plane

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/karmadactl/karmadactl/pkg/util/memory"
)

const (
	// startGCPercent lets the heap grow while components start: they allocate once what stays, and collecting
	// meanwhile is a tenth of the time to ready.
	startGCPercent = 400
	// settleTime is how long after it is ready a plane is still being filled with its first objects.
	settleTime = 10 * time.Second
)

// tuneStart prepares the collector for a start. The returned function is called when the plane is ready; from then on
// memory is given back when little happens. A user who has set GOGC has the last word.
func tuneStart(ctx context.Context) (ready func()) {
	usual := func() {}
	if os.Getenv("GOGC") == "" {
		before := debug.SetGCPercent(startGCPercent)
		usual = func() { debug.SetGCPercent(before) }
	}
	return func() {
		time.AfterFunc(settleTime, func() {
			usual()
			memory.Trim()
			memory.TrimWhenIdle(ctx)
		})
	}
}
