package registration

import (
	"context"
	"errors"
	"time"
)

// errPatience says that what was waited for has not come in the time given.
var errPatience = errors.New("not in time")

// Pauses between looks at a server: short at first, since most waits are for a moment.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// poll calls check until it is done or fails. After patience it is errPatience, when ctx ends the cause of that. check is
// called once at least.
func poll(ctx context.Context, patience time.Duration, check func(context.Context) (done bool, err error)) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		done, err := check(ctx)
		if done || err != nil {
			return err
		}
		next := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			next.Stop()
			return context.Cause(ctx)
		case <-limit.C:
			next.Stop()
			return errPatience
		case <-next.C:
		}
	}
}
