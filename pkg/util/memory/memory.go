// Package memory gives memory back that a long-running process needed only to start, or for a burst of work.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idleInterval is how often TrimWhenIdle looks. One trim of a heap of 100 MiB takes about a tenth of a second.
	idleInterval = 30 * time.Second
	// idleBytes is the most that an idle process allocates in that time.
	idleBytes = 96 << 20
)

// Trim collects garbage, returns free memory to the system, and lets go of the pages of the program's own file that
// were read to start it: what is needed again comes back from the page cache.
func Trim() {
	debug.FreeOSMemory()
	dropProgramPages()
}

// TrimWhenIdle trims whenever the process has done little for a while, until ctx is done. A busy process is left to
// the collector: its garbage is worth more time than memory.
func TrimWhenIdle(ctx context.Context) {
	tick := time.NewTicker(idleInterval)
	defer tick.Stop()
	before := allocated()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-before < idleBytes {
			debug.FreeOSMemory()
		}
		before = now
	}
}

// allocated returns how many bytes the process has allocated on the heap since it started.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
