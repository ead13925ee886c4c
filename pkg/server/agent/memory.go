package agent

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/karmadactl/karmadactl/pkg/util/memory"
)

const (
	// gcPercent keeps the heap of an agent, which is small and changes little, close
	// to what is in use.
	gcPercent = 50
	// settleTime is how long after its start an agent is still filling its caches.
	settleTime = 5 * time.Second
)

// tune makes the process one that takes little memory beside the work of others. A
// user who has set GOGC has the last word on the collector.
func tune(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	timer := time.NewTimer(settleTime)
	go func() {
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		memory.Trim()
		memory.TrimWhenIdle(ctx)
	}()
}
